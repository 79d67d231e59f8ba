// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/engine.h"

#include <limits>

namespace softgpu::ptx {

DeviceHeap::DeviceHeap(std::uint64_t base, std::uint64_t size) {
    const std::uint64_t begin = (base + 15) & ~std::uint64_t{15};
    const std::uint64_t end = (base + size) & ~std::uint64_t{15};
    if (begin < end)
        free_.emplace(begin, end - begin);
}

std::uint64_t DeviceHeap::allocate(std::uint64_t bytes) {
    if (bytes > std::numeric_limits<std::uint64_t>::max() - 15)
        return 0;
    const std::uint64_t wanted = bytes == 0 ? 16 : (bytes + 15) & ~std::uint64_t{15};
    const std::lock_guard lock(mutex_);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
        const auto [begin, room] = *it;
        if (room < wanted)
            continue;
        free_.erase(it);
        if (room > wanted)
            free_.emplace(begin + wanted, room - wanted);
        used_.emplace(begin, wanted);
        return begin;
    }
    return 0;
}

bool DeviceHeap::release(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    const auto used = used_.find(address);
    if (used == used_.end())
        return false;
    auto [begin, bytes] = *used;
    used_.erase(used);
    auto next = free_.lower_bound(begin);
    if (next != free_.end() && begin + bytes == next->first) {
        bytes += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second == begin) {
            before->second += bytes;
            return true;
        }
    }
    free_.emplace(begin, bytes);
    return true;
}

} // namespace softgpu::ptx
