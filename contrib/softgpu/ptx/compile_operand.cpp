// SPDX-License-Identifier: BSD-3-Clause
// Operands: registers, immediates, special registers, addresses of symbols; and the moves among them.
#include "contrib/softgpu/ptx/block.h"
#include "contrib/softgpu/ptx/compile.h"

#include <bit>

namespace softgpu::ptx {
namespace {

const std::unordered_map<std::string_view, Special> kSpecialNames{
    {"%tid.x", kTidX},
    {"%tid.y", kTidY},
    {"%tid.z", kTidZ},
    {"%ntid.x", kNtidX},
    {"%ntid.y", kNtidY},
    {"%ntid.z", kNtidZ},
    {"%ctaid.x", kCtaidX},
    {"%ctaid.y", kCtaidY},
    {"%ctaid.z", kCtaidZ},
    {"%nctaid.x", kNctaidX},
    {"%nctaid.y", kNctaidY},
    {"%nctaid.z", kNctaidZ},
    {"%laneid", kLaneId},
    {"%warpid", kWarpId},
    {"%nwarpid", kNwarpId},
    {"%smid", kSmId},
    {"%nsmid", kNsmId},
    {"%lanemask_eq", kLanemaskEq},
    {"%lanemask_le", kLanemaskLe},
    {"%lanemask_lt", kLanemaskLt},
    {"%lanemask_ge", kLanemaskGe},
    {"%lanemask_gt", kLanemaskGt},
    {"%dynamic_smem_size", kDynamicSmemSize},
    {"%total_smem_size", kTotalSmemSize},
    {"%aggr_smem_size", kTotalSmemSize},
    {"%envreg1", kEnvreg1},
    {"%envreg2", kEnvreg2},
    {"%reserved_smem_offset_begin", kReservedSmem},
    {"%reserved_smem_offset_0", kReservedSmem},
    {"%reserved_smem_offset_1", kReservedSmem},
    {"%tid.w", kZero},
    {"%ntid.w", kZero},
    {"%ctaid.w", kZero},
    {"%nctaid.w", kZero},
    // A cluster is one block.
    {"%clusterid.x", kCtaidX},
    {"%clusterid.y", kCtaidY},
    {"%clusterid.z", kCtaidZ},
    {"%nclusterid.x", kNctaidX},
    {"%nclusterid.y", kNctaidY},
    {"%nclusterid.z", kNctaidZ},
    {"%cluster_ctaid.x", kZero},
    {"%cluster_ctaid.y", kZero},
    {"%cluster_ctaid.z", kZero},
    {"%cluster_nctaid.x", kOne},
    {"%cluster_nctaid.y", kOne},
    {"%cluster_nctaid.z", kOne},
    {"%cluster_ctarank", kZero},
    {"%cluster_nctarank", kOne},
    {"WARP_SZ", kWarpSize},
};

const std::unordered_map<std::string_view, Clock> kClockNames{
    {"%clock", Clock::clock},
    {"%clock_hi", Clock::clock_hi},
    {"%clock64", Clock::clock64},
    {"%globaltimer", Clock::globaltimer},
    {"%globaltimer_lo", Clock::globaltimer_lo},
    {"%globaltimer_hi", Clock::globaltimer_hi},
    {"%gridid", Clock::gridid},
};

} // namespace

unsigned FunctionCompiler::register_size(const ParsedOperand& operand) const {
    return operand.kind == OperandKind::reg ? parsed_.registers[static_cast<std::size_t>(operand.reg)].size
                                            : 0;
}

Ref FunctionCompiler::register_ref(int reg, unsigned size) {
    const unsigned have = parsed_.registers[static_cast<std::size_t>(reg)].size;
    if (have != size)
        fail(size == 0   ? "a predicate register is wanted"
             : have == 0 ? "a predicate register cannot be used here"
                         : "a register of " + std::to_string(8 * have) + " bits where " +
                               std::to_string(8 * size) + " are wanted");
    return registers_[static_cast<std::size_t>(reg)];
}

Ref FunctionCompiler::destination(const ParsedOperand& operand, unsigned size) {
    if (operand.kind == OperandKind::sink)
        return kNoRef;
    if (operand.kind != OperandKind::reg)
        fail("the destination must be a register");
    return register_ref(operand.reg, size);
}

std::uint64_t FunctionCompiler::immediate(const ParsedOperand& operand, Type type) const {
    switch (operand.kind) {
    case OperandKind::real32:
        return type == Type::f64 ? std::bit_cast<std::uint64_t>(static_cast<double>(
                                       std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits))))
                                 : operand.bits;
    case OperandKind::real64:
        return type == Type::f32
                   ? std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)))
                   : operand.bits;
    default:
        break;
    }
    if (type == Type::f32)
        return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int64_t>(operand.bits)));
    if (type == Type::f64)
        return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(operand.bits)));
    return operand.bits;
}

