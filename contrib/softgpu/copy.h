// SPDX-License-Identifier: BSD-3-Clause
// Copies and fills of rectangular pieces of memory, in the order of a stream.
#pragma once

#include "contrib/softgpu/context.h"

#include <cstddef>
#include <cstdint>

namespace softgpu {

// One side of a copy: `depth` slices of `height` rows of `width` bytes.
struct Side {
    std::uint64_t address = 0;
    std::size_t pitch = 0; // bytes from row to row
    std::size_t slice = 0; // bytes from slice to slice
};

struct Extent {
    std::size_t width = 0; // bytes
    std::size_t height = 1;
    std::size_t depth = 1;
    [[nodiscard]] bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

enum class Where { device, host, anywhere };

// Throws Error (INVALID_VALUE) unless all of it is memory of that kind. Whether host
// memory that the driver does not know may be written is taken on trust.
void check_side(const Side& side, const Extent& extent, Where where);

// After both sides were checked. A copy that is not `async` is done when this returns; an async one from or
// to memory that is not page-locked lets go of that memory before it returns, as CUDA promises.
CUresult copy(Stream& stream, const Side& to, const Side& from, const Extent& extent, bool async);

} // namespace softgpu
