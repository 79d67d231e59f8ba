// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/ast.h"

#include <algorithm>
#include <array>
#include <utility>

namespace softgpu::ptx {
namespace {

constexpr std::array<std::pair<std::string_view, Type>, 21> kTypes{
    {{"b8", Type::b8},         {"b16", Type::b16}, {"b32", Type::b32},     {"b64", Type::b64},
     {"b128", Type::b128},     {"u8", Type::u8},   {"u16", Type::u16},     {"u32", Type::u32},
     {"u64", Type::u64},       {"s8", Type::s8},   {"s16", Type::s16},     {"s32", Type::s32},
     {"s64", Type::s64},       {"f16", Type::f16}, {"f16x2", Type::f16x2}, {"bf16", Type::bf16},
     {"bf16x2", Type::bf16x2}, {"f32", Type::f32}, {"f64", Type::f64},     {"pred", Type::pred},
     {"texref", Type::b64}}};

} // namespace

unsigned type_size(Type type) {
    switch (type) {
    case Type::b8:
    case Type::u8:
    case Type::s8:
        return 1;
    case Type::b16:
    case Type::u16:
    case Type::s16:
    case Type::f16:
    case Type::bf16:
        return 2;
    case Type::b32:
    case Type::u32:
    case Type::s32:
    case Type::f32:
    case Type::f16x2:
    case Type::bf16x2:
        return 4;
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64:
        return 8;
    case Type::b128:
        return 16;
    case Type::none:
    case Type::pred:
        break;
    }
    return 0;
}

Type parse_type(std::string_view name) {
    for (const auto& [text, type] : kTypes)
        if (text == name)
            return type;
    return Type::none;
}

bool Op::has(std::string_view modifier) const {
    return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

} // namespace softgpu::ptx
