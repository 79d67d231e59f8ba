// SPDX-License-Identifier: BSD-3-Clause
// What the parser makes of PTX text: registers and variables of functions are resolved, names of functions,
// labels and module variables are not. All string_views point into the text.
#pragma once

#include "contrib/softgpu/ptx/engine.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace softgpu::ptx {

enum class Type : std::uint8_t {
    none,
    b8,
    b16,
    b32,
    b64,
    b128,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    f16x2,
    bf16,
    bf16x2,
    f32,
    f64,
    pred
};

[[nodiscard]] unsigned type_size(Type type);          // bytes; pred and none: 0
[[nodiscard]] Type parse_type(std::string_view name); // without the dot; Type::none if it is no type
[[nodiscard]] inline bool is_signed(Type t) {
    return t >= Type::s8 && t <= Type::s64;
}
[[nodiscard]] inline bool is_half(Type t) {
    return t >= Type::f16 && t <= Type::bf16x2;
}
[[nodiscard]] inline bool is_float(Type t) {
    return t == Type::f32 || t == Type::f64;
}

enum class Space : std::uint8_t { generic, global, constant, shared, local, param };

// An opcode with its modifiers, e.g. "setp" {"lt","and","ftz"} types {f32}.
struct Op {
    std::string_view full; // as written
    std::string_view name;
    std::vector<std::string_view> modifiers; // without the types
    std::vector<Type> types;
    Space space = Space::generic;
    unsigned vector = 1; // .v2, .v4, .v8

    [[nodiscard]] bool has(std::string_view modifier) const;
    [[nodiscard]] Type type(std::size_t i = 0) const { return i < types.size() ? types[i] : Type::none; }
};

enum class OperandKind : std::uint8_t {
    none,
    reg,     // reg
    integer, // bits
    real32,  // bits
    real64,  // bits
    symbol,  // name + offset: variable, function, label or special register
    vector,  // elements
    pair,    // two elements: d|p
    group,   // elements: (a, b)
    address, // elements[0] + offset
    sink     // _
};

struct ParsedOperand {
    OperandKind kind = OperandKind::none;
    bool negated = false; // !p
    int reg = -1;         // index in ParsedFunction::registers
    std::uint64_t bits = 0;
    std::string_view name;
    int variable = -1; // of a symbol: index in ParsedFunction::variables, if it is one of the function's
    std::int64_t offset = 0;
    std::vector<ParsedOperand> elements;
};

struct ParsedInstr {
    Op op;
    std::vector<ParsedOperand> operands;
    int guard = -1; // predicate register
    bool guard_negated = false;
    int line = 0;
};

struct Register {
    std::uint8_t size = 0; // bytes; 0: predicate
};

// One value of an initialiser.
struct InitValue {
    std::uint64_t bits = 0;
    OperandKind kind = OperandKind::integer;
    std::string_view symbol;     // not empty: its address + bits
    std::uint64_t byte_mask = 0; // 0xFF00(symbol): which byte of the address, 0 for the whole
};

struct ParsedVariable {
    std::string_view name;
    Space space = Space::global;
    Type type = Type::none;
    std::uint64_t elements = 1; // array elements times vector width; 0: extern without a size
    std::uint32_t align = 1;
    bool is_extern = false;
    bool is_register = false; // a .reg parameter
    int reg = -1;
    bool managed = false;
    bool has_init = false;
    std::vector<InitValue> init;
    int line = 0;

    [[nodiscard]] std::uint64_t bytes() const { return elements * type_size(type); }
};

struct ParsedTable { // .branchtargets
    std::vector<std::string_view> labels;
};

struct ParsedPrototype { // .callprototype
    std::vector<ParsedVariable> returns, parameters;
};

struct ParsedFunction {
    std::string_view name;
    bool is_entry = false;
    bool has_body = false;
    int line = 0;
    std::vector<int> returns, parameters; // indices in variables
    std::vector<ParsedVariable> variables;
    std::vector<Register> registers;
    std::vector<ParsedInstr> code;
    std::unordered_map<std::string_view, std::size_t> labels; // index in code
    std::unordered_map<std::string_view, ParsedTable> tables;
    std::unordered_map<std::string_view, ParsedPrototype> prototypes;
    Dim3 max_ntid{0, 0, 0}, required_ntid{0, 0, 0};
    std::uint32_t min_blocks = 0;
};

struct ParsedModule {
    int version = 0;
    int target = 0;
    std::vector<ParsedVariable> variables;
    std::vector<ParsedFunction> functions;
};

// Throws ParseError.
[[nodiscard]] ParsedModule parse(std::string_view text);

} // namespace softgpu::ptx
