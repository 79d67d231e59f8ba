// SPDX-License-Identifier: BSD-3-Clause
#include "topology/shares.h"

#include <algorithm>
#include <string>

namespace vgpu {
namespace {

std::string number(std::uint64_t value) {
    return std::to_string(value);
}

std::string either(std::uint64_t low, std::uint64_t high) {
    return low == 0 || low == high ? number(high) : number(low) + " or " + number(high);
}

} // namespace

Shape divide_shares(unsigned shares, unsigned devices, unsigned shares_per_gpu) {
    const std::uint64_t n = shares, k = devices, whole = shares_per_gpu;
    if (n == 0)
        throw ShareError("0 shares are no vGPU: ask at least 1, as in --gres=vgpu:1");
    if (k == 0) {
        if (n <= whole)
            return {1, shares};
        if (n % whole != 0)
            throw ShareError(share_count(n) + " cannot be divided: a GPU has " + number(whole) +
                             " shares, and more than one GPU is had in whole GPUs only; ask " +
                             either(n / whole * whole, (n / whole + 1) * whole) +
                             ", or say over how many with --vgpu-devices");
        return {static_cast<unsigned>(n / whole), shares_per_gpu};
    }
    if (n > k * whole)
        throw ShareError(share_count(n) + " do not fit on " + number(k) + (k == 1 ? " device" : " devices") +
                         (k == 1 ? ", which has " : ", which have ") + number(whole) +
                         (k == 1 ? "" : " each") + ": ask at most " + number(k * whole) +
                         " shares, or --vgpu-devices=" + number((n + whole - 1) / whole) + " or more");
    if (n % k != 0)
        throw ShareError(share_count(n) + " cannot be divided evenly over " + number(k) + " devices: ask " +
                         either(n / k * k, (n / k + 1) * k));
    return {devices, static_cast<unsigned>(n / k)};
}

std::string share_count(std::uint64_t shares) {
    return number(shares) + (shares == 1 ? " share" : " shares");
}

std::uint64_t proportional_mib(unsigned shares, unsigned shares_per_gpu, std::uint64_t gpu_mib) {
    return std::max<std::uint64_t>(1, gpu_mib * shares / shares_per_gpu);
}

} // namespace vgpu
