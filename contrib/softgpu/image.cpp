// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/image.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <lz4.h>
#include <optional>
#include <string_view>
#include <zstd.h>

namespace softgpu {
namespace {

constexpr std::uint32_t wrapper_magic = 0x466243b1;
constexpr std::uint32_t container_magic = 0xba55ed50;

struct Wrapper {
    std::uint32_t magic;
    std::uint32_t version;
    const void* container;
    const void* more; // version 2: what was linked into this image, a list of containers that ends with 0
};

struct ContainerHeader {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t header_size;
    std::uint64_t size; // of the entries, behind the header
};

struct EntryHeader {
    std::uint16_t kind;
    std::uint16_t version;
    std::uint32_t header_size;
    std::uint64_t stored_size; // behind the header, padding included
    std::uint32_t compressed_size;
    std::uint32_t options;
    std::uint16_t minor;
    std::uint16_t major;
    std::uint32_t capability; // 75 for compute_75
    std::uint32_t name;
    std::uint32_t name_length;
    std::uint64_t flags;
    std::uint64_t reserved;
    std::uint64_t uncompressed_size;
};
static_assert(sizeof(EntryHeader) == 64);

constexpr std::uint16_t kind_ptx = 1;
constexpr std::uint16_t kind_elf = 2;
constexpr std::uint64_t flag_lz4 = 0x2000;
constexpr std::uint64_t flag_zstd = 0x8000;
// Of one PTX text. Sizes come from the image, which may be damaged.
constexpr std::uint64_t most_text = std::uint64_t{1} << 30;

[[noreturn]] void damaged(const std::string& cause) {
    throw ImageError(CUDA_ERROR_INVALID_IMAGE, "the fatbin is damaged: " + cause);
}

template <class Header>
Header read(const std::byte* from) {
    Header header; // the image need not be aligned
    std::memcpy(&header, from, sizeof header);
    return header;
}

std::string without_padding(std::string text) {
    text.resize(std::strlen(text.c_str()));
    return text;
}

std::string unpack(const EntryHeader& entry, const std::byte* data) {
    if (entry.compressed_size == 0)
        return without_padding({reinterpret_cast<const char*>(data), entry.stored_size});
    if (entry.compressed_size > entry.stored_size)
        damaged("an entry is larger than the room it takes");
    if (entry.uncompressed_size > most_text || entry.compressed_size > most_text)
        damaged("an entry says that it is larger than 1 GiB");
    std::string text(entry.uncompressed_size, '\0');
    if ((entry.flags & flag_zstd) != 0) {
        const auto size = ZSTD_decompress(text.data(), text.size(), data, entry.compressed_size);
        if (ZSTD_isError(size) != 0)
            damaged(std::string("zstd: ") + ZSTD_getErrorName(size));
        text.resize(size);
    } else if ((entry.flags & flag_lz4) != 0) {
        const auto size =
            LZ4_decompress_safe(reinterpret_cast<const char*>(data), text.data(),
                                static_cast<int>(entry.compressed_size), static_cast<int>(text.size()));
        if (size < 0)
            damaged("an LZ4 entry does not decompress");
        text.resize(static_cast<std::size_t>(size));
    } else {
        throw ImageError(CUDA_ERROR_INVALID_IMAGE,
                         "the fatbin is compressed in a way that is not known; build it with nvcc "
                         "--compress-mode=size, speed or none");
    }
    return without_padding(std::move(text));
}

struct Search {
    int capability;           // of the device
    std::optional<int> found; // the capability of what was found
    std::string text;
    bool saw_machine_code = false;
    int least_too_new = std::numeric_limits<int>::max();

    void container(const std::byte* image);
    void entry(const EntryHeader& entry, const std::byte* data);
    [[noreturn]] void nothing() const;
};

void Search::entry(const EntryHeader& entry, const std::byte* data) {
    if (entry.kind == kind_elf)
        saw_machine_code = true;
    if (entry.kind != kind_ptx)
        return;
    const auto wanted = static_cast<int>(entry.capability);
    if (wanted > capability) {
        least_too_new = std::min(least_too_new, wanted);
        return;
    }
    if (!found.has_value() || wanted > *found) {
        text = unpack(entry, data);
        found = wanted;
    }
}

void Search::container(const std::byte* image) {
    const auto header = read<ContainerHeader>(image);
    if (header.magic != container_magic)
        damaged("it does not begin with a container");
    if (header.header_size < sizeof header)
        damaged("the header of its container is too short");
    const auto* data = image + header.header_size;
    auto left = header.size;
    while (left >= sizeof(EntryHeader)) {
        const auto next = read<EntryHeader>(data);
        if (next.header_size < sizeof next || next.header_size > left ||
            next.stored_size > left - next.header_size)
            damaged("an entry reaches beyond its container");
        entry(next, data + next.header_size);
        data += next.header_size + next.stored_size;
        left -= next.header_size + next.stored_size;
    }
}

void Search::nothing() const {
    const auto have = std::to_string(capability);
    if (least_too_new != std::numeric_limits<int>::max())
        throw ImageError(CUDA_ERROR_NO_BINARY_FOR_GPU,
                         "the image holds PTX for compute_" + std::to_string(least_too_new) +
                             " and newer only, this device is an sm_" + have +
                             ": build it for an older one, or raise SOFTGPU_CAPABILITY");
    throw ImageError(
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        std::string("the image holds no PTX") + (saw_machine_code ? ", only machine code of real GPUs" : "") +
            ": build it with nvcc -gencode arch=compute_75,code=compute_75 (or no -arch at all)");
}

// PTX text may begin with comments and blank lines.
bool looks_like_ptx(std::string_view text) {
    return text.find(".version") != std::string_view::npos;
}

// The N of `.target sm_N`.
int target_of(std::string_view text) {
    const auto target = text.find(".target");
    if (target == std::string_view::npos)
        return 0;
    const auto number = text.find("sm_", target);
    if (number == std::string_view::npos)
        return 0;
    return std::atoi(text.data() + number + 3); // the text ends with a NUL
}

} // namespace

std::string find_ptx(const void* image, int capability) {
    const auto* bytes = static_cast<const std::byte*>(image);
    const auto first = read<unsigned char>(bytes);
    if (first == 0x7f) // ELF
        throw ImageError(CUDA_ERROR_NO_BINARY_FOR_GPU,
                         "the image is machine code of a real GPU (a cubin): this device runs PTX only");
    // Shorter images than a word are text, and end with a NUL.
    const auto magic =
        std::strlen(static_cast<const char*>(image)) < sizeof(std::uint32_t) ? 0 : read<std::uint32_t>(bytes);
    if (magic == wrapper_magic || magic == container_magic) {
        Search search{capability, {}, {}};
        if (magic == container_magic) {
            search.container(bytes);
        } else {
            const auto wrapper = read<Wrapper>(bytes);
            if (wrapper.container == nullptr)
                damaged("its wrapper points nowhere");
            search.container(static_cast<const std::byte*>(wrapper.container));
        }
        if (!search.found.has_value())
            search.nothing();
        return std::move(search.text);
    }
    const std::string_view text = static_cast<const char*>(image);
    if (!looks_like_ptx(text))
        throw ImageError(CUDA_ERROR_INVALID_IMAGE, "the image is neither a fatbin nor PTX text");
    if (const auto target = target_of(text); target > capability)
        throw ImageError(CUDA_ERROR_INVALID_PTX, "the PTX is for sm_" + std::to_string(target) +
                                                     ", this device is an sm_" + std::to_string(capability));
    return std::string(text);
}

} // namespace softgpu
