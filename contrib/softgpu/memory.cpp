// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/memory.h"

#include "contrib/softgpu/error.h"
#include "contrib/softgpu/shared_state.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <new>
#include <sys/mman.h>

namespace softgpu {
namespace {

void* as_pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(address);
}

} // namespace

bool is_mapped(std::uint64_t address, std::uint64_t size) {
    const auto end = page_ceil(address + size);
    address = page_floor(address);
    if (end < address)
        return false;
    // mincore answers a byte a page, which is of no interest here, and fails where there is a hole.
    std::array<unsigned char, 1024> resident;
    while (address < end) {
        const auto piece = std::min<std::uint64_t>(end - address, resident.size() * page_size);
        if (::mincore(as_pointer(address), piece, resident.data()) != 0)
            return false;
        address += piece;
    }
    return true;
}

// ---- Arena ----

Arena::Arena(std::uint64_t capacity) {
    // Addresses cost nothing, so that fragmentation need never matter; a process whose address space is
    // limited (ulimit -v) gets less.
    for (size_ = page_ceil(capacity) * 16; size_ >= page_ceil(capacity); size_ /= 2) {
        void* range = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            continue;
        ::madvise(range, size_, MADV_DONTDUMP);
        base_ = reinterpret_cast<std::uint64_t>(range);
        free_[base_] = size_;
        return;
    }
    throw std::bad_alloc();
}

Arena::~Arena() {
    ::munmap(as_pointer(base_), size_);
}

std::uint64_t Arena::allocate(std::uint64_t bytes) {
    const auto found =
        std::find_if(free_.begin(), free_.end(), [&](const auto& range) { return range.second >= bytes; });
    if (found == free_.end())
        throw std::bad_alloc();
    const auto [address, size] = *found;
    if (::mprotect(as_pointer(address), bytes, PROT_READ | PROT_WRITE) != 0)
        throw std::bad_alloc();
    free_.erase(found);
    if (size > bytes)
        free_[address + bytes] = size - bytes;
    return address;
}

void Arena::release(std::uint64_t address, std::uint64_t bytes) noexcept {
    ::madvise(as_pointer(address), bytes, MADV_DONTNEED);
    ::mprotect(as_pointer(address), bytes, PROT_NONE);
    auto next = free_.lower_bound(address);
    if (next != free_.end() && next->first == address + bytes) {
        bytes += next->second;
        next = free_.erase(next);
    }
    if (next != free_.begin()) {
        const auto previous = std::prev(next);
        if (previous->first + previous->second == address) {
            previous->second += bytes;
            return;
        }
    }
    free_[address] = bytes;
}

// ---- Memory ----

void Memory::add_device(SharedState& shared) {
    devices_.push_back({&shared, std::make_unique<Arena>(shared.total())});
}

std::uint64_t Memory::allocate(Allocation wanted) {
    require(wanted.size != 0);
    auto& device = devices_.at(static_cast<std::size_t>(wanted.device));
    // Before rounding up, which could overflow.
    require(wanted.size <= device.shared->total(), CUDA_ERROR_OUT_OF_MEMORY);
    const auto bytes = page_ceil(wanted.size);
    require(device.shared->take(bytes), CUDA_ERROR_OUT_OF_MEMORY);
    const std::unique_lock guard(mutex_);
    try {
        wanted.base = device.arena->allocate(bytes);
        try {
            insert(wanted, wanted.kind == MemoryKind::constant ? ptx::kPageReadOnly : ptx::kPageReadWrite);
        } catch (...) {
            device.arena->release(wanted.base, bytes);
            throw;
        }
    } catch (const std::bad_alloc&) {
        device.shared->give(bytes);
        throw Error(CUDA_ERROR_OUT_OF_MEMORY);
    }
    return wanted.base;
}

std::uint64_t Memory::allocate_host(Allocation wanted) {
    require(wanted.size != 0);
    require(wanted.size < std::uint64_t{1} << 46, CUDA_ERROR_OUT_OF_MEMORY);
    const auto bytes = page_ceil(wanted.size);
    void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(pages != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
    wanted.base = reinterpret_cast<std::uint64_t>(pages);
    const std::unique_lock guard(mutex_);
    try {
        insert(wanted, ptx::kPageReadWrite);
    } catch (const std::bad_alloc&) {
        ::munmap(pages, bytes);
        throw Error(CUDA_ERROR_OUT_OF_MEMORY);
    }
    return wanted.base;
}

void Memory::add(const Allocation& range, ptx::PageState state) {
    const std::unique_lock guard(mutex_);
    require(!overlaps(range.base, range.size), range.kind == MemoryKind::registered
                                                   ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                   : CUDA_ERROR_INVALID_VALUE);
    insert(range, state);
}

void Memory::insert(Allocation allocation, ptx::PageState state) {
    allocation.id = next_id_++;
    const auto added = allocations_.emplace(allocation.base, allocation).first;
    try {
        pages_.set(allocation.base, allocation.size, state);
    } catch (...) {
        allocations_.erase(added);
        throw;
    }
}

void Memory::discard(const Allocation& allocation) noexcept {
    pages_.set(allocation.base, allocation.size, ptx::kPageNone); // needs no memory
    const auto bytes = page_ceil(allocation.size);
    switch (allocation.kind) {
    case MemoryKind::device:
    case MemoryKind::managed:
    case MemoryKind::constant: {
        auto& device = devices_[static_cast<std::size_t>(allocation.device)];
        device.arena->release(allocation.base, bytes);
        try {
            device.shared->give(bytes);
        } catch (const std::exception& e) {
            complain(std::string("memory that was freed may still count: ") + e.what());
        }
        break;
    }
    case MemoryKind::host:
        ::munmap(as_pointer(allocation.base), bytes);
        break;
    case MemoryKind::registered:
    case MemoryKind::mapped:
        break;
    }
}

void Memory::remove_context(std::uint64_t context) {
    const std::unique_lock guard(mutex_);
    for (auto i = allocations_.begin(); i != allocations_.end();) {
        if (i->second.context != context) {
            ++i;
            continue;
        }
        discard(i->second);
        i = allocations_.erase(i);
    }
}

bool Memory::overlaps(std::uint64_t base, std::uint64_t size) const {
    const auto next = allocations_.lower_bound(base);
    if (next != allocations_.end() && next->first < base + size)
        return true;
    return next != allocations_.begin() && std::prev(next)->second.end() > base;
}

std::optional<Allocation> Memory::find(std::uint64_t address) const {
    const std::shared_lock guard(mutex_);
    const auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin())
        return std::nullopt;
    const auto& allocation = std::prev(next)->second;
    if (address >= allocation.end())
        return std::nullopt;
    return allocation;
}

bool Memory::touches_device_range(std::uint64_t address, std::uint64_t size) const {
    // The arenas stay where they are, no lock is needed.
    return std::any_of(devices_.begin(), devices_.end(),
                       [&](const DeviceMemory& device) { return device.arena->touches(address, size); });
}

bool Memory::contains(std::uint64_t address, std::uint64_t size) const {
    const auto end = address + size;
    if (end < address)
        return false;
    const std::shared_lock guard(mutex_);
    auto next = allocations_.upper_bound(address);
    if (next == allocations_.begin())
        return false;
    // Of neighbours only mapped ranges count as one.
    for (auto i = std::prev(next);
         i != allocations_.end() && i->first <= address && i->second.end() > address; ++i) {
        if (i->second.end() >= end)
            return true;
        if (i->second.kind != MemoryKind::mapped)
            return false;
        address = i->second.end();
    }
    return false;
}

} // namespace softgpu
