// SPDX-License-Identifier: BSD-3-Clause
// Module level: symbols, memory of variables and their initial values, shared memory, kernels.
#include "contrib/softgpu/ptx/compile.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace softgpu::ptx {
namespace {

const std::unordered_map<std::string_view, Builtin> kBuiltins{
    {"vprintf", Builtin::vprintf},
    {"malloc", Builtin::malloc},
    {"free", Builtin::free},
    {"__assertfail", Builtin::assertfail},
};

std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
    return (value + align - 1) & ~(align - 1);
}

bool in_device_memory(const ParsedVariable& v) {
    return v.space == Space::global || v.space == Space::constant;
}

} // namespace

ModuleCompiler::ModuleCompiler(const ParsedModule& module, const GlobalAllocator& allocate)
    : module_(module), allocate_(allocate) {}

const Symbol* ModuleCompiler::find_symbol(std::string_view name) const {
    const auto found = symbols_.find(name);
    return found == symbols_.end() ? nullptr : &found->second;
}

const Function* ModuleCompiler::find_function(std::string_view name) const {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
}

const Symbol* ModuleCompiler::own_shared(const ParsedFunction& function, std::string_view name) const {
    const auto own = own_shared_.find(&function);
    if (own == own_shared_.end())
        return nullptr;
    const auto found = own->second.find(name);
    return found == own->second.end() ? nullptr : &found->second;
}

const Symbol* ModuleCompiler::own_global(const ParsedFunction& function, int variable) const {
    const auto own = own_globals_.find(&function);
    if (own == own_globals_.end())
        return nullptr;
    const auto found = own->second.find(variable);
    return found == own->second.end() ? nullptr : &found->second;
}

void ModuleCompiler::declare_functions() {
    for (const ParsedFunction& parsed : module_.functions) {
        auto [it, fresh] = functions_.try_emplace(parsed.name, nullptr);
        if (fresh) {
            Function& function = program->functions.emplace_back();
            function.name = parsed.name;
            function.index = static_cast<std::uint32_t>(program->functions.size() - 1);
            it->second = &function;
        }
        Function& function = *it->second;
        if (parsed.has_body) {
            if (function.has_body)
                throw ParseError(parsed.line, "function " + function.name + " is defined twice");
            function.has_body = true;
            function.is_entry = parsed.is_entry;
            parsed_[parsed.name] = &parsed;
        } else if (const auto builtin = kBuiltins.find(parsed.name);
                   builtin != kBuiltins.end() && !function.has_body) {
            function.builtin = builtin->second;
        }
    }
    for (auto& [name, function] : functions_)
        if (function->has_body)
            function->builtin = Builtin::none;
}

void ModuleCompiler::find_uses() {
    for (const auto& [name, parsed] : parsed_) {
        Uses& uses = uses_[parsed];
        const auto visit = [&](const auto& self, const ParsedOperand& operand) -> void {
            if (operand.kind == OperandKind::symbol && operand.variable < 0)
                uses.symbols.insert(operand.name);
            for (const ParsedOperand& e : operand.elements)
                self(self, e);
        };
        for (const ParsedInstr& instr : parsed->code) {
            for (const ParsedOperand& operand : instr.operands)
                visit(visit, operand);
            if (instr.op.name == "call")
                uses.indirect =
                    uses.indirect || std::any_of(instr.operands.begin(), instr.operands.end(),
                                                 [](const auto& o) { return o.kind == OperandKind::reg; });
        }
    }
}

void ModuleCompiler::place_globals() {
    struct Placed {
        const ParsedVariable* variable;
        Symbol* symbol;
        std::uint64_t offset;
    };
    std::vector<Placed> placed[2]; // variables, constants
    std::uint64_t bytes[2] = {0, 0}, align[2] = {256, 256};
    const auto place = [&](const ParsedVariable& v, Symbol& symbol) {
        const unsigned k = v.space == Space::constant ? 1 : 0;
        if (v.bytes() > (std::uint64_t{1} << 44))
            throw ParseError(v.line, "variable " + std::string(v.name) + " is too large");
        bytes[k] = align_up(bytes[k], std::max<std::uint64_t>(v.align, 8));
        align[k] = std::max<std::uint64_t>(align[k], v.align);
        placed[k].push_back({&v, &symbol, bytes[k]});
        bytes[k] += std::max<std::uint64_t>(v.bytes(), 1);
    };
    for (const ParsedVariable& v : module_.variables) {
        if (!in_device_memory(v) || v.is_extern)
            continue;
        auto [it, fresh] = symbols_.try_emplace(v.name);
        if (!fresh)
            throw ParseError(v.line, "variable " + std::string(v.name) + " is defined twice");
        it->second.space = v.space;
        it->second.variable = &v;
        place(v, it->second);
    }
    for (const auto& [name, parsed] : parsed_)
        for (std::size_t i = 0; i < parsed->variables.size(); ++i)
            if (const ParsedVariable& v = parsed->variables[i]; in_device_memory(v)) {
                Symbol& symbol = own_globals_[parsed][static_cast<int>(i)];
                symbol.space = v.space;
                symbol.variable = &v;
                place(v, symbol);
            }
    for (const ParsedVariable& v : module_.variables)
        if (in_device_memory(v) && v.is_extern && !symbols_.contains(v.name))
            throw ParseError(v.line,
                             "variable " + std::string(v.name) + " is declared .extern and defined nowhere");
    for (const unsigned k : {0U, 1U}) {
        if (placed[k].empty())
            continue;
        const std::uint64_t base = allocate_(bytes[k], align[k], k == 1);
        if (base == 0)
            throw std::bad_alloc();
        std::memset(reinterpret_cast<void*>(base), 0, bytes[k]);
        for (const Placed& p : placed[k]) {
            p.symbol->address = base + p.offset;
            if (p.symbol == find_symbol(p.variable->name))
                program->globals.push_back({std::string(p.variable->name), base + p.offset,
                                            p.variable->bytes(), k == 1, p.variable->managed});
        }
    }
    for (const auto& list : placed)
        for (const Placed& p : list)
            initialise(*p.variable, p.symbol->address);
}

