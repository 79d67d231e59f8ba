// SPDX-License-Identifier: BSD-3-Clause
// Copies of rectangles and boxes: cuMemcpy2D, cuMemcpy3D and their kin, all as one CUDA_MEMCPY3D with unified
// addresses resolved.
#include "ucx_forwarder/client/cuda/copy.h"

#include <bit>

namespace vgpu::client {
namespace {

struct Side {
    CUmemorytype& type;
    const void* host;
    CUdeviceptr& device;
    CUarray& array;
    std::size_t x, y, z, pitch, rows;
};

/// Resolves a unified address and looks whether a row fits its pitch and the box its allocation.
CUresult check_side(const Context& context, Side side, const CUDA_MEMCPY3D& copy) {
    if (side.type == CU_MEMORYTYPE_ARRAY) {
        Array* array = client().arrays.find(side.array);
        if (!array)
            return CUDA_ERROR_INVALID_VALUE;
        side.array = std::bit_cast<CUarray>(array->id.value);
        return CUDA_SUCCESS;
    }
    if (side.pitch < side.x + copy.WidthInBytes && (copy.Height > 1 || copy.Depth > 1))
        return CUDA_ERROR_INVALID_VALUE;
    if (copy.Depth > 1 && side.rows < side.y + copy.Height)
        return CUDA_ERROR_INVALID_VALUE;
    if (side.type == CU_MEMORYTYPE_HOST)
        return side.host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (side.type != CU_MEMORYTYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    std::size_t row = (side.z + copy.Depth - 1) * side.rows + side.y + copy.Height - 1;
    std::size_t end;
    if (__builtin_mul_overflow(row, side.pitch, &end) ||
        __builtin_add_overflow(end, side.x + copy.WidthInBytes, &end))
        return CUDA_ERROR_INVALID_VALUE;
    return check_device_range(context, side.device, end);
}

CUresult resolve(CUmemorytype& type, const void** host, CUdeviceptr device, Node& here) {
    if (type != CU_MEMORYTYPE_UNIFIED)
        return CUDA_SUCCESS;
    Node* node;
    VGPU_TRY(classify(device, type, node));
    if (node && node != &here)
        return CUDA_ERROR_NOT_SUPPORTED; // a box between two GPU nodes
    if (type == CU_MEMORYTYPE_HOST)
        *host = reinterpret_cast<const void*>(device);
    return CUDA_SUCCESS;
}

CUresult copy_box(CUDA_MEMCPY3D copy, const CopyMode& mode) {
    CopyPath path;
    VGPU_TRY(copy_path(mode, path));
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0)
        return CUDA_SUCCESS;
    Node& here = *path.context->device->node;
    const void* to_host = copy.dstHost;
    VGPU_TRY(resolve(copy.srcMemoryType, &copy.srcHost, copy.srcDevice, here));
    VGPU_TRY(resolve(copy.dstMemoryType, &to_host, copy.dstDevice, here));
    copy.dstHost = const_cast<void*>(to_host);
    // A pitch may be left out where there is one row, a height where there is one slice.
    if (copy.srcPitch == 0)
        copy.srcPitch = copy.srcXInBytes + copy.WidthInBytes;
    if (copy.dstPitch == 0)
        copy.dstPitch = copy.dstXInBytes + copy.WidthInBytes;
    if (copy.srcHeight == 0)
        copy.srcHeight = copy.srcY + copy.Height;
    if (copy.dstHeight == 0)
        copy.dstHeight = copy.dstY + copy.Height;
    VGPU_TRY(check_side(*path.context,
                        {copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcArray, copy.srcXInBytes,
                         copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight},
                        copy));
    VGPU_TRY(check_side(*path.context,
                        {copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstArray, copy.dstXInBytes,
                         copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight},
                        copy));
    if (copy.srcMemoryType == CU_MEMORYTYPE_HOST)
        VGPU_TRY(wait_for_host_functions(path, copy.srcHost));
    return path.context->session().copy_3d(path.context->id, copy, path.stream, path.async);
}

CUresult copy_3d(const CUDA_MEMCPY3D* copy, const CopyMode& mode) {
    VGPU_TRY(client().ready());
    if (!copy || copy->reserved0 || copy->reserved1)
        return CUDA_ERROR_INVALID_VALUE;
    return copy_box(*copy, mode);
}

CUresult copy_2d(const CUDA_MEMCPY2D* copy, bool any_pitch, const CopyMode& mode) {
    VGPU_TRY(client().ready());
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    if (!any_pitch) {
        Context* context;
        VGPU_TRY(current(context));
        auto most = std::size_t(context->device->attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH));
        if (copy->srcPitch > most || copy->dstPitch > most)
            return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_MEMCPY3D box{};
    box.srcXInBytes = copy->srcXInBytes;
    box.srcY = copy->srcY;
    box.srcMemoryType = copy->srcMemoryType;
    box.srcHost = copy->srcHost;
    box.srcDevice = copy->srcDevice;
    box.srcArray = copy->srcArray;
    box.srcPitch = copy->srcPitch;
    box.dstXInBytes = copy->dstXInBytes;
    box.dstY = copy->dstY;
    box.dstMemoryType = copy->dstMemoryType;
    box.dstHost = copy->dstHost;
    box.dstDevice = copy->dstDevice;
    box.dstArray = copy->dstArray;
    box.dstPitch = copy->dstPitch;
    box.WidthInBytes = copy->WidthInBytes;
    box.Height = copy->Height;
    box.Depth = 1;
    return copy_box(box, mode);
}

CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER* copy, const CopyMode& mode) {
    VGPU_TRY(client().ready());
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    Context *from, *to;
    VGPU_TRY(context_of(copy->srcContext, from));
    VGPU_TRY(context_of(copy->dstContext, to));
    if (from->device->node != to->device->node)
        return CUDA_ERROR_NOT_SUPPORTED; // a box between two GPU nodes
    CUDA_MEMCPY3D box{};
    box.srcXInBytes = copy->srcXInBytes;
    box.srcY = copy->srcY;
    box.srcZ = copy->srcZ;
    box.srcLOD = copy->srcLOD;
    box.srcMemoryType = copy->srcMemoryType;
    box.srcHost = copy->srcHost;
    box.srcDevice = copy->srcDevice;
    box.srcArray = copy->srcArray;
    box.srcPitch = copy->srcPitch;
    box.srcHeight = copy->srcHeight;
    box.dstXInBytes = copy->dstXInBytes;
    box.dstY = copy->dstY;
    box.dstZ = copy->dstZ;
    box.dstLOD = copy->dstLOD;
    box.dstMemoryType = copy->dstMemoryType;
    box.dstHost = copy->dstHost;
    box.dstDevice = copy->dstDevice;
    box.dstArray = copy->dstArray;
    box.dstPitch = copy->dstPitch;
    box.dstHeight = copy->dstHeight;
    box.WidthInBytes = copy->WidthInBytes;
    box.Height = copy->Height;
    box.Depth = copy->Depth;
    return copy_box(box, mode);
}

constexpr CopyMode plain{};
constexpr CopyMode plain_per_thread{.null = NullStream::per_thread};
CopyMode on(CUstream stream) {
    return {.stream = stream, .async = true};
}
CopyMode on_per_thread(CUstream stream) {
    return {.stream = stream, .null = NullStream::per_thread, .async = true};
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, false, plain);
}
VGPU_API cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, false, plain_per_thread);
}
VGPU_API cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, true, plain);
}
VGPU_API cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
    return copy_2d(copy, true, plain_per_thread);
}
VGPU_API cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream s) {
    return copy_2d(copy, false, on(s));
}
VGPU_API cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream s) {
    return copy_2d(copy, false, on_per_thread(s));
}
VGPU_API cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
    return copy_3d(copy, plain);
}
VGPU_API cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* copy) {
    return copy_3d(copy, plain_per_thread);
}
VGPU_API cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream s) {
    return copy_3d(copy, on(s));
}
VGPU_API cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* copy, CUstream s) {
    return copy_3d(copy, on_per_thread(s));
}
VGPU_API cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
    return copy_3d_peer(copy, plain);
}
VGPU_API cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* copy) {
    return copy_3d_peer(copy, plain_per_thread);
}
VGPU_API cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream s) {
    return copy_3d_peer(copy, on(s));
}
VGPU_API cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* copy, CUstream s) {
    return copy_3d_peer(copy, on_per_thread(s));
}
