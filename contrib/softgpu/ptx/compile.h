// SPDX-License-Identifier: BSD-3-Clause
// From parsed functions to instructions. ModuleCompiler (module.cpp) lays out variables and functions; one
// FunctionCompiler a function chooses handlers and resolves operands.
#pragma once

#include "contrib/softgpu/ptx/isa.h"
#include "contrib/softgpu/ptx/program.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

namespace softgpu::ptx {

// Rows of constants, each held once.
class ConstantPool {
public:
    Ref add(unsigned size, std::uint64_t value); // size 2, 4, 8; 0: a predicate
    // 64-byte aligned; the refs stay valid as offsets.
    void finish(Program& program) const;

private:
    std::vector<std::byte> bytes_;
    std::map<std::pair<unsigned, std::uint64_t>, Ref> known_;
};

struct Symbol {
    Space space = Space::global;
    std::uint64_t address = 0; // of a global: its address; shared: its offset
    bool dynamic = false;      // .extern .shared
    const ParsedVariable* variable = nullptr;
};

class ModuleCompiler {
public:
    ModuleCompiler(const ParsedModule& module, const GlobalAllocator& allocate);
    std::unique_ptr<Program> run();

    // For FunctionCompiler.
    [[nodiscard]] const Symbol* find_symbol(std::string_view name) const;
    [[nodiscard]] const Function* find_function(std::string_view name) const;
    // Shared variables of `function`: of its own and those of the module that it alone uses.
    [[nodiscard]] const Symbol* own_shared(const ParsedFunction& function, std::string_view name) const;
    [[nodiscard]] const Symbol* own_global(const ParsedFunction& function, int variable) const;

    ConstantPool constants;
    std::unique_ptr<Program> program = std::make_unique<Program>();

private:
    void declare_functions();
    void find_uses();
    void place_globals();
    void place_shared();
    void initialise(const ParsedVariable& variable, std::uint64_t address);
    void compile_functions();
    void make_kernel(const ParsedFunction& parsed, const Function& function);
    [[nodiscard]] bool reaches_shared_group(const ParsedFunction& function) const;

    struct Uses {
        std::unordered_set<std::string_view> symbols; // names of module level
        bool indirect = false;
    };

    const ParsedModule& module_;
    const GlobalAllocator& allocate_;
    std::unordered_map<std::string_view, Symbol> symbols_;
    std::unordered_map<std::string_view, Function*> functions_;
    std::unordered_map<std::string_view, const ParsedFunction*> parsed_;
    std::unordered_map<const ParsedFunction*, Uses> uses_;
    std::unordered_map<const ParsedFunction*, std::unordered_map<std::string_view, Symbol>> own_shared_;
    std::unordered_map<const ParsedFunction*, std::uint64_t> static_shared_;
    std::unordered_map<const ParsedFunction*, std::unordered_map<int, Symbol>> own_globals_;
    std::uint64_t shared_group_ = 0; // bytes of shared variables that functions use
};

class FunctionCompiler {
public:
    FunctionCompiler(ModuleCompiler& module, const ParsedFunction& parsed, Function& function);

    struct Fixup {
        std::size_t instr = 0;                      // relative to the function's first
        std::size_t target = 0;                     // likewise
        std::vector<const Instr*>* table = nullptr; // a slot of brx.idx instead
        std::size_t slot = 0;
    };

    void lay_out(); // of all functions, before any run()
    void run();
    std::vector<Instr> code;
    std::vector<Fixup> fixups;
    [[nodiscard]] Function& function() const { return function_; }
    [[nodiscard]] std::uint32_t registers() const { return frame_bytes_ / (4 * kLanes); }

private:
    void instruction(const ParsedInstr& instr);
    bool try_instruction(const ParsedInstr& instr, Instr& in);
    bool shaped(const ParsedInstr& instr, Instr& in, std::string_view shape);
    bool move(const ParsedInstr& instr, Instr& in);
    bool move_vector(const ParsedInstr& instr, Instr& in);
    bool convert(const ParsedInstr& instr, Instr& in);
    bool convert_address(const ParsedInstr& instr, Instr& in);
    bool memory(const ParsedInstr& instr, Instr& in);
    bool atomic(const ParsedInstr& instr, Instr& in);
    bool copy_async(const ParsedInstr& instr, Instr& in);
    bool collective(const ParsedInstr& instr, Instr& in);
    bool barrier(const ParsedInstr& instr, Instr& in);
    bool branches(const ParsedInstr& instr, Instr& in);
    bool call(const ParsedInstr& instr, Instr& in);
    bool control(const ParsedInstr& instr, Instr& in);
    void floating_point(const Op& op, Instr& in) const;
    void address(const ParsedOperand& operand, const Op& op, Instr& in);
    Slot slot(const ParsedOperand& operand, const Slot* like);

    // Operands
    Ref source(const ParsedOperand& operand, unsigned size, Type type);
    Ref destination(const ParsedOperand& operand, unsigned size);
    Ref register_ref(int reg, unsigned size);
    Ref symbol_ref(const ParsedOperand& operand, unsigned size);
    Ref special_ref(std::string_view name, unsigned size);
    Ref widened(Ref word, unsigned size);
    Ref temporary(unsigned size);
    std::uint64_t immediate(const ParsedOperand& operand, Type type) const;
    [[nodiscard]] unsigned register_size(const ParsedOperand& operand) const; // 0 if it is no register
    [[nodiscard]] std::size_t label(std::string_view name) const;
    [[noreturn]] void fail(const std::string& cause) const;
    void emit(Instr in) { code.push_back(in); }

    ModuleCompiler& module_;
    Program& program_;
    const ParsedFunction& parsed_;
    Function& function_;
    const Isa& isa_ = best_isa();
    int line_ = 0;
    std::vector<Ref> registers_;
    std::vector<std::uint32_t> variable_offset_; // local or parameter memory
    std::vector<bool> kernel_parameter_;
    std::uint32_t frame_bytes_ = 0;
    std::uint32_t local_bytes_ = 0;
    std::uint32_t parameter_bytes_ = 0;
};

} // namespace softgpu::ptx
