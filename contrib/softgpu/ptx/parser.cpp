// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/parser.h"

#include <algorithm>

namespace softgpu::ptx {

void Parser::fail(const std::string& cause) const {
    throw ParseError(peek().line, cause);
}

bool Parser::accept(char c) {
    if (!peek().is(c))
        return false;
    next();
    return true;
}

void Parser::expect(char c) {
    if (!accept(c))
        fail(std::string("expected '") + c + "' and not '" + std::string(peek().text) + "'");
}

std::string_view Parser::expect_word(const char* what) {
    if (peek().kind != TokenKind::word)
        fail(std::string("expected ") + what + " and not '" + std::string(peek().text) + "'");
    return next().text;
}

std::int64_t Parser::expect_integer() {
    const bool minus = accept('-');
    if (peek().kind != TokenKind::integer)
        fail("expected an integer and not '" + std::string(peek().text) + "'");
    const auto value = static_cast<std::int64_t>(next().value);
    return minus ? -value : value;
}

// .loc and .file end with their line, not with a semicolon.
void Parser::skip_line() {
    const int line = peek().line;
    while (peek().kind != TokenKind::end && peek().line == line)
        next();
}

void Parser::skip_braces() {
    while (!peek().is('{'))
        if (next().kind == TokenKind::end)
            fail("expected '{' after .section");
    int depth = 0;
    do {
        if (peek().kind == TokenKind::end)
            fail("a section is not closed");
        depth += peek().is('{') ? 1 : peek().is('}') ? -1 : 0;
        next();
    } while (depth > 0);
}

ParsedModule Parser::run() {
    bool is_extern = false;
    while (peek().kind != TokenKind::end) {
        if (accept(';'))
            continue;
        const Token token = peek();
        const std::string_view word = expect_word("a directive");
        if (word == ".version" || word == ".target" || word == ".address_size") {
            version_and_target(word);
        } else if (word == ".visible" || word == ".weak" || word == ".common") {
        } else if (word == ".extern") {
            is_extern = true;
            continue;
        } else if (word == ".file" || word == ".loc") {
            --at_;
            skip_line();
        } else if (word == ".section") {
            skip_braces();
        } else if (word == ".pragma" || word == ".alias") {
            while (!accept(';'))
                if (next().kind == TokenKind::end)
                    fail(std::string(word) + " is not closed with ';'");
        } else if (word == ".global" || word == ".const" || word == ".shared" || word == ".managed") {
            module_variables(word == ".const"    ? Space::constant
                             : word == ".shared" ? Space::shared
                                                 : Space::global,
                             is_extern);
        } else if (word == ".entry" || word == ".func") {
            function(word == ".entry");
        } else {
            throw ParseError(token.line, "'" + std::string(word) + "' is not known at module level");
        }
        is_extern = false;
    }
    if (module_.version == 0)
        throw ParseError(0, "there is no .version directive: this is no PTX text");
    return std::move(module_);
}

void Parser::version_and_target(std::string_view directive) {
    if (directive == ".version") {
        // "9.0" is lexed as a decimal number.
        const std::string text(peek().text);
        const std::size_t dot = text.find('.');
        if (dot == std::string::npos)
            fail(".version wants major.minor");
        module_.version = std::atoi(text.c_str()) * 10 + std::atoi(text.c_str() + dot + 1);
        next();
    } else if (directive == ".address_size") {
        if (expect_integer() != 64)
            fail("only .address_size 64 is supported");
    } else {
        do {
            const std::string_view target = expect_word("a target");
            if (target.starts_with("sm_"))
                module_.target = std::atoi(std::string(target.substr(3)).c_str());
        } while (accept(','));
    }
}

// From after the state space to before the name.
ParsedVariable Parser::variable_head(Space space, bool is_extern) {
    ParsedVariable variable;
    variable.space = space;
    variable.is_extern = is_extern;
    variable.line = peek().line;
    variable.align = 0;
    while (peek().kind == TokenKind::word && peek().text[0] == '.') {
        const std::string_view word = next().text;
        if (word == ".align") {
            variable.align = static_cast<std::uint32_t>(expect_integer());
        } else if (word == ".attribute") {
            expect('(');
            while (!accept(')')) {
                variable.managed |= peek().is(".managed");
                if (next().kind == TokenKind::end)
                    fail(".attribute is not closed");
            }
        } else if (word == ".v2" || word == ".v4" || word == ".v8") {
            variable.elements = static_cast<std::uint64_t>(word[2] - '0');
        } else if (word == ".ptr" || word == ".global" || word == ".const" || word == ".shared" ||
                   word == ".local" || word == ".generic" || word == ".param") {
            // what a pointer parameter points to; no matter here
            if (word == ".ptr" && peek().is(".align"))
                continue;
        } else if (word == ".samplerref" || word == ".surfref") {
            variable.type = Type::b64;
        } else {
            variable.type = parse_type(word.substr(1));
            if (variable.type == Type::none)
                fail("'" + std::string(word) + "' is no type");
        }
    }
    if (variable.type == Type::none)
        fail("the type of a variable is missing");
    if (variable.align == 0)
        variable.align = std::max<std::uint32_t>(
            1, static_cast<std::uint32_t>(variable.elements * type_size(variable.type)));
    if ((variable.align & (variable.align - 1)) != 0)
        fail("an alignment must be a power of two");
    return variable;
}

ParsedVariable Parser::declarator(ParsedVariable variable, bool anonymous_allowed) {
    if (peek().kind == TokenKind::word)
        variable.name = next().text;
    else if (!anonymous_allowed)
        fail("the name of a variable is missing");
    while (accept('[')) {
        if (peek().is(']')) {
            variable.elements = 0; // size from the initialiser, or dynamic shared memory
        } else {
            const std::int64_t count = constant_expression();
            if (count < 0 || count > (std::int64_t{1} << 40))
                fail("the size of " + std::string(variable.name) + " is not possible");
            variable.elements *= static_cast<std::uint64_t>(count);
        }
        expect(']');
    }
    return variable;
}

void Parser::initialiser(ParsedVariable& variable) {
    variable.has_init = true;
    if (peek().is('{'))
        init_list(variable);
    else
        variable.init.push_back(init_value());
    if (variable.elements == 0)
        variable.elements = variable.init.size();
    if (variable.init.size() > variable.elements)
        fail("too many initial values for " + std::string(variable.name));
}

void Parser::init_list(ParsedVariable& variable) {
    expect('{');
    while (!accept('}')) {
        if (peek().is('{'))
            init_list(variable);
        else
            variable.init.push_back(init_value());
        if (!accept(',') && !peek().is('}'))
            fail("expected ',' or '}' in an initialiser");
    }
}

InitValue Parser::init_value() {
    InitValue value;
    if (peek().kind == TokenKind::real32 || peek().kind == TokenKind::real64) {
        value.kind = peek().kind == TokenKind::real32 ? OperandKind::real32 : OperandKind::real64;
        value.bits = next().value;
        return value;
    }
    if (peek().is('-') && (peek(1).kind == TokenKind::real32 || peek(1).kind == TokenKind::real64)) {
        next();
        value.kind = peek().kind == TokenKind::real32 ? OperandKind::real32 : OperandKind::real64;
        value.bits = next().value ^ (value.kind == OperandKind::real32 ? 0x80000000U : 1ULL << 63);
        return value;
    }
    if (peek().kind == TokenKind::integer && peek(1).is('(')) { // 0xFF00(symbol)
        value.byte_mask = next().value;
        next();
        value = [&] {
            InitValue inner = init_value();
            inner.byte_mask = value.byte_mask;
            return inner;
        }();
        expect(')');
        return value;
    }
    if (peek().kind == TokenKind::word) {
        value.symbol = next().text;
        if (value.symbol == "generic") {
            expect('(');
            value.symbol = expect_word("a symbol");
            if (peek().is('+') || peek().is('-'))
                value.bits = static_cast<std::uint64_t>(constant_expression());
            expect(')');
        }
        if (peek().is('+') || peek().is('-'))
            value.bits += static_cast<std::uint64_t>(constant_expression());
        return value;
    }
    value.bits = static_cast<std::uint64_t>(constant_expression());
    return value;
}

// Sums of integers, which is what compilers write.
std::int64_t Parser::constant_expression() {
    std::int64_t sum = 0;
    bool first = true;
    while (first || peek().is('+') || peek().is('-')) {
        bool minus = false;
        while (peek().is('+') || peek().is('-'))
            minus ^= next().text[0] == '-';
        const bool inverted = accept('~');
        std::int64_t term = 0;
        if (accept('(')) {
            term = constant_expression();
            expect(')');
        } else {
            term = expect_integer();
        }
        term = inverted ? ~term : term;
        while (accept('*'))
            term *= expect_integer();
        // In unsigned arithmetic: a text may hold anything.
        sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                        static_cast<std::uint64_t>(minus ? -static_cast<std::uint64_t>(term)
                                                                         : static_cast<std::uint64_t>(term)));
        first = false;
    }
    return sum;
}

