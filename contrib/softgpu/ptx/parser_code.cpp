// SPDX-License-Identifier: BSD-3-Clause
// Function bodies: scopes, registers, labels, instructions.
#include "contrib/softgpu/ptx/parser.h"

#include <charconv>

namespace softgpu::ptx {
namespace {

constexpr std::size_t kMostRegisters = 1'000'000; // of one function; a guard against nonsense

} // namespace

int Parser::find(const Names Scope::*names, std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        const Names& in = (*scope).*names;
        if (const auto found = in.find(name); found != in.end())
            return found->second;
    }
    return -1;
}

int Parser::declare_variable(ParsedVariable variable) {
    const int index = static_cast<int>(function_->variables.size());
    if (variable.is_register) {
        declare_register(variable.name, type_size(variable.type));
        variable.reg = static_cast<int>(function_->registers.size()) - 1;
    } else if (!variable.name.empty()) {
        scopes_.back().variables[variable.name] = index;
    }
    function_->variables.push_back(std::move(variable));
    return index;
}

void Parser::body() {
    const std::size_t outermost = scopes_.size();
    for (;;) {
        if (peek().kind == TokenKind::end)
            fail("the body of " + std::string(function_->name) + " is not closed");
        if (accept('{')) {
            scopes_.emplace_back();
        } else if (accept('}')) {
            if (scopes_.size() == outermost)
                return;
            scopes_.pop_back();
        } else if (!accept(';')) {
            statement();
        }
    }
}

void Parser::statement() {
    if (peek().kind == TokenKind::word && peek(1).is(':')) {
        if (!labelled())
            function_->labels[peek().text] = function_->code.size();
        if (peek(1).is(':')) {
            next();
            next();
        }
        return;
    }
    if (peek().kind == TokenKind::word && peek().text[0] == '.')
        directive_in_body();
    else
        instruction();
}

// name: .branchtargets ... | .callprototype ... | .calltargets ...; false if it is an ordinary label.
bool Parser::labelled() {
    const std::string_view what = peek(2).text;
    if (peek(2).kind != TokenKind::word ||
        (what != ".branchtargets" && what != ".callprototype" && what != ".calltargets"))
        return false;
    const std::string_view name = next().text;
    next();
    next();
    if (what == ".callprototype") {
        ParsedPrototype prototype;
        if (peek().is('('))
            prototype.returns = parameter_list();
        expect_word("'_'");
        if (peek().is('('))
            prototype.parameters = parameter_list();
        function_directives(*function_);
        function_->prototypes[name] = std::move(prototype);
    } else {
        ParsedTable table;
        do
            table.labels.push_back(expect_word("a label"));
        while (accept(','));
        function_->tables[name] = std::move(table);
    }
    expect(';');
    return true;
}

void Parser::directive_in_body() {
    const std::string_view word = peek().text;
    if (word == ".loc" || word == ".file") {
        skip_line();
        return;
    }
    if (word == ".section") {
        skip_braces();
        return;
    }
    next();
    if (word == ".reg") {
        registers();
    } else if (word == ".pragma") {
        while (!accept(';'))
            if (next().kind == TokenKind::end)
                fail(".pragma is not closed with ';'");
    } else if (word == ".local" || word == ".param" || word == ".shared" || word == ".global" ||
               word == ".const") {
        const Space space = word == ".local"    ? Space::local
                            : word == ".param"  ? Space::param
                            : word == ".shared" ? Space::shared
                            : word == ".const"  ? Space::constant
                                                : Space::global;
        const ParsedVariable head = variable_head(space, false);
        do {
            ParsedVariable variable = declarator(head, false);
            if (accept('='))
                initialiser(variable);
            declare_variable(std::move(variable));
        } while (accept(','));
        expect(';');
    } else if (word == ".maxntid" || word == ".reqntid" || word == ".minnctapersm" || word == ".maxnreg") {
        --at_;
        function_directives(*function_);
    } else {
        fail("'" + std::string(word) + "' is not known in a function");
    }
}

void Parser::declare_register(std::string_view name, unsigned size) {
    if (function_->registers.size() >= kMostRegisters)
        fail(std::string(function_->name) + " has too many registers");
    scopes_.back().registers[name] = static_cast<int>(function_->registers.size());
    function_->registers.push_back({static_cast<std::uint8_t>(size)});
}

void Parser::registers() {
    const std::string_view word = expect_word("a type");
    const Type type = parse_type(word.substr(1));
    if (type == Type::none)
        fail("registers of type '" + std::string(word) + "' are not supported by softgpu");
    // An 8-bit register holds its value in the low part of a 16-bit one.
    const unsigned size = type == Type::pred ? 0 : std::max(2U, type_size(type));
    do {
        const std::string_view name = expect_word("a register's name");
        if (accept('<')) {
            // %r<10> are %r0 ... %r9. Their names are not in the text: they are looked up by prefix and
            // number.
            const std::int64_t count = expect_integer();
            expect('>');
            if (count < 0 || static_cast<std::size_t>(count) + function_->registers.size() > kMostRegisters)
                fail(std::string(function_->name) + " has too many registers");
            const std::size_t first = function_->registers.size();
            scopes_.back().ranges[name] = {static_cast<int>(first), static_cast<int>(count)};
            function_->registers.resize(first + static_cast<std::size_t>(count),
                                        {static_cast<std::uint8_t>(size)});
        } else {
            declare_register(name, size);
        }
    } while (accept(','));
    expect(';');
}

