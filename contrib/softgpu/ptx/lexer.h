// SPDX-License-Identifier: BSD-3-Clause
// PTX text to tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace softgpu::ptx {

enum class TokenKind : std::uint8_t {
    word,    // names, opcodes with their modifiers, directives, registers
    integer, // value
    real32,  // 0f...: value holds 32 bits
    real64,  // 0d... or decimal: value holds 64 bits
    string,
    punct, // one character, text[0]
    end
};

struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text; // into the PTX text
    std::uint64_t value = 0;
    int line = 0;

    [[nodiscard]] bool is(char c) const { return kind == TokenKind::punct && text[0] == c; }
    [[nodiscard]] bool is(std::string_view word) const { return kind == TokenKind::word && text == word; }
};

// Throws ParseError. The last token is TokenKind::end.
[[nodiscard]] std::vector<Token> tokenize(std::string_view text);

} // namespace softgpu::ptx
