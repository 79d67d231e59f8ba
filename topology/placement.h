// SPDX-License-Identifier: BSD-3-Clause
// Which GPUs a request gets: first fit. The caller gives the GPUs in the order to try (nodes in the order of
// the file, GPUs by index) and keeps account of what is free.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "topology/shares.h"

namespace vgpu {

/// One GPU with what nobody holds of it.
struct FreeGpu {
    std::string node;
    int index = 0; ///< on that node
    unsigned shares = 0;
    std::uint64_t memory_mib = 0;
    std::uint64_t total_mib = 0; ///< the whole GPU's memory
};

/// A place for one vGPU.
struct Place {
    std::size_t gpu = 0; ///< index into the list given
    unsigned shares = 0;
    std::uint64_t memory_mib = 0;
};

/// Not now: one sentence that begins with "no room" and says what was asked and what is free.
struct NoRoom : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Places for all vGPUs of `shape`, each on a GPU of its own and none over two; memory_mib is for each vGPU,
/// 0 for the part of the GPU's memory that goes with the shares. Throws NoRoom.
std::vector<Place> place(const std::vector<FreeGpu>& gpus, const Shape& shape, std::uint64_t memory_mib,
                         unsigned shares_per_gpu);

/// Why these GPUs, all of them free, could not hold the request either: one sentence, or "" if they could.
std::string never_fits(const std::vector<FreeGpu>& gpus, const Shape& shape, std::uint64_t memory_mib);

} // namespace vgpu
