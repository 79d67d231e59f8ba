// SPDX-License-Identifier: BSD-3-Clause
// Which addresses are whose: allocations on a worker's GPUs, and page-locked host memory. Any thread.
#pragma once

#include "ucx_forwarder/client/cuda/api.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <vector>

namespace vgpu::client {

struct Range {
    enum class Origin : std::uint8_t {
        device,     ///< cuMemAlloc and its kin
        pool,       ///< cuMemAllocAsync
        symbol,     ///< a module's global variable
        host_alloc, ///< cuMemHostAlloc, cuMemAllocHost
        host_registered
    };
    std::uint64_t base = 0;
    std::uint64_t size = 0;
    Origin origin = Origin::device;
    int device = 0;
    unsigned flags = 0; ///< host memory: CU_MEMHOSTALLOC_*, CU_MEMHOSTREGISTER_*
    CUcontext context = nullptr;
    CUmemoryPool pool = nullptr;
    std::uint64_t id = 0; ///< CU_POINTER_ATTRIBUTE_BUFFER_ID; set by insert()
    bool sync_memops = false;

    bool on_host() const { return origin >= Origin::host_alloc; }
};

class AddressMap {
public:
    /// False: it overlaps a range that is there, and nothing is inserted.
    bool insert(Range range);
    std::optional<Range> find(std::uint64_t address) const;
    /// Some range that [address, address + size) touches.
    std::optional<Range> find_overlap(std::uint64_t address, std::uint64_t size) const;
    /// Takes out the range that begins at this address, if `which` accepts it.
    template <class Which>
    std::optional<Range> take(std::uint64_t base, Which which) {
        std::unique_lock lock(mutex_);
        auto it = ranges_.find(base);
        if (it == ranges_.end() || !which(it->second))
            return {};
        Range range = it->second;
        ranges_.erase(it);
        return range;
    }
    bool set_sync_memops(std::uint64_t address, bool on);
    /// Takes out all ranges that belong to a context which ends.
    std::vector<Range> take_context(CUcontext context);

private:
    std::map<std::uint64_t, Range>::const_iterator containing(std::uint64_t address) const;

    mutable std::shared_mutex mutex_;
    std::map<std::uint64_t, Range> ranges_;
};

/// Keeps the addresses of device memory out of this process's own use, in the driver's 2 MiB pages, so that a
/// pointer is either a device's or the host's and never both. What the process already uses stays as it is.
class Reservation {
public:
    void cover(std::uint64_t address, std::uint64_t size);
    /// Was the address once a device's?
    bool covers(std::uint64_t address) const;

private:
    static constexpr std::uint64_t page = 2 << 20;
    mutable std::mutex mutex_;
    std::set<std::uint64_t> pages_;
};

} // namespace vgpu::client
