// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/lexer.h"

#include "contrib/softgpu/ptx/engine.h"

#include <bit>
#include <cstdlib>
#include <string>

namespace softgpu::ptx {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool begins_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' || c == '.';
}
bool in_word(char c) {
    return begins_word(c) || is_digit(c);
}

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::vector<Token> run() {
        std::vector<Token> tokens;
        tokens.reserve(text_.size() / 4);
        while (skip_space())
            tokens.push_back(next());
        tokens.push_back({TokenKind::end, {}, 0, line_});
        return tokens;
    }

private:
    [[nodiscard]] char peek(std::size_t ahead = 0) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }

    // False at the end of the text. A NUL ends it too: drivers are handed C strings.
    bool skip_space() {
        while (at_ < text_.size() && text_[at_] != '\0') {
            const char c = text_[at_];
            if (c == '\n') {
                ++line_;
                ++at_;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
                ++at_;
            } else if (c == '/' && peek(1) == '/') {
                while (at_ < text_.size() && text_[at_] != '\n')
                    ++at_;
            } else if (c == '/' && peek(1) == '*') {
                const int begin = line_;
                for (at_ += 2; peek() != '*' || peek(1) != '/'; ++at_) {
                    if (at_ >= text_.size())
                        throw ParseError(begin, "a comment is not closed");
                    line_ += peek() == '\n';
                }
                at_ += 2;
            } else {
                return true;
            }
        }
        return false;
    }

    Token next() {
        const std::size_t begin = at_;
        const char c = peek();
        if (is_digit(c) || (c == '.' && is_digit(peek(1)) && !in_word(begin == 0 ? ' ' : text_[begin - 1])))
            return number();
        if (c == '"')
            return string();
        if (begins_word(c)) {
            ++at_;
            // Directives may be written without a space between: .reg.b16
            while ((in_word(peek()) && (c != '.' || peek() != '.')) ||
                   (peek() == ':' && peek(1) == ':' && in_word(peek(2))))
                at_ += peek() == ':' ? 2 : 1;
            return make(TokenKind::word, begin, 0);
        }
        ++at_;
        return make(TokenKind::punct, begin, 0);
    }

    Token make(TokenKind kind, std::size_t begin, std::uint64_t value) const {
        return {kind, text_.substr(begin, at_ - begin), value, line_};
    }

    Token string() {
        const std::size_t begin = ++at_;
        while (peek() != '"') {
            if (peek() == '\\')
                ++at_;
            if (at_ >= text_.size() || peek() == '\n')
                throw ParseError(line_, "a string is not closed");
            ++at_;
        }
        Token token = make(TokenKind::string, begin, 0);
        ++at_;
        return token;
    }

    Token number() {
        const std::size_t begin = at_;
        const char kind = peek() == '0' ? peek(1) : '\0';
        if (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D') {
            const bool wide = kind == 'd' || kind == 'D';
            at_ += 2;
            std::uint64_t bits = 0;
            const std::size_t digits = at_;
            for (; is_hex(peek()); ++at_)
                bits = bits * 16 + digit(peek());
            if (at_ - digits != (wide ? 16U : 8U))
                throw ParseError(line_, std::string(text_.substr(begin, at_ - begin)) +
                                            " is no floating-point constant: " + (wide ? "16" : "8") +
                                            " hexadecimal digits are wanted");
            return make(wide ? TokenKind::real64 : TokenKind::real32, begin, bits);
        }
        if (kind == 'x' || kind == 'X')
            return integer(begin, 2, 16);
        if (kind == 'b' || kind == 'B')
            return integer(begin, 2, 2);
        std::size_t end = at_;
        while (is_digit(end < text_.size() ? text_[end] : '\0'))
            ++end;
        const char after = end < text_.size() ? text_[end] : '\0';
        if (after == '.' || after == 'e' || after == 'E') {
            const std::string copy(text_.substr(begin, 64));
            char* stop = nullptr;
            const double value = std::strtod(copy.c_str(), &stop);
            at_ = begin + static_cast<std::size_t>(stop - copy.c_str());
            return make(TokenKind::real64, begin, std::bit_cast<std::uint64_t>(value));
        }
        return integer(begin, 0, kind >= '0' && kind <= '7' ? 8 : 10);
    }

    Token integer(std::size_t begin, std::size_t prefix, unsigned radix) {
        at_ += prefix;
        std::uint64_t value = 0;
        for (; is_hex(peek()) && digit(peek()) < radix; ++at_)
            value = value * radix + digit(peek());
        if (peek() == 'U' || peek() == 'u')
            ++at_;
        return make(TokenKind::integer, begin, value);
    }

    static unsigned digit(char c) {
        return static_cast<unsigned>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int line_ = 1;
};

} // namespace

std::vector<Token> tokenize(std::string_view text) {
    return Lexer(text).run();
}

} // namespace softgpu::ptx
