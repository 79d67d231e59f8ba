// SPDX-License-Identifier: BSD-3-Clause
// Branches, calls, barriers, and what the lanes of a warp do together.
#include "contrib/softgpu/ptx/block.h"
#include "contrib/softgpu/ptx/compile.h"

namespace softgpu::ptx {

std::size_t FunctionCompiler::label(std::string_view name) const {
    const auto found = parsed_.labels.find(name);
    if (found == parsed_.labels.end())
        fail("there is no label '" + std::string(name) + "' in " + function_.name);
    return found->second;
}

bool FunctionCompiler::branches(const ParsedInstr& instr, Instr& in) {
    if (instr.op.name == "brx") {
        if (instr.operands.size() != 2 || instr.operands[1].kind != OperandKind::symbol)
            return false;
        const auto table = parsed_.tables.find(instr.operands[1].name);
        if (table == parsed_.tables.end())
            fail("there is no .branchtargets '" + std::string(instr.operands[1].name) + "'");
        in.a = source(instr.operands[0], 4, Type::u32);
        std::vector<const Instr*>& targets = program_.tables.emplace_back(table->second.labels.size());
        for (std::size_t i = 0; i < targets.size(); ++i)
            fixups.push_back({0, label(table->second.labels[i]), &targets, i});
        in.table = &targets;
        in.fn = branch_table;
        return true;
    }
    if (instr.operands.size() != 1 || instr.operands[0].kind != OperandKind::symbol)
        fail("bra wants a label");
    in.fn = branch;
    if (instr.guard >= 0) {
        in.fn = branch_if;
        in.guard = registers_[static_cast<std::size_t>(instr.guard)];
        in.flags |= instr.guard_negated ? kGuardNegated : std::uint16_t{0};
    }
    fixups.push_back({code.size(), label(instr.operands[0].name), nullptr, 0});
    emit(in);
    return true;
}

Slot FunctionCompiler::slot(const ParsedOperand& operand, const Slot* like) {
    Slot s;
    if (operand.kind == OperandKind::symbol && operand.variable >= 0) {
        const auto i = static_cast<std::size_t>(operand.variable);
        const ParsedVariable& v = parsed_.variables[i];
        if (v.space == Space::param && !kernel_parameter_[i]) {
            s.offset = variable_offset_[i];
            s.size = static_cast<std::uint32_t>(v.bytes());
            return s;
        }
    }
    s.is_row = true;
    s.size = register_size(operand);
    if (s.size == 0)
        s.size = like != nullptr && (like->size == 2 || like->size == 4 || like->size == 8) ? like->size : 8;
    s.row = source(operand, s.size, Type::none);
    return s;
}

bool FunctionCompiler::call(const ParsedInstr& instr, Instr& in) {
    const ParsedOperand* returns = nullptr;
    const ParsedOperand* arguments = nullptr;
    std::size_t at = 0;
    if (at < instr.operands.size() && instr.operands[at].kind == OperandKind::group)
        returns = &instr.operands[at++];
    if (at >= instr.operands.size())
        fail("call wants a function");
    const ParsedOperand& target = instr.operands[at++];
    if (at < instr.operands.size() && instr.operands[at].kind == OperandKind::group)
        arguments = &instr.operands[at++];

    CallSite& site = program_.calls.emplace_back();
    const Function* callee = nullptr;
    if (target.kind == OperandKind::symbol) {
        callee = module_.find_function(target.name);
        if (callee == nullptr)
            fail("function '" + std::string(target.name) + "' is not declared");
        if (!callee->has_body && callee->builtin == Builtin::none) {
            // The real driver finds this when it links; so the kernel, not the whole module, is refused.
            if (function_.unsupported.empty())
                function_.unsupported = "function " + callee->name + " is called, and defined nowhere";
            program_.messages.push_back(function_.unsupported);
            in.message = &program_.messages.back();
            in.fn = not_supported;
            return true;
        }
        site.callee = callee;
        in.fn = softgpu::ptx::call;
    } else {
        in.a = source(target, 8, Type::u64);
        in.fn = call_indirect;
    }
    // Formal parameters are laid out when the callee is compiled, which may be later: only sizes of
    // immediates ask.
    const auto list = [&](const ParsedOperand* from, std::vector<Slot>& to, const std::vector<Slot>* like) {
        if (from == nullptr)
            return;
        for (std::size_t i = 0; i < from->elements.size(); ++i)
            to.push_back(
                slot(from->elements[i], like != nullptr && i < like->size() ? &(*like)[i] : nullptr));
    };
    list(returns, site.returns, nullptr);
    list(arguments, site.arguments, callee != nullptr ? &callee->parameters : nullptr);
    in.site = &site;
    return true;
}

bool FunctionCompiler::barrier(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    in.fn = select_control(op, in);
    if (in.fn == nullptr)
        return false;
    if (op.has("cluster")) { // a cluster is one block: waiting for it is waiting for the block
        if (op.has("arrive")) {
            Op nothing;
            nothing.name = "nothing";
            in.fn = select_control(nothing, in);
            return true;
        }
        in.a = module_.constants.add(4, kBarriers - 1);
        in.imm = 1;
        return true;
    }
    const bool reduction = op.has("red");
    std::size_t at = 0;
    std::size_t end = instr.operands.size();
    if (reduction) {
        if (end < 3)
            fail("bar.red wants a destination, a barrier and a predicate");
        const unsigned size = op.has("popc") ? 4 : 0;
        in.d = destination(instr.operands[at++], size);
        if (in.d == kNoRef)
            in.d = temporary(size);
        --end;
        in.c = source(instr.operands[end], 0, Type::pred);
        in.flags |= instr.operands[end].negated ? kCNegated : std::uint16_t{0};
    }
    in.a = at < end ? source(instr.operands[at], 4, Type::u32) : module_.constants.add(4, 0);
    if (at + 1 < end)
        in.b = source(instr.operands[at + 1], 4, Type::u32);
    return true;
}

bool FunctionCompiler::collective(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    in.fn = isa_.select_warp(op, in);
    if (in.fn == nullptr)
        return false;
    const auto& operands = instr.operands;
    const auto kind = [&](unsigned operand, unsigned what) {
        in.imm |= static_cast<std::int64_t>(what) << (4 * operand);
    };
    enum : unsigned { predicate = 1, word = 2, wide = 3 };
    const bool sync = op.has("sync");
    std::size_t at = 0;
    if (op.name != "bar") {
        if (operands.empty())
            fail(std::string(op.full) + " wants operands");
        const bool to_predicate = op.name == "vote" && !op.has("ballot");
        const ParsedOperand& d = operands[at++];
        if (d.kind == OperandKind::pair) {
            in.d = destination(d.elements[0], 4);
            in.guard = destination(d.elements[1], 0);
            kind(5, predicate);
        } else {
            in.d = destination(d, to_predicate ? 0 : 4);
        }
        if (in.d == kNoRef)
            in.d = temporary(to_predicate ? 0 : 4);
        kind(0, to_predicate ? predicate : word);
    }
    const bool value = op.name == "shfl" || op.name == "vote" || op.name == "match" || op.name == "redux";
    if (value) {
        if (at >= operands.size())
            fail(std::string(op.full) + " wants more operands");
        const ParsedOperand& a = operands[at++];
        const unsigned size = op.name == "vote" ? 0 : op.name == "match" ? type_size(op.type()) : 4;
        in.a = source(a, size, op.type());
        in.flags |= a.negated ? kANegated : std::uint16_t{0};
        kind(1, size == 0 ? predicate : size == 8 ? wide : word);
    }
    if (op.name == "shfl") {
        if (at + 1 >= operands.size())
            fail(std::string(op.full) + " wants more operands");
        in.b = source(operands[at++], 4, Type::u32);
        in.c = source(operands[at++], 4, Type::u32);
        kind(2, word);
        kind(3, word);
    }
    if (sync) {
        if (at >= operands.size())
            fail(std::string(op.full) + " wants a member mask");
        in.e = source(operands[at++], 4, Type::u32);
        kind(4, word);
    }
    return true;
}

} // namespace softgpu::ptx
