// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/protocol/jit_options.h"

#include <algorithm>
#include <cstring>

namespace vgpu::protocol {

namespace {

bool is_pointer(CUjit_option option) {
    return option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER ||
           option == CU_JIT_GLOBAL_SYMBOL_NAMES || option == CU_JIT_GLOBAL_SYMBOL_ADDRESSES;
}

/// Copies what fits, ends it with a zero, and stores the length where the size was, as the driver does.
void return_log(const std::string& log, unsigned count, const CUjit_option* options, void** values,
                CUjit_option buffer_option, CUjit_option size_option) {
    const auto* end = options + count;
    const auto* buffer = std::find(options, end, buffer_option);
    const auto* size = std::find(options, end, size_option);
    if (buffer == end || size == end) {
        return;
    }
    auto* text = static_cast<char*>(values[buffer - options]);
    void*& stored = values[size - options];
    const auto room = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(stored));
    std::size_t length = 0;
    if (text != nullptr && room > 0) {
        length = std::min<std::size_t>(log.size(), room - 1);
        std::memcpy(text, log.data(), length);
        text[length] = '\0';
    }
    stored = reinterpret_cast<void*>(static_cast<std::uintptr_t>(length));
}

} // namespace

std::vector<std::byte> encode_jit_options(unsigned count, const CUjit_option* options, void* const* values) {
    std::vector<std::byte> encoded(std::size_t{count} * 12);
    Encoder out{std::span<std::byte>(encoded)};
    for (unsigned i = 0; i < count; ++i) {
        if (is_pointer(options[i])) {
            continue;
        }
        out.put(static_cast<std::uint32_t>(options[i]));
        out.put(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(values[i])));
    }
    encoded.resize(out.size());
    return encoded;
}

bool decode_jit_options(Bytes encoded, std::vector<JitOption>& options) {
    if (encoded.size() % 12 != 0) {
        return false;
    }
    Decoder in(encoded);
    while (!in.rest().empty()) {
        const auto option = static_cast<CUjit_option>(in.take<std::uint32_t>());
        const auto value = in.take<std::uint64_t>();
        if (is_pointer(option)) {
            return false;
        }
        options.push_back({option, value});
    }
    return in.complete();
}

void return_jit_results(const ModuleSnapshot& from, unsigned count, const CUjit_option* options,
                        void** values) {
    return_log(from.info_log, count, options, values, CU_JIT_INFO_LOG_BUFFER,
               CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
    return_log(from.error_log, count, options, values, CU_JIT_ERROR_LOG_BUFFER,
               CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    const auto* time = std::find(options, options + count, CU_JIT_WALL_TIME);
    if (time != options + count) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &from.wall_time_ms, sizeof bits);
        values[time - options] = reinterpret_cast<void*>(static_cast<std::uintptr_t>(bits));
    }
}

} // namespace vgpu::protocol