void ModuleCompiler::initialise(const ParsedVariable& v, std::uint64_t address) {
    const unsigned size = type_size(v.type);
    for (const InitValue& value : v.init) {
        std::uint64_t bits = value.bits;
        if (!value.symbol.empty()) {
            if (const Symbol* symbol = find_symbol(value.symbol); symbol != nullptr)
                bits += symbol->address;
            else if (const Function* function = find_function(value.symbol); function != nullptr)
                bits += function_address(function->index);
            else
                throw ParseError(v.line, "'" + std::string(value.symbol) + "', in the initial value of " +
                                             std::string(v.name) + ", is not declared");
        } else if (value.kind == OperandKind::real32 && v.type == Type::f64) {
            bits = std::bit_cast<std::uint64_t>(
                static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
        } else if (value.kind == OperandKind::real64 && v.type == Type::f32) {
            bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
        }
        if (value.byte_mask != 0)
            bits = (bits & value.byte_mask) >> std::countr_zero(value.byte_mask);
        std::memcpy(reinterpret_cast<void*>(address), &bits, std::min(size, 8U));
        address += size;
    }
}

void ModuleCompiler::place_shared() {
    // A variable of the module that a function uses has one place for all kernels; what only kernels use, and
    // what they declare themselves, each kernel places for itself.
    for (const ParsedVariable& v : module_.variables) {
        if (v.space != Space::shared)
            continue;
        Symbol symbol;
        symbol.space = Space::shared;
        symbol.variable = &v;
        symbol.dynamic = v.is_extern || v.elements == 0;
        const bool in_function = std::any_of(uses_.begin(), uses_.end(), [&](const auto& use) {
            return !use.first->is_entry && use.second.symbols.contains(v.name);
        });
        if (symbol.dynamic || in_function) {
            if (!symbol.dynamic) {
                symbol.address = align_up(shared_group_, v.align);
                shared_group_ = symbol.address + v.bytes();
            }
            symbols_[v.name] = symbol;
        }
    }
    for (const auto& [name, parsed] : parsed_) {
        if (parsed->is_entry)
            continue;
        for (const ParsedVariable& v : parsed->variables)
            if (v.space == Space::shared) {
                Symbol& symbol = own_shared_[parsed][v.name];
                symbol.space = Space::shared;
                symbol.variable = &v;
                symbol.address = align_up(shared_group_, v.align);
                shared_group_ = symbol.address + v.bytes();
            }
    }
    for (const auto& [name, parsed] : parsed_) {
        if (!parsed->is_entry)
            continue;
        std::uint64_t end =
            shared_group_ != 0 && reaches_shared_group(*parsed) ? align_up(shared_group_, 16) : 0;
        const auto place = [&](const ParsedVariable& v) {
            Symbol& symbol = own_shared_[parsed][v.name];
            symbol.space = Space::shared;
            symbol.variable = &v;
            symbol.address = align_up(end, v.align);
            end = symbol.address + v.bytes();
        };
        for (const ParsedVariable& v : parsed->variables)
            if (v.space == Space::shared)
                place(v);
        for (const ParsedVariable& v : module_.variables)
            if (v.space == Space::shared && !symbols_.contains(v.name) &&
                uses_[parsed].symbols.contains(v.name))
                place(v);
        if (end > 0x7fffffff)
            throw ParseError(parsed->line, std::string(parsed->name) + " has too much shared memory");
        static_shared_[parsed] = end;
    }
}

bool ModuleCompiler::reaches_shared_group(const ParsedFunction& function) const {
    std::unordered_set<const ParsedFunction*> seen;
    const auto visit = [&](const auto& self, const ParsedFunction& f) -> bool {
        if (!seen.insert(&f).second)
            return false;
        if (!f.is_entry && own_shared_.contains(&f))
            return true;
        const Uses& uses = uses_.at(&f);
        if (uses.indirect)
            return true;
        return std::any_of(uses.symbols.begin(), uses.symbols.end(), [&](std::string_view name) {
            if (const Symbol* s = find_symbol(name); s != nullptr)
                return s->space == Space::shared && !s->dynamic;
            const auto callee = parsed_.find(name);
            return callee != parsed_.end() && self(self, *callee->second);
        });
    };
    return visit(visit, function);
}

void ModuleCompiler::make_kernel(const ParsedFunction& parsed, const Function& function) {
    Kernel kernel;
    kernel.name = function.name;
    std::uint32_t offset = 0;
    for (const int index : parsed.parameters) {
        const ParsedVariable& v = parsed.variables[static_cast<std::size_t>(index)];
        offset = static_cast<std::uint32_t>(align_up(offset, v.align));
        kernel.parameters.push_back({offset, static_cast<std::uint32_t>(v.bytes()), v.align});
        offset += static_cast<std::uint32_t>(v.bytes());
    }
    kernel.parameter_bytes = offset;
    kernel.static_shared_bytes = static_cast<std::uint32_t>(static_shared_[&parsed]);
    kernel.local_bytes = function.local_bytes;
    // The device's compiler would reuse registers; this one has no need to.
    kernel.registers = std::clamp<std::uint32_t>(function.frame_bytes / (4 * kLanes) / 4, 16, 64);
    kernel.min_blocks_per_sm = parsed.min_blocks;
    kernel.required_block = parsed.required_ntid;
    if (parsed.required_ntid.count() != 0)
        kernel.max_threads =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(1024, parsed.required_ntid.count()));
    else if (parsed.max_ntid.count() != 0)
        kernel.max_threads =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(1024, parsed.max_ntid.count()));
    kernel.target = module_.target;
    kernel.ptx_version = module_.version;
    kernel.unsupported = function.unsupported;
    kernel.program = program.get();
    kernel.function = &function;
    program->kernels.push_back(std::move(kernel));
}

