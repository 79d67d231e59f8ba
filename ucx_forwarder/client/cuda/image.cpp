// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/image.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>

namespace vgpu::client {
namespace {

constexpr std::uint32_t wrapper_magic = 0x466243b1;
constexpr std::uint32_t container_magic = 0xba55ed50;

struct Wrapper {
    std::uint32_t magic;
    std::uint32_t version;
    const void* container;
    const void* file_name;
};

struct Container {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_size;
    std::uint64_t size; ///< of all that follows the header
};

// Images need not be aligned.
template <class T>
T read(const void* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

std::span<const std::byte> bytes(const void* from, std::size_t size) {
    return {static_cast<const std::byte*>(from), size};
}

std::optional<std::span<const std::byte>> elf_image(const std::byte* image) {
    auto header = read<Elf64_Ehdr>(image);
    if (header.e_ident[EI_CLASS] != ELFCLASS64)
        return {};
    std::uint64_t end = std::max<std::uint64_t>(
        {header.e_ehsize, header.e_phoff + std::uint64_t(header.e_phnum) * header.e_phentsize,
         header.e_shoff + std::uint64_t(header.e_shnum) * header.e_shentsize});
    for (unsigned i = 0; header.e_shoff && i < header.e_shnum; ++i) {
        auto section = read<Elf64_Shdr>(image + header.e_shoff + std::uint64_t(i) * header.e_shentsize);
        if (section.sh_type != SHT_NOBITS)
            end = std::max(end, section.sh_offset + section.sh_size);
    }
    for (unsigned i = 0; header.e_phoff && i < header.e_phnum; ++i) {
        auto segment = read<Elf64_Phdr>(image + header.e_phoff + std::uint64_t(i) * header.e_phentsize);
        end = std::max(end, segment.p_offset + segment.p_filesz);
    }
    return bytes(image, end);
}

// PTX is text that begins with white space, comments, and then its `.version`.
bool looks_like_ptx(const char* text) {
    for (;;) {
        text += std::strspn(text, " \t\r\n\f\v");
        if (std::strncmp(text, "//", 2) == 0) {
            text += std::strcspn(text, "\n");
        } else if (std::strncmp(text, "/*", 2) == 0) {
            text = std::strstr(text + 2, "*/");
            if (!text)
                return false;
            text += 2;
        } else {
            return *text == '.';
        }
    }
}

} // namespace

std::optional<std::span<const std::byte>> find_image(const void* image) {
    if (!image)
        return {};
    auto* start = static_cast<const std::byte*>(image);
    // Byte by byte first: a text may be shorter than a header.
    if (start[0] == std::byte{ELFMAG0} && std::memcmp(start, ELFMAG, SELFMAG) == 0)
        return elf_image(start);
    if (start[0] == std::byte{0xb1} && read<std::uint32_t>(start) == wrapper_magic) {
        auto wrapper = read<Wrapper>(start);
        if (!wrapper.container || read<std::uint32_t>(wrapper.container) != container_magic)
            return {};
        start = static_cast<const std::byte*>(wrapper.container);
    }
    if (start[0] == std::byte{0x50} && read<std::uint32_t>(start) == container_magic) {
        auto container = read<Container>(start);
        return bytes(start, container.header_size + container.size);
    }
    auto* text = reinterpret_cast<const char*>(start);
    if (looks_like_ptx(text))
        return bytes(start, std::strlen(text) + 1);
    return {};
}

} // namespace vgpu::client