Op Parser::opcode(std::string_view text) {
    Op op;
    op.full = text;
    std::size_t begin = 0;
    bool first = true;
    while (begin <= text.size()) {
        std::size_t end = text.find('.', begin);
        if (end == std::string_view::npos)
            end = text.size();
        const std::string_view part = text.substr(begin, end - begin);
        begin = end + 1;
        if (first) {
            op.name = part;
            first = false;
            continue;
        }
        if (const Type type = parse_type(part); type != Type::none) {
            op.types.push_back(type);
            continue;
        }
        op.modifiers.push_back(part);
        if (part == "v2" || part == "v4" || part == "v8")
            op.vector = static_cast<unsigned>(part[1] - '0');
        else if (part == "global")
            op.space = Space::global;
        else if (part == "const")
            op.space = Space::constant;
        else if (part == "shared" || part.starts_with("shared::"))
            op.space = Space::shared;
        else if (part == "local")
            op.space = Space::local;
        else if (part == "param" || part.starts_with("param::"))
            op.space = Space::param;
    }
    return op;
}

void Parser::instruction() {
    ParsedInstr instr;
    instr.line = peek().line;
    if (accept('@')) {
        instr.guard_negated = accept('!');
        const std::string_view name = expect_word("a predicate");
        const ParsedOperand guard = name_operand(name);
        if (guard.kind != OperandKind::reg ||
            function_->registers[static_cast<std::size_t>(guard.reg)].size != 0)
            fail("'" + std::string(name) + "' is no predicate register");
        instr.guard = guard.reg;
    }
    const std::string_view text = expect_word("an instruction");
    instr.op = opcode(text);
    while (!accept(';')) {
        instr.operands.push_back(operand());
        if (!accept(',') && !peek().is(';'))
            fail("expected ',' or ';' after an operand of " + std::string(text) + " and not '" +
                 std::string(peek().text) + "'");
    }
    function_->code.push_back(std::move(instr));
}

ParsedOperand Parser::list(char close, OperandKind kind) {
    ParsedOperand result;
    result.kind = kind;
    while (!accept(close)) {
        result.elements.push_back(operand());
        if (!accept(',') && !peek().is(close))
            fail(std::string("expected ',' or '") + close + "' in a list of operands");
    }
    return result;
}

ParsedOperand Parser::operand() {
    ParsedOperand first = simple_operand();
    if (!accept('|'))
        return first;
    ParsedOperand pair;
    pair.kind = OperandKind::pair;
    pair.elements.push_back(std::move(first));
    pair.elements.push_back(simple_operand());
    return pair;
}

ParsedOperand Parser::simple_operand() {
    if (accept('{'))
        return list('}', OperandKind::vector);
    if (accept('('))
        return list(')', OperandKind::group);
    if (accept('['))
        return address();
    if (accept('!')) {
        ParsedOperand inner = simple_operand();
        inner.negated = !inner.negated;
        return inner;
    }
    const Token& token = peek();
    if (token.kind == TokenKind::word)
        return name_operand(next().text);
    ParsedOperand result;
    const bool minus = token.is('-') && peek(1).kind != TokenKind::integer;
    if (minus)
        next();
    if (peek().kind == TokenKind::real32 || peek().kind == TokenKind::real64) {
        const bool wide = peek().kind == TokenKind::real64;
        result.kind = wide ? OperandKind::real64 : OperandKind::real32;
        result.bits = next().value ^ (!minus ? 0 : wide ? 1ULL << 63 : 1ULL << 31);
        return result;
    }
    result.kind = OperandKind::integer;
    result.bits = static_cast<std::uint64_t>(constant_expression());
    return result;
}

ParsedOperand Parser::name_operand(std::string_view name) {
    ParsedOperand result;
    if (name == "_") {
        result.kind = OperandKind::sink;
        return result;
    }
    result.reg = find_register(name);
    if (result.reg >= 0) {
        result.kind = OperandKind::reg;
        return result;
    }
    result.kind = OperandKind::symbol;
    result.name = name;
    result.variable = find(&Scope::variables, name);
    if (peek().is('+') || peek().is('-'))
        result.offset = constant_expression();
    return result;
}

int Parser::find_register(std::string_view name) const {
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
        --digits;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
        if (const auto found = scope->registers.find(name); found != scope->registers.end())
            return found->second;
        // %r1 of %r<10>, %r12 of %r1<5>: the prefix may end in digits, so every split is tried.
        for (std::size_t split = digits; split < name.size(); ++split) {
            const auto found = scope->ranges.find(name.substr(0, split));
            if (found == scope->ranges.end() || (name[split] == '0' && split + 1 < name.size()))
                continue;
            int number = 0;
            const auto [end, error] = std::from_chars(name.data() + split, name.data() + name.size(), number);
            if (error == std::errc() && number < found->second.second)
                return found->second.first + number;
        }
    }
    return -1;
}

ParsedOperand Parser::address() {
    ParsedOperand result;
    result.kind = OperandKind::address;
    if (peek().kind == TokenKind::word) {
        ParsedOperand base = name_operand(next().text);
        if (base.kind == OperandKind::reg && (peek().is('+') || peek().is('-')))
            result.offset = constant_expression();
        result.elements.push_back(std::move(base));
    } else {
        ParsedOperand base;
        base.kind = OperandKind::integer;
        base.bits = static_cast<std::uint64_t>(constant_expression());
        result.elements.push_back(std::move(base));
    }
    while (accept(','))
        result.elements.push_back(operand()); // texture coordinates and the like
    expect(']');
    return result;
}

} // namespace softgpu::ptx
