// SPDX-License-Identifier: BSD-3-Clause
// Loads, stores, atomics, copies.
#include "contrib/softgpu/ptx/compile.h"

namespace softgpu::ptx {
namespace {

// As in exec/access.h, which is not for code outside exec/.
enum class Where : std::uint8_t { global, shared, local, frame, param, generic };

} // namespace

// Fills a, imm, aux and the address flag.
void FunctionCompiler::address(const ParsedOperand& operand, const Op& op, Instr& in) {
    Where where = Where::generic;
    switch (op.space) {
    case Space::global:
    case Space::constant:
        where = Where::global;
        break;
    case Space::shared:
        where = Where::shared;
        break;
    case Space::local:
        where = Where::local;
        break;
    case Space::param:
        where = parsed_.is_entry ? Where::param : Where::local;
        break;
    case Space::generic:
        break;
    }
    if (operand.kind != OperandKind::address || operand.elements.size() != 1)
        fail(std::string(op.full) + " wants an address in brackets");
    const ParsedOperand& base = operand.elements[0];
    in.imm = operand.offset;
    switch (base.kind) {
    case OperandKind::reg: {
        const unsigned size = register_size(base);
        if (size != 4 && size != 8)
            fail("an address register has 32 or 64 bits");
        in.a = register_ref(base.reg, size);
        if (size == 4)
            in.flags |= kAddress32;
        break;
    }
    case OperandKind::integer:
        in.imm += static_cast<std::int64_t>(base.bits);
        break;
    case OperandKind::symbol: {
        in.imm += base.offset;
        const Symbol* symbol = nullptr;
        if (base.variable >= 0) {
            const auto i = static_cast<std::size_t>(base.variable);
            const Space space = parsed_.variables[i].space;
            if (kernel_parameter_[i] || space == Space::local || space == Space::param) {
                in.imm += variable_offset_[i];
                where = kernel_parameter_[i] ? Where::param : Where::frame;
                break;
            }
            symbol = module_.own_global(parsed_, base.variable);
        }
        if (symbol == nullptr)
            symbol = module_.own_shared(parsed_, base.name);
        if (symbol == nullptr)
            symbol = module_.find_symbol(base.name);
        if (symbol == nullptr)
            fail("'" + std::string(base.name) + "' is not declared");
        where = symbol->space == Space::shared ? Where::shared : Where::global;
        if (symbol->dynamic) {
            in.a = kSpecials | (kDynamicSmem * kSpecialRow);
            in.flags |= kAddress32;
        } else {
            in.imm += static_cast<std::int64_t>(symbol->address);
        }
        break;
    }
    default:
        fail("this cannot be an address");
    }
    in.aux = static_cast<std::uint32_t>(where) | (op.vector << 8);
}

bool FunctionCompiler::memory(const ParsedInstr& instr, Instr& in) {
    Op op = instr.op;
    const bool store = op.name == "st";
    op.name = store ? "st" : "ld";
    if (instr.operands.size() < 2 || op.has("async") || op.has("bulk"))
        return false; // a third operand is a cache policy
    address(instr.operands[store ? 0 : 1], op, in);
    const ParsedOperand& data = instr.operands[store ? 1 : 0];
    const unsigned type = type_size(op.type());
    if (type == 0)
        return false;
    if (in.a == kNoRef && static_cast<Where>(in.aux & 0xff) == Where::param &&
        (in.imm < 0 || in.imm + std::int64_t{type} * op.vector > parameter_bytes_))
        fail("a read behind the parameters of " + function_.name);
    std::vector<const ParsedOperand*> elements;
    if (data.kind == OperandKind::vector)
        for (const ParsedOperand& e : data.elements)
            elements.push_back(&e);
    else
        elements.push_back(&data);
    if (elements.size() != op.vector)
        fail(std::string(op.full) + " wants " + std::to_string(op.vector) + " registers");
    unsigned size = std::max(2U, type);
    for (const ParsedOperand* e : elements)
        if (const unsigned have = register_size(*e); have != 0)
            size = have;
    in.fn = isa_.select_memory(op, in, size);
    if (in.fn == nullptr)
        return false;
    std::vector<Ref> refs;
    for (const ParsedOperand* e : elements)
        refs.push_back(store ? source(*e, size, op.type()) : destination(*e, size));
    if (op.vector == 1) {
        (store ? in.b : in.d) = !store && refs[0] == kNoRef ? temporary(size) : refs[0];
        return true;
    }
    program_.lists.push_back(std::move(refs));
    in.list = program_.lists.back().data();
    return true;
}

bool FunctionCompiler::atomic(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    const bool reduction = op.name == "red";
    const std::size_t first = reduction ? 0 : 1;
    if (instr.operands.size() < first + 2 || op.has("async"))
        return false;
    address(instr.operands[first], op, in);
    in.fn = isa_.select_atomic(op, in);
    if (in.fn == nullptr)
        return false;
    const unsigned size = type_size(op.type());
    if (op.vector > 1) {
        std::vector<Ref> refs;
        for (const ParsedOperand& e : instr.operands[first + 1].elements)
            refs.push_back(source(e, size, op.type()));
        if (refs.size() != op.vector)
            return false;
        for (unsigned i = 0; i < op.vector; ++i)
            refs.push_back(reduction || i >= instr.operands[0].elements.size()
                               ? kNoRef
                               : destination(instr.operands[0].elements[i], size));
        program_.lists.push_back(std::move(refs));
        in.list = program_.lists.back().data();
        return true;
    }
    if (!reduction)
        in.d = destination(instr.operands[0], size);
    in.b = source(instr.operands[first + 1], size, op.type());
    if (op.has("cas")) {
        if (instr.operands.size() < first + 3)
            fail(std::string(op.full) + " wants two values");
        in.c = source(instr.operands[first + 2], size, op.type());
    }
    return true;
}

// cp.async.{ca,cg}.shared.global [to], [from], bytes{, bytes from the source}: done at once.
bool FunctionCompiler::copy_async(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    if (!op.has("async") || op.has("bulk"))
        return false;
    if (op.has("commit_group") || op.has("wait_group") || op.has("wait_all")) {
        Op nothing;
        nothing.name = "fence";
        return control({nothing, {}, -1, false, instr.line}, in);
    }
    if (instr.operands.size() < 3 || op.has("mbarrier"))
        return false;
    Op to = op, from = op;
    to.space = Space::shared;
    from.space = Space::global;
    Instr source_address;
    address(instr.operands[1], from, source_address);
    address(instr.operands[0], to, in);
    if (source_address.a == kNoRef) // the handler wants a register
        source_address.a = module_.constants.add(8, static_cast<std::uint64_t>(source_address.imm));
    else if (source_address.imm != 0)
        return false;
    in.b = source_address.a;
    if ((source_address.flags & kAddress32) != 0)
        in.flags |= kUniform;
    const std::uint64_t size = instr.operands[2].bits;
    if (size != 4 && size != 8 && size != 16)
        fail("cp.async copies 4, 8 or 16 bytes");
    in.aux = static_cast<std::uint32_t>(size << 8);
    if (instr.operands.size() > 3 && register_size(instr.operands[3]) != 8 &&
        register_size(instr.operands[3]) != 0)
        in.c = source(instr.operands[3], 4, Type::u32);
    else if (instr.operands.size() > 3 && instr.operands[3].kind == OperandKind::integer)
        in.c = module_.constants.add(4, instr.operands[3].bits);
    Op copy;
    copy.name = "cp.async";
    in.fn = isa_.select_memory(copy, in, 4);
    return in.fn != nullptr;
}

} // namespace softgpu::ptx
