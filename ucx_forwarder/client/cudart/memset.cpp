// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cudart/copy.h"
#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

CUresult set_plane(const Driver& d, CUdeviceptr at, std::size_t pitch, int value, std::size_t width,
                   std::size_t height, CopyOrder order) {
    const auto byte = static_cast<unsigned char>(value);
    const bool whole = height == 1 || pitch == width;
    if (order.blocking && !order.stream)
        return whole ? d.cuMemsetD8(at, byte, width * height)
                     : d.cuMemsetD2D8(at, pitch, byte, width, height);
    return whole ? d.cuMemsetD8Async(at, byte, width * height, order.stream)
                 : d.cuMemsetD2D8Async(at, pitch, byte, width, height, order.stream);
}

cudaError_t set_box(cudaPitchedPtr to, int value, cudaExtent extent, CopyOrder order) {
    if (extent.width == 0 || extent.height == 0 || extent.depth == 0)
        return cudaSuccess;
    if (!to.ptr)
        return cudaErrorInvalidValue;
    if (extent.height > 1 && extent.width > to.pitch)
        return cudaErrorInvalidPitchValue;
    if (extent.depth > 1 && extent.height > to.ysize)
        return cudaErrorInvalidValue;
    const Driver& d = driver();
    CUresult result = CUDA_SUCCESS;
    if (extent.height == to.ysize || extent.depth == 1) {
        result = set_plane(d, device_pointer(to.ptr), to.pitch, value, extent.width,
                           extent.height * extent.depth, order);
    } else {
        for (std::size_t z = 0; z < extent.depth && result == CUDA_SUCCESS; ++z)
            result = set_plane(d, device_pointer(to.ptr) + z * to.ysize * to.pitch, to.pitch, value,
                               extent.width, extent.height, order);
    }
    // Of the per-thread variants: as asynchronous to the host as cuMemset is, ordered on the thread's stream.
    return to_error(result);
}

cudaError_t set_linear(void* pointer, int value, std::size_t bytes, CopyOrder order) {
    return set_box({pointer, bytes, bytes, 1}, value, {bytes, 1, 1}, order);
}

} // namespace
} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT_BOTH(_ptds, cudaMemset, (void* pointer, int value, size_t bytes), {
    return in_context([&](const Driver&) { return set_linear(pointer, value, bytes, blocking(per_thread)); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaMemsetAsync, (void* pointer, int value, size_t bytes, cudaStream_t stream), {
    return in_context([&](const Driver&) { return set_linear(pointer, value, bytes, ordered(on(stream))); });
})

VGPU_EXPORT_BOTH(_ptds, cudaMemset2D, (void* pointer, size_t pitch, int value, size_t width, size_t height), {
    return in_context([&](const Driver&) {
        return set_box({pointer, pitch, width, height}, value, {width, height, 1}, blocking(per_thread));
    });
})

VGPU_EXPORT_BOTH(
    _ptsz, cudaMemset2DAsync,
    (void* pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream), {
        return in_context([&](const Driver&) {
            return set_box({pointer, pitch, width, height}, value, {width, height, 1}, ordered(on(stream)));
        });
    })

VGPU_EXPORT_BOTH(_ptds, cudaMemset3D, (cudaPitchedPtr to, int value, cudaExtent extent), {
    return in_context([&](const Driver&) { return set_box(to, value, extent, blocking(per_thread)); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaMemset3DAsync,
                 (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream), {
                     return in_context(
                         [&](const Driver&) { return set_box(to, value, extent, ordered(on(stream))); });
                 })
