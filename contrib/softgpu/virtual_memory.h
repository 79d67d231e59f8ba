// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management: address ranges, physical memory, and mappings of the one into the other.
#pragma once

#include "contrib/softgpu/cuda_api.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace softgpu {

class Memory;
class SharedState;

// Sizes and addresses are multiples of it.
inline constexpr std::uint64_t vmm_granularity = std::uint64_t{2} << 20;

// Memory of a device without an address. Charged to the device while it lives.
class PhysicalMemory {
public:
    PhysicalMemory(SharedState& shared, std::uint64_t size,
                   const CUmemAllocationProp& properties); // throws Error
    ~PhysicalMemory();
    PhysicalMemory(const PhysicalMemory&) = delete;
    PhysicalMemory& operator=(const PhysicalMemory&) = delete;

    [[nodiscard]] int file() const { return file_; }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] const CUmemAllocationProp& properties() const { return properties_; }
    [[nodiscard]] CUmemGenericAllocationHandle handle() const {
        return reinterpret_cast<CUmemGenericAllocationHandle>(this);
    }

    int references = 1; // of the program; guarded by VirtualMemory

private:
    SharedState& shared_;
    const std::uint64_t size_;
    const CUmemAllocationProp properties_;
    int file_ = -1;
};

// Thread-safe. All throw Error.
class VirtualMemory {
public:
    explicit VirtualMemory(Memory& memory) : memory_(memory) {}

    [[nodiscard]] std::uint64_t reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint);
    void unreserve(std::uint64_t base, std::uint64_t size);
    void map(std::uint64_t base, std::uint64_t size, std::shared_ptr<PhysicalMemory> physical);
    void unmap(std::uint64_t base, std::uint64_t size);
    void set_access(std::uint64_t base, std::uint64_t size, CUmemAccess_flags access);
    [[nodiscard]] CUmemAccess_flags access(std::uint64_t address);
    // Counts a reference more, or one less; the last one takes the handle away.
    [[nodiscard]] CUmemGenericAllocationHandle retain(std::uint64_t address);
    void release(CUmemGenericAllocationHandle handle);

private:
    struct Mapping {
        std::uint64_t size;
        std::shared_ptr<PhysicalMemory> physical;
        CUmemAccess_flags access;
    };
    using Mappings = std::map<std::uint64_t, Mapping>; // by base
    // The mappings that make up exactly this range.
    [[nodiscard]] std::pair<Mappings::iterator, Mappings::iterator> exactly(std::uint64_t base,
                                                                            std::uint64_t size);
    [[nodiscard]] Mappings::iterator at(std::uint64_t address);
    void forget_access(std::uint64_t base, Mapping& mapping);

    Memory& memory_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> ranges_; // base -> size
    Mappings mappings_;
};

} // namespace softgpu
