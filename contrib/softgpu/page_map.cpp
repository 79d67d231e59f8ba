// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/page_map.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace softgpu {
namespace {

constexpr std::uint64_t user_space_end = std::uint64_t{1} << 47;
// The map is made writable in pieces of this many of its own bytes.
constexpr std::uint64_t piece = std::uint64_t{1} << 18;

} // namespace

PageMap::PageMap() {
    space_.base = ptx::kWindowsEnd;
    space_.size = user_space_end - page_size - space_.base;
    const auto bytes = space_.size >> ptx::kPageShift;
    // Readable zeroes, which cost no memory and count against no limit but that of the address space.
    void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED)
        throw std::bad_alloc();
    ::madvise(map, bytes, MADV_NOHUGEPAGE);
    ::madvise(map, bytes, MADV_DONTDUMP);
    pages_ = static_cast<std::uint8_t*>(map);
    space_.pages = pages_;
}

PageMap::~PageMap() {
    ::munmap(pages_, space_.size >> ptx::kPageShift);
}

void PageMap::set(std::uint64_t address, std::uint64_t size, ptx::PageState state) {
    const auto end = std::min(page_ceil(address + size), space_.base + space_.size);
    address = std::max(page_floor(address), space_.base);
    if (address >= end)
        return;
    const auto first = (address - space_.base) >> ptx::kPageShift;
    const auto last = (end - space_.base) >> ptx::kPageShift;
    const auto from = first / piece * piece;
    const auto to = std::min((last + piece - 1) / piece * piece, space_.size >> ptx::kPageShift);
    if (state != ptx::kPageNone && ::mprotect(pages_ + from, to - from, PROT_READ | PROT_WRITE) != 0)
        throw std::bad_alloc();
    std::memset(pages_ + first, state, last - first);
}

} // namespace softgpu