Ref FunctionCompiler::source(const ParsedOperand& operand, unsigned size, Type type) {
    switch (operand.kind) {
    case OperandKind::reg:
        return register_ref(operand.reg, size);
    case OperandKind::integer:
    case OperandKind::real32:
    case OperandKind::real64:
        if (size == 0)
            return module_.constants.add(0, operand.bits != 0 ? 0xffffffff : 0);
        return module_.constants.add(size, immediate(operand, type));
    case OperandKind::symbol:
        return symbol_ref(operand, size);
    default:
        fail("this operand cannot be a source");
    }
}

// A 32-bit row as one of another width.
Ref FunctionCompiler::widened(Ref word, unsigned size) {
    if (size == 4)
        return word;
    Op cvt;
    cvt.types = {size == 8 ? Type::u64 : Type::u16, Type::u32};
    Instr in;
    in.a = word;
    in.d = temporary(size);
    in.fn = isa_.select_convert(cvt, in, size, 4);
    emit(in);
    return in.d;
}

Ref FunctionCompiler::special_ref(std::string_view name, unsigned size) {
    if (const auto special = kSpecialNames.find(name); special != kSpecialNames.end()) {
        program_.reserved_shared = program_.reserved_shared || special->second == kReservedSmem;
        return widened(kSpecials | (special->second * kSpecialRow), size);
    }
    if (name.starts_with("%envreg") || name.starts_with("%pm") || name == "%is_explicit_cluster")
        return module_.constants.add(size, 0);
    const auto clock = kClockNames.find(name);
    if (clock == kClockNames.end())
        return kNoRef;
    Instr in;
    in.fn = read_clock;
    in.imm = static_cast<std::int64_t>(clock->second);
    in.d = temporary(size);
    in.flags = size == 4 ? kAddress32 : 0;
    emit(in);
    return in.d;
}

Ref FunctionCompiler::symbol_ref(const ParsedOperand& operand, unsigned size) {
    const std::string_view name = operand.name;
    if (name[0] == '%' || name == "WARP_SZ") {
        if (const Ref ref = special_ref(name, size); ref != kNoRef)
            return ref;
        fail("register '" + std::string(name) + "' is not declared");
    }
    const auto offset = static_cast<std::uint64_t>(operand.offset);
    if (operand.variable >= 0) {
        const auto i = static_cast<std::size_t>(operand.variable);
        const ParsedVariable& v = parsed_.variables[i];
        if (kernel_parameter_[i])
            return module_.constants.add(size, variable_offset_[i] + offset);
        if (v.space == Space::local || v.space == Space::param) {
            Op op;
            op.name = "local_address";
            op.types = {size == 4 ? Type::b32 : Type::b64};
            Instr in;
            in.imm = static_cast<std::int64_t>(variable_offset_[i] + offset);
            in.d = temporary(size);
            in.fn = isa_.select_move(op, in, 0, false);
            emit(in);
            return in.d;
        }
        if (const Symbol* own = module_.own_global(parsed_, operand.variable); own != nullptr)
            return module_.constants.add(size, own->address + offset);
    }
    if (const Symbol* shared = module_.own_shared(parsed_, name); shared != nullptr)
        return module_.constants.add(size, shared->address + offset);
    if (const Symbol* symbol = module_.find_symbol(name); symbol != nullptr) {
        if (!symbol->dynamic)
            return module_.constants.add(size, symbol->address + offset);
        Ref begin = kSpecials | (kDynamicSmem * kSpecialRow);
        if (offset != 0) {
            Op add;
            add.name = "cvta";
            add.types = {Type::b32};
            Instr in;
            in.a = begin;
            in.imm = operand.offset;
            in.d = temporary(4);
            in.fn = isa_.select_move(add, in, 0, false);
            emit(in);
            begin = in.d;
        }
        return widened(begin, size);
    }
    if (const Function* function = module_.find_function(name); function != nullptr)
        return module_.constants.add(size, function_address(function->index));
    fail("'" + std::string(name) + "' is not declared");
}

