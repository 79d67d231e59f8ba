// SPDX-License-Identifier: BSD-3-Clause
// cuMemset*.
#include "contrib/softgpu/call.h"
#include "contrib/softgpu/copy.h"

#include <algorithm>
#include <limits>

using namespace softgpu;

namespace {

template <class Element>
CUresult fill(CUstream null_stream, CUstream handle, CUdeviceptr address, std::size_t pitch, Element value,
              std::size_t width, std::size_t height, bool async) {
    return context_call([&](Context& context) -> CUresult {
        const auto stream = context.stream(handle, null_stream);
        if (const auto error = stream->context().error(); error != CUDA_SUCCESS)
            return error;
        require(width <= std::numeric_limits<std::size_t>::max() / sizeof value);
        require(address % sizeof value == 0 && (height == 1 || pitch % sizeof value == 0));
        check_side({address, pitch}, {width * sizeof value, height, 1}, Where::device);
        const auto work = [=] {
            for (std::size_t y = 0; y < height; ++y)
                std::fill_n(reinterpret_cast<Element*>(address + y * pitch), width, value);
            return CUDA_SUCCESS;
        };
        if (!async)
            return stream->context().run(*stream, work);
        stream->context().submit(*stream, work);
        return CUDA_SUCCESS;
    });
}

template <class Element>
CUresult line(CUstream null_stream, CUdeviceptr address, Element value, std::size_t count) {
    return fill(null_stream, nullptr, address, 0, value, count, 1, false);
}
template <class Element>
CUresult line_async(CUstream null_stream, CUdeviceptr address, Element value, std::size_t count,
                    CUstream stream) {
    return fill(null_stream, stream, address, 0, value, count, 1, true);
}
template <class Element>
CUresult plane(CUstream null_stream, CUdeviceptr address, std::size_t pitch, Element value, std::size_t width,
               std::size_t height) {
    return fill(null_stream, nullptr, address, pitch, value, width, height, false);
}
template <class Element>
CUresult plane_async(CUstream null_stream, CUdeviceptr address, std::size_t pitch, Element value,
                     std::size_t width, std::size_t height, CUstream stream) {
    return fill(null_stream, stream, address, pitch, value, width, height, true);
}

} // namespace

#define SOFTGPU_MEMSET(bits, Element)                                                                        \
    SOFTGPU_API_PTDS(cuMemsetD##bits##_v2, (CUdeviceptr address, Element value, std::size_t count),          \
                     line<Element>, address, value, count)                                                   \
    SOFTGPU_API_PTSZ(cuMemsetD##bits##Async,                                                                 \
                     (CUdeviceptr address, Element value, std::size_t count, CUstream stream),               \
                     line_async<Element>, address, value, count, stream)                                     \
    SOFTGPU_API_PTDS(                                                                                        \
        cuMemsetD2D##bits##_v2,                                                                              \
        (CUdeviceptr address, std::size_t pitch, Element value, std::size_t width, std::size_t height),      \
        plane<Element>, address, pitch, value, width, height)                                                \
    SOFTGPU_API_PTSZ(cuMemsetD2D##bits##Async,                                                               \
                     (CUdeviceptr address, std::size_t pitch, Element value, std::size_t width,              \
                      std::size_t height, CUstream stream),                                                  \
                     plane_async<Element>, address, pitch, value, width, height, stream)

SOFTGPU_MEMSET(8, unsigned char)
SOFTGPU_MEMSET(16, unsigned short)
SOFTGPU_MEMSET(32, unsigned int)