void ModuleCompiler::compile_functions() {
    std::deque<FunctionCompiler> compilers;
    for (const ParsedFunction& parsed : module_.functions)
        if (parsed.has_body)
            compilers.emplace_back(*this, parsed, *functions_.at(parsed.name)).lay_out();
    std::size_t total = 0;
    for (FunctionCompiler& compiler : compilers) {
        compiler.run();
        compiler.function().first_instr = total;
        total += compiler.code.size();
    }
    program->code.reserve(total);
    for (const FunctionCompiler& compiler : compilers)
        program->code.insert(program->code.end(), compiler.code.begin(), compiler.code.end());
    for (FunctionCompiler& compiler : compilers) {
        Instr* first = program->code.data() + compiler.function().first_instr;
        compiler.function().entry = first;
        for (const FunctionCompiler::Fixup& fixup : compiler.fixups)
            if (fixup.table != nullptr)
                (*fixup.table)[fixup.slot] = first + fixup.target;
            else
                first[fixup.instr].target = first + fixup.target;
    }
}

std::unique_ptr<Program> ModuleCompiler::run() {
    declare_functions();
    find_uses();
    place_globals();
    place_shared();
    compile_functions();
    constants.finish(*program);
    for (const ParsedFunction& parsed : module_.functions)
        if (parsed.has_body && parsed.is_entry)
            make_kernel(parsed, *functions_.at(parsed.name));
    return std::move(program);
}

// ---- the public face ----

ParseError::ParseError(int line, const std::string& cause)
    : std::runtime_error(line > 0 ? "PTX line " + std::to_string(line) + ": " + cause : "PTX: " + cause),
      line_(line) {}

Module::Module(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Module::~Module() = default;

std::unique_ptr<Module> Module::load(std::string_view text, const GlobalAllocator& allocate) {
    const ParsedModule parsed = parse(text);
    return std::unique_ptr<Module>(new Module(ModuleCompiler(parsed, allocate).run()));
}

const std::vector<Kernel>& Module::kernels() const {
    return program_->kernels;
}
const std::vector<Global>& Module::globals() const {
    return program_->globals;
}

const Kernel* Module::find_kernel(std::string_view name) const {
    const auto& all = program_->kernels;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Kernel& k) { return k.name == name; });
    return found == all.end() ? nullptr : &*found;
}

const Global* Module::find_global(std::string_view name) const {
    const auto& all = program_->globals;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Global& g) { return g.name == name; });
    return found == all.end() ? nullptr : &*found;
}

} // namespace softgpu::ptx
