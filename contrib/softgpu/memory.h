// SPDX-License-Identifier: BSD-3-Clause
// All memory of this process that the driver knows: device memory, pinned and registered host memory,
// reserved ranges. A device pointer is also the host pointer.
#pragma once

#include "contrib/softgpu/cuda_api.h"
#include "contrib/softgpu/page_map.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

namespace softgpu {

class SharedState;

// The range of addresses that a device's memory is handed out from. Inaccessible but where memory is
// allocated. Not thread-safe: Memory keeps the lock.
class Arena {
public:
    // capacity: the most bytes that will be allocated at one time. Throws std::bad_alloc.
    explicit Arena(std::uint64_t capacity);
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // bytes: a multiple of page_size. The memory is zero. Throws std::bad_alloc.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes);
    void release(std::uint64_t address, std::uint64_t bytes) noexcept;
    [[nodiscard]] bool touches(std::uint64_t address, std::uint64_t size) const {
        return address < base_ + size_ && base_ < address + size;
    }

private:
    std::uint64_t base_ = 0;
    std::uint64_t size_ = 0;
    std::map<std::uint64_t, std::uint64_t> free_; // begin -> bytes, never adjacent
};

enum class MemoryKind { device, managed, constant, host, registered, mapped };

struct Allocation {
    std::uint64_t base = 0;
    std::uint64_t size = 0; // as asked for
    MemoryKind kind = MemoryKind::device;
    int device = 0;              // index
    std::uint64_t context = 0;   // Context::id(), 0: none
    unsigned flags = 0;          // of cuMemHostAlloc, cuMemHostRegister
    std::uint64_t id = 0;        // never used twice
    CUmemoryPool pool = nullptr; // allocated from
    [[nodiscard]] bool on_host() const { return kind == MemoryKind::host || kind == MemoryKind::registered; }
    [[nodiscard]] std::uint64_t end() const { return base + size; }
};

// Whether the process has memory at all of these addresses.
[[nodiscard]] bool is_mapped(std::uint64_t address, std::uint64_t size);

// Thread-safe.
class Memory {
public:
    // Devices are added once, in the order of their index, before anything else is called.
    void add_device(SharedState& shared);

    // Device memory (device, managed or constant), charged to the device. Throws Error (OUT_OF_MEMORY).
    [[nodiscard]] std::uint64_t allocate(Allocation wanted);
    // Page-locked host memory.
    [[nodiscard]] std::uint64_t allocate_host(Allocation wanted);
    // Notes a range that others own: registered host memory (HOST_MEMORY_ALREADY_REGISTERED where one
    // overlaps), and mappings.
    void add(const Allocation& range, ptx::PageState state = ptx::kPageReadWrite);

    // Takes the allocation that begins at `base` out, and frees it where it is ours. False if there is none
    // of a kind that `accept` takes.
    template <class Accept>
    bool remove(std::uint64_t base, Accept accept) {
        const std::unique_lock guard(mutex_);
        const auto found = allocations_.find(base);
        if (found == allocations_.end() || !accept(found->second))
            return false;
        discard(found->second);
        allocations_.erase(found);
        return true;
    }
    void remove_context(std::uint64_t context);

    // The allocation that holds the address.
    [[nodiscard]] std::optional<Allocation> find(std::uint64_t address) const;
    // Whether all of the range lies in one allocation (or in mappings side by side).
    [[nodiscard]] bool contains(std::uint64_t address, std::uint64_t size) const;
    // Whether any of the range is set aside for device memory, allocated or not.
    [[nodiscard]] bool touches_device_range(std::uint64_t address, std::uint64_t size) const;
    [[nodiscard]] const ptx::AddressSpace& space() const { return pages_.space(); }
    [[nodiscard]] SharedState& shared(int device) {
        return *devices_.at(static_cast<std::size_t>(device)).shared;
    }

private:
    struct DeviceMemory {
        SharedState* shared;
        std::unique_ptr<Arena> arena;
    };
    void insert(Allocation allocation, ptx::PageState state);
    void discard(const Allocation& allocation) noexcept;
    [[nodiscard]] bool overlaps(std::uint64_t base, std::uint64_t size) const;

    mutable std::shared_mutex mutex_;
    PageMap pages_;
    std::vector<DeviceMemory> devices_;
    std::map<std::uint64_t, Allocation> allocations_; // by base, never overlapping
    std::uint64_t next_id_ = 1;
};

} // namespace softgpu
