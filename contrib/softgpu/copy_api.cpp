// SPDX-License-Identifier: BSD-3-Clause
// cuMemcpy*.
#include "contrib/softgpu/call.h"
#include "contrib/softgpu/copy.h"

using namespace softgpu;

namespace {

std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
}

CUresult transfer(CUstream null_stream, CUstream handle, const Side& to, Where to_where, const Side& from,
                  Where from_where, const Extent& extent, bool async) {
    return context_call([&](Context& context) -> CUresult {
        const auto stream = context.stream(handle, null_stream);
        if (const auto error = stream->context().error(); error != CUDA_SUCCESS)
            return error;
        check_side(to, extent, to_where);
        check_side(from, extent, from_where);
        return copy(*stream, to, from, extent, async);
    });
}

// ---- one piece ----

CUresult any(CUstream null_stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return transfer(null_stream, nullptr, {to}, Where::anywhere, {from}, Where::anywhere, {bytes}, false);
}
CUresult any_async(CUstream null_stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                   CUstream stream) {
    return transfer(null_stream, stream, {to}, Where::anywhere, {from}, Where::anywhere, {bytes}, true);
}
CUresult to_device(CUstream null_stream, CUdeviceptr to, const void* from, std::size_t bytes) {
    return transfer(null_stream, nullptr, {to}, Where::device, {address_of(from)}, Where::host, {bytes},
                    false);
}
CUresult to_device_async(CUstream null_stream, CUdeviceptr to, const void* from, std::size_t bytes,
                         CUstream stream) {
    return transfer(null_stream, stream, {to}, Where::device, {address_of(from)}, Where::host, {bytes}, true);
}
CUresult to_host(CUstream null_stream, void* to, CUdeviceptr from, std::size_t bytes) {
    return transfer(null_stream, nullptr, {address_of(to)}, Where::host, {from}, Where::device, {bytes},
                    false);
}
CUresult to_host_async(CUstream null_stream, void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return transfer(null_stream, stream, {address_of(to)}, Where::host, {from}, Where::device, {bytes}, true);
}
CUresult on_device(CUstream null_stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    return transfer(null_stream, nullptr, {to}, Where::device, {from}, Where::device, {bytes}, false);
}
CUresult on_device_async(CUstream null_stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                         CUstream stream) {
    return transfer(null_stream, stream, {to}, Where::device, {from}, Where::device, {bytes}, true);
}

void check_contexts(CUcontext to, CUcontext from) {
    (void)Driver::get().context(to);
    (void)Driver::get().context(from);
}

CUresult peer(CUstream null_stream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
              CUcontext from_context, std::size_t bytes) {
    return call([&] {
        check_contexts(to_context, from_context);
        return on_device(null_stream, to, from, bytes);
    });
}
CUresult peer_async(CUstream null_stream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                    CUcontext from_context, std::size_t bytes, CUstream stream) {
    return call([&] {
        check_contexts(to_context, from_context);
        return on_device_async(null_stream, to, from, bytes, stream);
    });
}

// ---- rectangles and boxes ----

struct Operand {
    Side side;
    Where where = Where::anywhere;
};

Operand operand(CUmemorytype type, const void* host, CUdeviceptr device) {
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return {{address_of(host)}, Where::host};
    case CU_MEMORYTYPE_DEVICE:
        return {{device}, Where::device};
    case CU_MEMORYTYPE_UNIFIED:
        return {{device}, Where::anywhere};
    case CU_MEMORYTYPE_ARRAY:
        throw Error(CUDA_ERROR_NOT_SUPPORTED); // there are no arrays
    }
    throw Error(CUDA_ERROR_INVALID_VALUE);
}

