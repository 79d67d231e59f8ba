// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/address_map.h"

#include <atomic>
#include <iterator>
#include <sys/mman.h>

namespace vgpu::client {

bool AddressMap::insert(Range range) {
    static std::atomic<std::uint64_t> last_id{0};
    std::unique_lock lock(mutex_);
    auto next = ranges_.lower_bound(range.base);
    if (next != ranges_.end() && next->first < range.base + range.size)
        return false;
    if (next != ranges_.begin()) {
        const Range& before = std::prev(next)->second;
        if (before.base + before.size > range.base)
            return false;
    }
    range.id = ++last_id;
    ranges_.emplace_hint(next, range.base, range);
    return true;
}

std::map<std::uint64_t, Range>::const_iterator AddressMap::containing(std::uint64_t address) const {
    auto it = ranges_.upper_bound(address);
    if (it == ranges_.begin())
        return ranges_.end();
    --it;
    return address - it->second.base < it->second.size ? it : ranges_.end();
}

std::optional<Range> AddressMap::find(std::uint64_t address) const {
    std::shared_lock lock(mutex_);
    auto it = containing(address);
    return it == ranges_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Range> AddressMap::find_overlap(std::uint64_t address, std::uint64_t size) const {
    std::shared_lock lock(mutex_);
    auto it = containing(address);
    if (it == ranges_.end()) {
        it = ranges_.lower_bound(address);
        if (it == ranges_.end() || it->first - address >= size)
            return {};
    }
    return it->second;
}

bool AddressMap::set_sync_memops(std::uint64_t address, bool on) {
    std::unique_lock lock(mutex_);
    auto it = containing(address);
    if (it == ranges_.end())
        return false;
    ranges_.find(it->first)->second.sync_memops = on;
    return true;
}

std::vector<Range> AddressMap::take_context(CUcontext context) {
    std::vector<Range> taken;
    std::unique_lock lock(mutex_);
    std::erase_if(ranges_, [&](const auto& entry) {
        if (entry.second.context != context)
            return false;
        taken.push_back(entry.second);
        return true;
    });
    return taken;
}

void Reservation::cover(std::uint64_t address, std::uint64_t size) {
    std::lock_guard lock(mutex_);
    for (std::uint64_t at = address & ~(page - 1); at < address + size; at += page) {
        if (!pages_.insert(at).second)
            continue;
        // Extend over the whole run of new pages at once: one system call for a large allocation.
        std::uint64_t end = at + page;
        while (end < address + size && pages_.insert(end).second)
            end += page;
        mmap(reinterpret_cast<void*>(at), end - at, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        at = end - page;
    }
}

bool Reservation::covers(std::uint64_t address) const {
    std::lock_guard lock(mutex_);
    return pages_.contains(address & ~(page - 1));
}

} // namespace vgpu::client
