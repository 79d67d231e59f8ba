// SPDX-License-Identifier: BSD-3-Clause
// Which addresses of this process kernels may touch: one byte for each 4 KiB page of (almost) the whole user
// address space, so that device memory, pinned memory and registered memory are all looked up alike. Only the
// pieces of the map that say something take memory.
#pragma once

#include "contrib/softgpu/ptx/engine.h"

#include <cstdint>

namespace softgpu {

inline constexpr std::uint64_t page_size = std::uint64_t{1} << ptx::kPageShift;

[[nodiscard]] constexpr std::uint64_t page_floor(std::uint64_t address) {
    return address & ~(page_size - 1);
}
[[nodiscard]] constexpr std::uint64_t page_ceil(std::uint64_t address) {
    return page_floor(address + page_size - 1);
}

class PageMap {
public:
    PageMap(); // throws std::bad_alloc
    ~PageMap();
    PageMap(const PageMap&) = delete;
    PageMap& operator=(const PageMap&) = delete;

    // For all pages that [address, address + size) touches. Addresses that no map can hold (below 80 GiB) are
    // left out: kernels cannot reach them. Calls must not overlap in time. Throws std::bad_alloc.
    void set(std::uint64_t address, std::uint64_t size, ptx::PageState state);

    // What an engine works on; valid as long as this object.
    [[nodiscard]] const ptx::AddressSpace& space() const { return space_; }

private:
    ptx::AddressSpace space_;
    std::uint8_t* pages_ = nullptr; // read-only where nothing was set yet
};

} // namespace softgpu
