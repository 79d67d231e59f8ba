// SPDX-License-Identifier: BSD-3-Clause
// The parser's inside, in two files: module level (parser.cpp) and function bodies (parser_code.cpp).
#pragma once

#include "contrib/softgpu/ptx/ast.h"
#include "contrib/softgpu/ptx/lexer.h"

#include <algorithm>
#include <utility>

namespace softgpu::ptx {

class Parser {
public:
    explicit Parser(std::string_view text) : tokens_(tokenize(text)) {}
    ParsedModule run();

private:
    using Names = std::unordered_map<std::string_view, int>;
    struct Scope {
        Names registers;                                                  // name -> register
        Names variables;                                                  // name -> variable of the function
        std::unordered_map<std::string_view, std::pair<int, int>> ranges; // %r<10>: first register, count
    };

    // tokens
    [[nodiscard]] const Token& peek(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
    }
    const Token& next() {
        const Token& token = peek();
        if (at_ + 1 < tokens_.size())
            ++at_;
        return token;
    }
    bool accept(char c);
    void expect(char c);
    std::string_view expect_word(const char* what);
    std::int64_t expect_integer();
    [[noreturn]] void fail(const std::string& cause) const;
    void skip_line();
    void skip_braces();

    // module level
    void version_and_target(std::string_view directive);
    ParsedVariable variable_head(Space space, bool is_extern);
    ParsedVariable declarator(ParsedVariable variable, bool anonymous_allowed);
    void initialiser(ParsedVariable& variable);
    void init_list(ParsedVariable& variable);
    InitValue init_value();
    std::int64_t constant_expression();
    void module_variables(Space space, bool is_extern);
    void function(bool is_entry);
    ParsedVariable parameter();
    std::vector<ParsedVariable> parameter_list();
    void function_directives(ParsedFunction& function);
    Dim3 dim3();

    // bodies
    void body();
    void statement();
    void directive_in_body();
    void registers();
    void declare_register(std::string_view name, unsigned size);
    int declare_variable(ParsedVariable variable);
    bool labelled();
    void instruction();
    Op opcode(std::string_view text);
    ParsedOperand operand();
    ParsedOperand simple_operand();
    ParsedOperand name_operand(std::string_view name);
    ParsedOperand address();
    ParsedOperand list(char close, OperandKind kind);
    [[nodiscard]] int find_register(std::string_view name) const;
    [[nodiscard]] int find(const Names Scope::*names, std::string_view name) const;

    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    ParsedModule module_;
    ParsedFunction* function_ = nullptr;
    std::vector<Scope> scopes_;
};

} // namespace softgpu::ptx
