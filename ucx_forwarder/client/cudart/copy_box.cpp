// SPDX-License-Identifier: BSD-3-Clause
// Two- and three-dimensional copies, with pitched memory or arrays on either side.
#include "ucx_forwarder/client/cudart/array.h"
#include "ucx_forwarder/client/cudart/copy.h"
#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

CUmemorytype memory_type(const CopySide& side, bool host, bool unified) noexcept {
    if (side.array)
        return CU_MEMORYTYPE_ARRAY;
    if (unified)
        return CU_MEMORYTYPE_UNIFIED;
    return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

/// Fills either CUDA_MEMCPY2D or the planar part of CUDA_MEMCPY3D.
template <class Copy>
void fill_plane(Copy& copy, const CopySide& destination, const CopySide& source, std::size_t width,
                std::size_t height, cudaMemcpyKind kind) noexcept {
    const bool unified = kind == cudaMemcpyDefault;
    copy.srcMemoryType =
        memory_type(source, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost, unified);
    copy.dstMemoryType =
        memory_type(destination, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost, unified);
    copy.srcXInBytes = source.x;
    copy.srcY = source.y;
    copy.srcHost = source.pointer;
    copy.srcDevice = device_pointer(source.pointer);
    copy.srcArray = source.array;
    copy.srcPitch = source.pitch;
    copy.dstXInBytes = destination.x;
    copy.dstY = destination.y;
    copy.dstHost = const_cast<void*>(destination.pointer);
    copy.dstDevice = device_pointer(destination.pointer);
    copy.dstArray = destination.array;
    copy.dstPitch = destination.pitch;
    copy.WidthInBytes = width;
    copy.Height = height;
}

CUresult copy_plane(const CopySide& destination, const CopySide& source, std::size_t width,
                    std::size_t height, cudaMemcpyKind kind, CopyOrder order) noexcept {
    CUDA_MEMCPY2D copy{};
    fill_plane(copy, destination, source, width, height, kind);
    if (order.blocking && !order.stream)
        return driver().cuMemcpy2DUnaligned(&copy);
    return driver().cuMemcpy2DAsync(&copy, order.stream);
}

CUresult copy_volume(const CopySide& destination, const CopySide& source, std::size_t width,
                     std::size_t height, std::size_t depth, cudaMemcpyKind kind, CopyOrder order) noexcept {
    CUDA_MEMCPY3D copy{};
    fill_plane(copy, destination, source, width, height, kind);
    copy.srcZ = source.z;
    copy.srcHeight = source.height;
    copy.dstZ = destination.z;
    copy.dstHeight = destination.height;
    copy.Depth = depth;
    if (order.blocking && !order.stream)
        return driver().cuMemcpy3D(&copy);
    return driver().cuMemcpy3DAsync(&copy, order.stream);
}

struct Box {
    CopySide destination;
    CopySide source;
    std::size_t width = 0; // bytes
    std::size_t height = 0;
    std::size_t depth = 0;
};

/// Positions and widths are in elements where an array takes part, else in bytes.
template <class Parameters>
cudaError_t to_box(const Parameters& p, Box& box) {
    std::size_t source_element = 1;
    std::size_t destination_element = 1;
    if (p.srcArray)
        if (const cudaError_t error = array_element_size(p.srcArray, source_element); error != cudaSuccess)
            return error;
    if (p.dstArray)
        if (const cudaError_t error = array_element_size(p.dstArray, destination_element);
            error != cudaSuccess)
            return error;
    if (p.srcArray && p.dstArray && source_element != destination_element)
        return cudaErrorInvalidValue;
    if ((!p.srcArray && !p.srcPtr.ptr) || (!p.dstArray && !p.dstPtr.ptr))
        return cudaErrorInvalidValue;
    box.source = {p.srcPtr.ptr,
                  p.srcPtr.pitch,
                  p.srcPtr.ysize,
                  reinterpret_cast<CUarray>(p.srcArray),
                  p.srcPos.x * source_element,
                  p.srcPos.y,
                  p.srcPos.z};
    box.destination = {p.dstPtr.ptr,
                       p.dstPtr.pitch,
                       p.dstPtr.ysize,
                       reinterpret_cast<CUarray>(p.dstArray),
                       p.dstPos.x * destination_element,
                       p.dstPos.y,
                       p.dstPos.z};
    box.width = p.extent.width * (p.srcArray ? source_element : destination_element);
    box.height = p.extent.height;
    box.depth = p.extent.depth;
    return cudaSuccess;
}

cudaError_t copy_3d(const cudaMemcpy3DParms* p, CopyOrder order) {
    Box box;
    if (const cudaError_t error = to_box(*p, box); error != cudaSuccess)
        return error;
    return copy_box(box.destination, box.source, box.width, box.height, box.depth, p->kind, order);
}

cudaError_t copy_3d_peer(const cudaMemcpy3DPeerParms* p, CopyOrder order) {
    Box box;
    if (const cudaError_t error = to_box(*p, box); error != cudaSuccess)
        return error;
    if (box.width == 0 || box.height == 0 || box.depth == 0)
        return cudaSuccess;
    CUDA_MEMCPY3D_PEER copy{};
    fill_plane(copy, box.destination, box.source, box.width, box.height, cudaMemcpyDefault);
    copy.srcZ = box.source.z;
    copy.srcHeight = box.source.height;
    copy.dstZ = box.destination.z;
    copy.dstHeight = box.destination.height;
    copy.Depth = box.depth;
    if (const cudaError_t error = primary_context(p->srcDevice, copy.srcContext); error != cudaSuccess)
        return error;
    if (const cudaError_t error = primary_context(p->dstDevice, copy.dstContext); error != cudaSuccess)
        return error;
    if (order.blocking && !order.stream)
        return to_error(driver().cuMemcpy3DPeer(&copy));
    CUresult result = driver().cuMemcpy3DPeerAsync(&copy, order.stream);
    if (result == CUDA_SUCCESS && order.blocking)
        result = driver().cuStreamSynchronize(order.stream);
    return to_error(result);
}

cudaError_t copy_2d(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                    size_t width, size_t height, cudaMemcpyKind kind, CopyOrder order) {
    if (width > destination_pitch || width > source_pitch)
        return cudaErrorInvalidPitchValue;
    if (!destination || !source)
        return cudaErrorInvalidValue;
    return copy_box({.pointer = destination, .pitch = destination_pitch, .height = height},
                    {.pointer = source, .pitch = source_pitch, .height = height}, width, height, 1, kind,
                    order);
}

CopySide array_side(cudaArray_const_t array, size_t x, size_t y) {
    return {.array = reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array)), .x = x, .y = y};
}

