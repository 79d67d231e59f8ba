// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include "ucx_forwarder/client/cudart/driver.h"

namespace vgpu::cudart {

/// How a copy is ordered: blocking = returns when done (after the work of the legacy default stream, or, with
/// `stream`, of that stream); else as the stream does it.
struct CopyOrder {
    bool blocking = true;
    CUstream stream = nullptr;
};

/// The order of cudaMemcpy..., and of its variant for a default stream per thread.
[[nodiscard]] inline CopyOrder blocking(bool per_thread) noexcept {
    return {true, per_thread ? CU_STREAM_PER_THREAD : nullptr};
}
[[nodiscard]] inline CopyOrder ordered(CUstream stream) noexcept {
    return {false, stream};
}

/// One side of a two- or three-dimensional copy: memory with a pitch, or an array.
struct CopySide {
    const void* pointer = nullptr;
    std::size_t pitch = 0;  // bytes a row
    std::size_t height = 0; // rows a slice
    CUarray array = nullptr;
    std::size_t x = 0; // bytes
    std::size_t y = 0;
    std::size_t z = 0;
};

/// Copies `bytes`; a context is current.
[[nodiscard]] cudaError_t copy_linear(void* destination, const void* source, std::size_t bytes,
                                      cudaMemcpyKind kind, CopyOrder order) noexcept;

/// Copies depth slices of height rows of `width` bytes.
[[nodiscard]] cudaError_t copy_box(const CopySide& destination, const CopySide& source, std::size_t width,
                                   std::size_t height, std::size_t depth, cudaMemcpyKind kind,
                                   CopyOrder order) noexcept;

} // namespace vgpu::cudart
