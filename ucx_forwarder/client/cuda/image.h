// SPDX-License-Identifier: BSD-3-Clause
// What a program hands over as a module: a pointer without a length. How long it is, is written in it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace vgpu::client {

/// The bytes that a worker needs for cuModuleLoadData: of a fatbin wrapper the container it points to, of a
/// container or an ELF the whole of it, of PTX text the text with its final zero. Empty: none of these. The
/// image must be readable as far as its own headers say; nothing is copied.
std::optional<std::span<const std::byte>> find_image(const void* image);

} // namespace vgpu::client