void Parser::module_variables(Space space, bool is_extern) {
    // .managed may also stand before or after the space
    const ParsedVariable head = variable_head(space, is_extern);
    do {
        ParsedVariable variable = declarator(head, false);
        if (accept('='))
            initialiser(variable);
        module_.variables.push_back(std::move(variable));
    } while (accept(','));
    expect(';');
}

ParsedVariable Parser::parameter() {
    const std::string_view kind = expect_word(".param or .reg");
    if (kind != ".param" && kind != ".reg")
        fail("expected .param or .reg and not '" + std::string(kind) + "'");
    ParsedVariable variable = declarator(variable_head(Space::param, false), true);
    variable.is_register = kind == ".reg";
    return variable;
}

std::vector<ParsedVariable> Parser::parameter_list() {
    std::vector<ParsedVariable> list;
    expect('(');
    while (!accept(')')) {
        list.push_back(parameter());
        if (!accept(',') && !peek().is(')'))
            fail("expected ',' or ')' in a parameter list");
    }
    return list;
}

Dim3 Parser::dim3() {
    Dim3 dim;
    dim.x = static_cast<std::uint32_t>(expect_integer());
    if (accept(','))
        dim.y = static_cast<std::uint32_t>(expect_integer());
    if (accept(','))
        dim.z = static_cast<std::uint32_t>(expect_integer());
    return dim;
}

