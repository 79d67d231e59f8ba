// SPDX-License-Identifier: BSD-3-Clause
// How a number of shares becomes vGPUs. No state; used at submission, by vgpuctld and by the options' checks
// alike, so that all of them refuse the same requests in the same words.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace vgpu {

/// One sentence: what cannot be divided, and the nearest request that can.
struct ShareError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The vGPUs of one request on one node: all alike.
struct Shape {
    unsigned devices = 0; ///< how many vGPUs, each on a GPU of its own
    unsigned shares = 0;  ///< of each
};

/// `shares` in all, over `devices` vGPUs; 0: as few as hold the shares, that is one up to a whole GPU, and
/// beyond that whole GPUs only. Throws ShareError.
Shape divide_shares(unsigned shares, unsigned devices, unsigned shares_per_gpu);

/// The memory that goes with `shares` of a GPU of `gpu_mib`: in proportion, rounded down, at least 1.
std::uint64_t proportional_mib(unsigned shares, unsigned shares_per_gpu, std::uint64_t gpu_mib);

/// "1 share", "25 shares"
std::string share_count(std::uint64_t shares);

} // namespace vgpu
