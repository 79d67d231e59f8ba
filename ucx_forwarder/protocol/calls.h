// SPDX-License-Identifier: BSD-3-Clause
// The call table (calls.def) as types and constants.
#pragma once

#include "ucx_forwarder/protocol/descriptors.h"
#include "ucx_forwarder/protocol/shapes.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace vgpu::protocol {

enum class How : std::uint8_t { sent, awaited };

enum class Call : std::uint16_t {
#define VGPU_CALL(name, ...) name,
#define VGPU_SPECIAL(name, ...) name,
#include "ucx_forwarder/protocol/calls.def"
#undef VGPU_CALL
#undef VGPU_SPECIAL
    count
};
constexpr std::size_t call_count = static_cast<std::size_t>(Call::count);

template <class... P>
struct Parameters {};

struct CallInfo {
    std::string_view name;
    How how;
    bool special; ///< the worker has a handler of its own
    std::string_view parameters;
};

template <Call C>
struct CallTraits;
#define VGPU_CALL(call, how_, ...)                                                                           \
    template <>                                                                                              \
    struct CallTraits<Call::call> {                                                                          \
        static constexpr How how = How::how_;                                                                \
        static constexpr bool special = false;                                                               \
        using parameters = Parameters<__VA_ARGS__>;                                                          \
    };
#define VGPU_SPECIAL(call, how_, ...)                                                                        \
    template <>                                                                                              \
    struct CallTraits<Call::call> {                                                                          \
        static constexpr How how = How::how_;                                                                \
        static constexpr bool special = true;                                                                \
        using parameters = Parameters<__VA_ARGS__>;                                                          \
    };
#include "ucx_forwarder/protocol/calls.def"
#undef VGPU_CALL
#undef VGPU_SPECIAL

constexpr std::array<CallInfo, call_count> call_table = {{
#define VGPU_CALL(call, how_, ...) {#call, How::how_, false, #__VA_ARGS__},
#define VGPU_SPECIAL(call, how_, ...) {#call, How::how_, true, #__VA_ARGS__},
#include "ucx_forwarder/protocol/calls.def"
#undef VGPU_CALL
#undef VGPU_SPECIAL
}};

constexpr const CallInfo& info(Call call) {
    return call_table[static_cast<std::size_t>(call)];
}

/// FNV-1a over every line of the table and the layout version: client and worker must agree on it.
constexpr std::uint64_t table_hash = [] {
    constexpr std::uint64_t layout_version = 1;
    std::uint64_t hash = 0xcbf29ce484222325 ^ layout_version;
    const auto add = [&hash](std::string_view text) {
        for (const char c : text) {
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        }
        hash = (hash ^ 0xff) * 0x100000001b3;
    };
    for (const CallInfo& call : call_table) {
        add(call.name);
        add(call.how == How::sent ? "sent" : "awaited");
        add(call.parameters);
    }
    return hash;
}();

} // namespace vgpu::protocol