void Parser::function_directives(ParsedFunction& function) {
    while (peek().kind == TokenKind::word) {
        const std::string_view word = next().text;
        if (word == ".maxntid") {
            function.max_ntid = dim3();
        } else if (word == ".reqntid") {
            function.required_ntid = dim3();
        } else if (word == ".minnctapersm") {
            function.min_blocks = static_cast<std::uint32_t>(expect_integer());
        } else if (word == ".maxnreg" || word == ".maxnctapersm" || word == ".maxclusterrank" ||
                   word == ".abi_preserve" || word == ".abi_preserve_control") {
            expect_integer();
        } else if (word == ".reqnctapercluster") {
            dim3();
        } else if (word == ".noreturn" || word == ".explicitcluster" || word == ".blocksareclusters") {
        } else if (word == ".pragma") {
            while (!accept(';'))
                if (next().kind == TokenKind::end)
                    fail(".pragma is not closed with ';'");
        } else {
            fail("'" + std::string(word) + "' is not known at a function");
        }
    }
}

void Parser::function(bool is_entry) {
    ParsedFunction parsed;
    parsed.is_entry = is_entry;
    parsed.line = peek().line;
    std::vector<ParsedVariable> returns;
    if (peek().is(".attribute")) {
        next();
        while (!accept(')'))
            if (next().kind == TokenKind::end)
                fail(".attribute is not closed");
    }
    while (peek().is(".noreturn"))
        next();
    if (!is_entry && peek().is('('))
        returns = parameter_list();
    parsed.name = expect_word("a function's name");
    std::vector<ParsedVariable> parameters;
    if (peek().is('('))
        parameters = parameter_list();
    function_directives(parsed);

    scopes_.assign(1, {});
    function_ = &parsed;
    for (ParsedVariable& variable : returns)
        parsed.returns.push_back(declare_variable(std::move(variable)));
    for (ParsedVariable& variable : parameters)
        parsed.parameters.push_back(declare_variable(std::move(variable)));
    if (accept('{')) {
        parsed.has_body = true;
        body();
    } else {
        expect(';');
    }
    function_ = nullptr;
    module_.functions.push_back(std::move(parsed));
}

ParsedModule parse(std::string_view text) {
    return Parser(text).run();
}

} // namespace softgpu::ptx