cudaError_t copy_2d_to_array(cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch,
                             size_t width, size_t height, cudaMemcpyKind kind, CopyOrder order) {
    if (!array || !source)
        return cudaErrorInvalidValue;
    if (width > pitch)
        return cudaErrorInvalidPitchValue;
    return copy_box(array_side(array, x, y), {.pointer = source, .pitch = pitch, .height = height}, width,
                    height, 1, kind, order);
}

cudaError_t copy_2d_from_array(void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y,
                               size_t width, size_t height, cudaMemcpyKind kind, CopyOrder order) {
    if (!array || !destination)
        return cudaErrorInvalidValue;
    if (width > pitch)
        return cudaErrorInvalidPitchValue;
    return copy_box({.pointer = destination, .pitch = pitch, .height = height}, array_side(array, x, y),
                    width, height, 1, kind, order);
}

} // namespace

cudaError_t copy_box(const CopySide& destination, const CopySide& source, std::size_t width,
                     std::size_t height, std::size_t depth, cudaMemcpyKind kind, CopyOrder order) noexcept {
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (width == 0 || height == 0 || depth == 0)
        return cudaSuccess;
    const bool flat = depth == 1 && source.z == 0 && destination.z == 0;
    CUresult result = flat ? copy_plane(destination, source, width, height, kind, order)
                           : copy_volume(destination, source, width, height, depth, kind, order);
    if (result == CUDA_SUCCESS && order.blocking && order.stream)
        result = driver().cuStreamSynchronize(order.stream);
    return to_error(result);
}

} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT_BOTH(_ptds, cudaMemcpy2D,
                 (void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                  size_t width, size_t height, cudaMemcpyKind kind),
                 {
                     return in_context([&](const Driver&) {
                         return copy_2d(destination, destination_pitch, source, source_pitch, width, height,
                                        kind, blocking(per_thread));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpy2DAsync,
                 (void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                  size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                 {
                     return in_context([&](const Driver&) {
                         return copy_2d(destination, destination_pitch, source, source_pitch, width, height,
                                        kind, ordered(on(stream)));
                     });
                 })

VGPU_EXPORT_BOTH(_ptds, cudaMemcpy2DToArray,
                 (cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch, size_t width,
                  size_t height, cudaMemcpyKind kind),
                 {
                     return in_context([&](const Driver&) {
                         return copy_2d_to_array(array, x, y, source, pitch, width, height, kind,
                                                 blocking(per_thread));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpy2DToArrayAsync,
                 (cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch, size_t width,
                  size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                 {
                     return in_context([&](const Driver&) {
                         return copy_2d_to_array(array, x, y, source, pitch, width, height, kind,
                                                 ordered(on(stream)));
                     });
                 })

VGPU_EXPORT_BOTH(_ptds, cudaMemcpy2DFromArray,
                 (void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
                  size_t height, cudaMemcpyKind kind),
                 {
                     return in_context([&](const Driver&) {
                         return copy_2d_from_array(destination, pitch, array, x, y, width, height, kind,
                                                   blocking(per_thread));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpy2DFromArrayAsync,
                 (void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
                  size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                 {
                     return in_context([&](const Driver&) {
                         return copy_2d_from_array(destination, pitch, array, x, y, width, height, kind,
                                                   ordered(on(stream)));
                     });
                 })

VGPU_EXPORT_BOTH(_ptds, cudaMemcpy2DArrayToArray,
                 (cudaArray_t destination, size_t to_x, size_t to_y, cudaArray_const_t source, size_t from_x,
                  size_t from_y, size_t width, size_t height, cudaMemcpyKind kind),
                 {
                     if (!destination || !source)
                         return record(cudaErrorInvalidValue);
                     return in_context([&](const Driver&) {
                         return copy_box(array_side(destination, to_x, to_y),
                                         array_side(source, from_x, from_y), width, height, 1, kind,
                                         blocking(per_thread));
                     });
                 })

VGPU_EXPORT_BOTH(_ptds, cudaMemcpy3D, (const cudaMemcpy3DParms* p), {
    if (!p)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver&) { return copy_3d(p, blocking(per_thread)); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpy3DAsync, (const cudaMemcpy3DParms* p, cudaStream_t stream), {
    if (!p)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver&) { return copy_3d(p, ordered(on(stream))); });
})

VGPU_EXPORT_BOTH(_ptds, cudaMemcpy3DPeer, (const cudaMemcpy3DPeerParms* p), {
    if (!p)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver&) { return copy_3d_peer(p, blocking(per_thread)); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpy3DPeerAsync, (const cudaMemcpy3DPeerParms* p, cudaStream_t stream), {
    if (!p)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver&) { return copy_3d_peer(p, ordered(on(stream))); });
})
