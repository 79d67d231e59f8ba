// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/copy.h"

#include "contrib/softgpu/driver.h"
#include "contrib/softgpu/error.h"

#include <cstring>
#include <memory>
#include <vector>

namespace softgpu {
namespace {

// Pageable memory up to this size is copied aside, so that the caller need not wait for the stream.
constexpr std::size_t most_staged = std::size_t{1} << 20;

std::byte* as_pointer(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(address);
}

bool is_pageable(std::uint64_t address) {
    return !Driver::get().memory().find(address).has_value();
}

void copy_now(const Side& to, const Side& from, const Extent& extent) {
    const bool solid =
        extent.depth == 1 && (extent.height == 1 || (to.pitch == extent.width && from.pitch == extent.width));
    if (solid) {
        std::memmove(as_pointer(to.address), as_pointer(from.address), extent.width * extent.height);
        return;
    }
    for (std::size_t z = 0; z < extent.depth; ++z)
        for (std::size_t y = 0; y < extent.height; ++y)
            std::memmove(as_pointer(to.address + z * to.slice + y * to.pitch),
                         as_pointer(from.address + z * from.slice + y * from.pitch), extent.width);
}

} // namespace

void check_side(const Side& side, const Extent& extent, Where where) {
    if (extent.empty())
        return;
    require(side.address != 0);
    require(extent.height == 1 || side.pitch >= extent.width);
    require(extent.depth == 1 || side.slice >= side.pitch * (extent.height - 1) + extent.width);
    std::size_t rows = 0;
    std::size_t slices = 0;
    std::size_t bytes = 0;
    require(!__builtin_mul_overflow(extent.height - 1, side.pitch, &rows) &&
            !__builtin_mul_overflow(extent.depth - 1, side.slice, &slices) &&
            !__builtin_add_overflow(rows, slices, &bytes) &&
            !__builtin_add_overflow(bytes, extent.width, &bytes));
    auto& memory = Driver::get().memory();
    if (memory.contains(side.address, bytes))
        return;
    // Addresses of device memory that is not allocated are nobody's.
    require(where != Where::device && !memory.touches_device_range(side.address, bytes) &&
            !memory.find(side.address).has_value() && is_mapped(side.address, bytes));
}

CUresult copy(Stream& stream, const Side& to, const Side& from, const Extent& extent, bool async) {
    auto& context = stream.context();
    if (extent.empty())
        return CUDA_SUCCESS;
    const auto bytes = extent.width * extent.height * extent.depth;
    if (async && !is_pageable(to.address)) {
        if (!is_pageable(from.address)) {
            context.submit(stream, [=] {
                copy_now(to, from, extent);
                return CUDA_SUCCESS;
            });
            return CUDA_SUCCESS;
        }
        if (bytes <= most_staged) {
            const auto staged = std::make_shared<std::vector<std::byte>>(bytes);
            const Side aside{reinterpret_cast<std::uint64_t>(staged->data()), extent.width,
                             extent.width * extent.height};
            copy_now(aside, from, extent);
            context.submit(stream, [=] {
                copy_now(to, {reinterpret_cast<std::uint64_t>(staged->data()), aside.pitch, aside.slice},
                         extent);
                return CUDA_SUCCESS;
            });
            return CUDA_SUCCESS;
        }
    }
    return context.run(stream, [&] {
        copy_now(to, from, extent);
        return CUDA_SUCCESS;
    });
}

} // namespace softgpu