bool FunctionCompiler::move(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    if (instr.operands.size() != 2 || op.types.empty())
        return false;
    if (instr.operands[0].kind == OperandKind::vector || instr.operands[1].kind == OperandKind::vector)
        return move_vector(instr, in);
    const unsigned size = type_size(op.type());
    in.d = destination(instr.operands[0], size);
    if (in.d == kNoRef)
        in.d = temporary(size);
    in.a = source(instr.operands[1], size, op.type());
    in.flags |= instr.operands[1].negated ? kANegated : std::uint16_t{0};
    in.fn = isa_.select_move(op, in, 0, false);
    return in.fn != nullptr;
}

bool FunctionCompiler::move_vector(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    const bool pack = instr.operands[1].kind == OperandKind::vector;
    const ParsedOperand& list = instr.operands[pack ? 1 : 0];
    const ParsedOperand& whole = instr.operands[pack ? 0 : 1];
    const auto n = static_cast<unsigned>(list.elements.size());
    const unsigned size = type_size(op.type());
    if (n < 2 || whole.kind == OperandKind::vector || size % n != 0)
        return false;
    const unsigned element = size / n;
    std::vector<Ref> refs;
    for (const ParsedOperand& e : list.elements) // bytes live in 16-bit registers
        refs.push_back(pack ? source(e, std::max(2U, element), Type::none)
                            : destination(e, std::max(2U, element)));
    (pack ? in.d : in.a) = pack ? destination(whole, size) : source(whole, size, op.type());
    if (pack && in.d == kNoRef)
        in.d = temporary(size);
    in.aux = n;
    in.fn = isa_.select_move(op, in, element, pack);
    program_.lists.push_back(std::move(refs));
    in.list = program_.lists.back().data();
    return in.fn != nullptr;
}

bool FunctionCompiler::convert(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    if (instr.operands.size() < 2 || op.types.size() != 2)
        return false;
    const bool packs = op.type(0) == Type::f16x2 || op.type(0) == Type::bf16x2;
    const auto size_of = [&](const ParsedOperand& operand, Type type) {
        const unsigned size = register_size(operand);
        return size != 0 ? size : std::max(2U, type_size(type));
    };
    const unsigned d_size = size_of(instr.operands[0], op.type(0));
    unsigned a_size = size_of(instr.operands[1], op.type(1));
    if (instr.operands[1].kind == OperandKind::symbol)
        a_size = std::max(4U, a_size);
    if (d_size < type_size(op.type(0)) || a_size < type_size(op.type(1)))
        fail("a register is smaller than the type of " + std::string(op.full));
    in.d = destination(instr.operands[0], d_size);
    if (in.d == kNoRef)
        in.d = temporary(d_size);
    in.a = source(instr.operands[1], a_size, op.type(1));
    if (packs && instr.operands.size() == 3)
        in.b = source(instr.operands[2], 4, Type::f32);
    else if (instr.operands.size() != 2)
        return false;
    in.fn = isa_.select_convert(op, in, d_size, a_size);
    return in.fn != nullptr;
}

bool FunctionCompiler::convert_address(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    if (instr.operands.size() != 2)
        return false;
    if (op.name == "isspacep") {
        in.d = destination(instr.operands[0], 0);
        if (in.d == kNoRef)
            in.d = temporary(0);
        in.a = source(instr.operands[1], 8, Type::u64);
        in.aux = static_cast<std::uint32_t>(op.space);
        in.fn = space_test;
        return true;
    }
    const unsigned size = type_size(op.type());
    in.d = destination(instr.operands[0], size);
    in.a = source(instr.operands[1], size, op.type());
    if (in.d == kNoRef)
        in.d = temporary(size);
    switch (op.space) {
    case Space::shared:
        in.imm = static_cast<std::int64_t>(kSharedWindow);
        break;
    case Space::local:
        in.imm = static_cast<std::int64_t>(kLocalWindow);
        break;
    case Space::param: // a function's parameters lie in local memory
        in.imm = static_cast<std::int64_t>(parsed_.is_entry ? kParamWindow : kLocalWindow);
        break;
    default:
        break;
    }
    in.fn = isa_.select_move(op, in, 0, false);
    return in.fn != nullptr;
}

} // namespace softgpu::ptx
