// SPDX-License-Identifier: BSD-3-Clause
// Plain structs that travel as InP parameters.
#pragma once

#include "ucx_forwarder/protocol/descriptors.h"

#include <array>
#include <cstdint>

namespace vgpu::protocol {

/// BLAKE2b-256 of a module image.
using ImageHash = std::array<std::byte, 32>;

struct LaunchShape {
    std::uint32_t grid[3] = {1, 1, 1};
    std::uint32_t block[3] = {1, 1, 1};
    std::uint32_t shared_bytes = 0; ///< dynamic shared memory of a block
    std::uint32_t reserved = 0;
};

/// A 1D to 3D copy, what CUDA_MEMCPY2D and CUDA_MEMCPY3D say. A host side's rows travel packed: its pitch is
/// width_bytes and its slices follow each other, so that the body is exactly width_bytes * height * depth
/// bytes.
struct CopyShape {
    enum class Memory : std::uint32_t { host = 1, device = 2, array = 3 };
    struct Side {
        Memory memory = Memory::host;
        std::uint32_t level = 0;
        std::uint64_t x_bytes = 0, y = 0, z = 0;
        CUdeviceptr pointer = 0;  ///< device only
        WireId array;             ///< array only
        std::uint64_t pitch = 0;  ///< device only: bytes from row to row
        std::uint64_t height = 0; ///< device only: rows from slice to slice
    };
    Side from;
    Side to;
    std::uint64_t width_bytes = 0;
    std::uint64_t height = 1;
    std::uint64_t depth = 1;
    std::uint64_t async = 0; ///< 1: on the stream; 0: as the call without Async
};

} // namespace vgpu::protocol