CUresult rectangle(CUstream null_stream, const CUDA_MEMCPY2D* what, CUstream stream, bool async) {
    return call([&] {
        require(what != nullptr);
        auto to = operand(what->dstMemoryType, what->dstHost, what->dstDevice);
        auto from = operand(what->srcMemoryType, what->srcHost, what->srcDevice);
        // A pitch of 0 means that the rows lie without gaps.
        to.side.pitch = what->dstPitch != 0 ? what->dstPitch : what->WidthInBytes + what->dstXInBytes;
        from.side.pitch = what->srcPitch != 0 ? what->srcPitch : what->WidthInBytes + what->srcXInBytes;
        require(to.side.pitch >= what->WidthInBytes + what->dstXInBytes &&
                from.side.pitch >= what->WidthInBytes + what->srcXInBytes);
        to.side.address += what->dstY * to.side.pitch + what->dstXInBytes;
        from.side.address += what->srcY * from.side.pitch + what->srcXInBytes;
        return transfer(null_stream, stream, to.side, to.where, from.side, from.where,
                        {what->WidthInBytes, what->Height, 1}, async);
    });
}
CUresult rectangle_sync(CUstream null_stream, const CUDA_MEMCPY2D* what) {
    return rectangle(null_stream, what, nullptr, false);
}
CUresult rectangle_async(CUstream null_stream, const CUDA_MEMCPY2D* what, CUstream stream) {
    return rectangle(null_stream, what, stream, true);
}

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER name the same things alike.
template <class Description>
CUresult box(CUstream null_stream, const Description* what, CUstream stream, bool async) {
    return call([&] {
        require(what != nullptr && what->srcLOD == 0 && what->dstLOD == 0);
        auto to = operand(what->dstMemoryType, what->dstHost, what->dstDevice);
        auto from = operand(what->srcMemoryType, what->srcHost, what->srcDevice);
        const auto lay_out = [&](Side& side, std::size_t pitch, std::size_t height, std::size_t x,
                                 std::size_t y, std::size_t z) {
            side.pitch = pitch != 0 ? pitch : what->WidthInBytes + x;
            require(side.pitch >= what->WidthInBytes + x);
            const auto rows = height != 0 ? height : what->Height + y;
            require(what->Depth <= 1 || rows >= what->Height + y);
            side.slice = side.pitch * rows;
            side.address += z * side.slice + y * side.pitch + x;
        };
        lay_out(to.side, what->dstPitch, what->dstHeight, what->dstXInBytes, what->dstY, what->dstZ);
        lay_out(from.side, what->srcPitch, what->srcHeight, what->srcXInBytes, what->srcY, what->srcZ);
        return transfer(null_stream, stream, to.side, to.where, from.side, from.where,
                        {what->WidthInBytes, what->Height, what->Depth}, async);
    });
}
CUresult box_sync(CUstream null_stream, const CUDA_MEMCPY3D* what) {
    return box(null_stream, what, nullptr, false);
}
CUresult box_async(CUstream null_stream, const CUDA_MEMCPY3D* what, CUstream stream) {
    return box(null_stream, what, stream, true);
}
CUresult box_peer(CUstream null_stream, const CUDA_MEMCPY3D_PEER* what) {
    return box(null_stream, what, nullptr, false);
}
CUresult box_peer_async(CUstream null_stream, const CUDA_MEMCPY3D_PEER* what, CUstream stream) {
    return box(null_stream, what, stream, true);
}

} // namespace

SOFTGPU_API_PTDS(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes), any, to, from, bytes)
SOFTGPU_API_PTSZ(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream),
                 any_async, to, from, bytes, stream)
SOFTGPU_API_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, std::size_t bytes), to_device, to, from,
                 bytes)
SOFTGPU_API_PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream),
                 to_device_async, to, from, bytes, stream)
SOFTGPU_API_PTDS(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, std::size_t bytes), to_host, to, from, bytes)
SOFTGPU_API_PTSZ(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream),
                 to_host_async, to, from, bytes, stream)
SOFTGPU_API_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes), on_device, to, from,
                 bytes)
SOFTGPU_API_PTSZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream),
                 on_device_async, to, from, bytes, stream)
SOFTGPU_API_PTDS(cuMemcpyPeer,
                 (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                  std::size_t bytes),
                 peer, to, to_context, from, from_context, bytes)
SOFTGPU_API_PTSZ(cuMemcpyPeerAsync,
                 (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                  std::size_t bytes, CUstream stream),
                 peer_async, to, to_context, from, from_context, bytes, stream)
SOFTGPU_API_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* what), rectangle_sync, what)
SOFTGPU_API_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* what), rectangle_sync, what)
SOFTGPU_API_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* what, CUstream stream), rectangle_async, what,
                 stream)
SOFTGPU_API_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* what), box_sync, what)
SOFTGPU_API_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* what, CUstream stream), box_async, what, stream)
SOFTGPU_API_PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* what), box_peer, what)
SOFTGPU_API_PTSZ(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* what, CUstream stream), box_peer_async, what,
                 stream)
