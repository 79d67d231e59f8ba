// SPDX-License-Identifier: BSD-3-Clause
// Layout of a function, and the instructions whose operands follow a fixed shape.
#include "contrib/softgpu/ptx/compile.h"

#include "contrib/softgpu/ptx/block.h"

#include <algorithm>
#include <cstring>

namespace softgpu::ptx {
namespace {

// Operands by opcode: T the first type, U the second, W twice the first, 2 4 8 bytes, P predicate, I goes to
// Instr::imm. Lower case: may be missing.
const std::unordered_map<std::string_view, std::string_view> kShapes{
    {"add", "TTT"},    {"sub", "TTT"},    {"mul", "TTT"},        {"mad", "TTTT"},       {"fma", "TTTT"},
    {"mul24", "444"},  {"mad24", "4444"}, {"div", "TTT"},        {"rem", "TTT"},        {"min", "TTTt"},
    {"max", "TTTt"},   {"abs", "TT"},     {"neg", "TT"},         {"not", "TT"},         {"cnot", "TT"},
    {"and", "TTT"},    {"or", "TTT"},     {"xor", "TTT"},        {"shl", "TT4"},        {"shr", "TT4"},
    {"popc", "4T"},    {"clz", "4T"},     {"bfind", "4T"},       {"brev", "TT"},        {"bfe", "TT44"},
    {"bfi", "TTT44"},  {"bmsk", "444"},   {"szext", "444"},      {"prmt", "4444"},      {"shf", "4444"},
    {"lop3", "4444I"}, {"sad", "TTTT"},   {"addc", "TTT"},       {"subc", "TTT"},       {"madc", "TTTT"},
    {"dp4a", "4444"},  {"dp2a", "4444"},  {"vabsdiff4", "4444"}, {"vabsdiff2", "4444"}, {"fns", "4444"},
    {"sqrt", "TT"},    {"rcp", "TT"},     {"rsqrt", "TT"},       {"sin", "TT"},         {"cos", "TT"},
    {"ex2", "TT"},     {"lg2", "TT"},     {"tanh", "TT"},        {"copysign", "TTT"},   {"testp", "PT"},
    {"selp", "TTTP"},  {"slct", "TTTU"},  {"setp", "PTTp"},      {"set", "TUUp"},
};

// Those that leave the straight path, or wait: a guard becomes a branch around them.
bool is_control(std::string_view name) {
    static const std::unordered_set<std::string_view> names{"call",    "ret",   "exit", "bar",
                                                            "barrier", "shfl",  "vote", "match",
                                                            "redux",   "elect", "brx",  "nanosleep"};
    return names.contains(name);
}

} // namespace

Ref ConstantPool::add(unsigned size, std::uint64_t value) {
    if (size < 8 && size > 0)
        value &= (std::uint64_t{1} << (8 * size)) - 1;
    const auto [it, fresh] = known_.try_emplace({size, value}, 0);
    if (!fresh)
        return it->second;
    const std::size_t row = size == 0 ? 64 : std::size_t{size} * kLanes;
    const std::size_t at = bytes_.size();
    bytes_.resize(at + std::max<std::size_t>(row, 64));
    if (bytes_.size() > kRefMask)
        throw ParseError(0, "the module has too many constants");
    if (size == 0) {
        std::memcpy(&bytes_[at], &value, 4);
    } else {
        for (unsigned l = 0; l < kLanes; ++l)
            std::memcpy(&bytes_[at + std::size_t{l} * size], &value, size);
    }
    it->second = kConstants | static_cast<Ref>(at);
    return it->second;
}

void ConstantPool::finish(Program& program) const {
    program.constants_store.resize(bytes_.size() + 64);
    auto* begin = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(program.constants_store.data()) + 63) & ~std::uintptr_t{63});
    std::copy(bytes_.begin(), bytes_.end(), begin);
    program.constants = begin;
}

FunctionCompiler::FunctionCompiler(ModuleCompiler& module, const ParsedFunction& parsed, Function& function)
    : module_(module), program_(*module.program), parsed_(parsed), function_(function), line_(parsed.line) {}

void FunctionCompiler::fail(const std::string& cause) const {
    throw ParseError(line_, cause);
}

Ref FunctionCompiler::temporary(unsigned size) {
    const std::uint32_t row = size == 0 ? 4 : size * kLanes;
    frame_bytes_ = size == 0 ? frame_bytes_ : (frame_bytes_ + 63) & ~63U;
    const Ref ref = frame_bytes_;
    frame_bytes_ += row;
    if (frame_bytes_ > kRefMask / 2)
        fail(function_.name + " has too many registers");
    return ref;
}

void FunctionCompiler::lay_out() {
    // Predicates first: they are small.
    registers_.resize(parsed_.registers.size(), kNoRef);
    for (std::size_t i = 0; i < registers_.size(); ++i)
        if (parsed_.registers[i].size == 0)
            registers_[i] = temporary(0);
    for (std::size_t i = 0; i < registers_.size(); ++i)
        if (parsed_.registers[i].size != 0)
            registers_[i] = temporary(parsed_.registers[i].size);

    const std::size_t n = parsed_.variables.size();
    variable_offset_.resize(n, 0);
    kernel_parameter_.resize(n, false);
    if (parsed_.is_entry)
        for (const int index : parsed_.parameters) {
            const auto i = static_cast<std::size_t>(index);
            const ParsedVariable& v = parsed_.variables[i];
            parameter_bytes_ = (parameter_bytes_ + v.align - 1) & ~(v.align - 1);
            kernel_parameter_[i] = true;
            variable_offset_[i] = parameter_bytes_;
            parameter_bytes_ += static_cast<std::uint32_t>(v.bytes());
        }
    for (std::size_t i = 0; i < n; ++i) {
        const ParsedVariable& v = parsed_.variables[i];
        if (kernel_parameter_[i] || v.is_register || (v.space != Space::local && v.space != Space::param))
            continue;
        const std::uint32_t align = std::max(8U, v.align);
        if (v.bytes() > (1U << 24))
            fail("variable " + std::string(v.name) + " is too large for local memory");
        local_bytes_ = (local_bytes_ + align - 1) & ~(align - 1);
        variable_offset_[i] = local_bytes_;
        local_bytes_ += static_cast<std::uint32_t>(v.bytes());
    }
    local_bytes_ = (local_bytes_ + 15) & ~15U;
    const auto slots = [&](const std::vector<int>& from, std::vector<Slot>& to) {
        for (const int index : from) {
            const ParsedVariable& v = parsed_.variables[static_cast<std::size_t>(index)];
            Slot s;
            s.is_row = v.is_register;
            s.size = static_cast<std::uint32_t>(v.bytes());
            if (v.is_register) {
                s.row = registers_[static_cast<std::size_t>(v.reg)];
                s.size = parsed_.registers[static_cast<std::size_t>(v.reg)].size;
            } else {
                s.offset = variable_offset_[static_cast<std::size_t>(index)];
            }
            to.push_back(s);
        }
    };
    if (!parsed_.is_entry) {
        slots(parsed_.parameters, function_.parameters);
        slots(parsed_.returns, function_.returns);
    }
}

void FunctionCompiler::run() {
    std::vector<std::size_t> starts;
    starts.reserve(parsed_.code.size() + 1);
    for (const ParsedInstr& instr : parsed_.code) {
        starts.push_back(code.size());
        line_ = instr.line;
        instruction(instr);
    }
    starts.push_back(code.size());
    Instr end; // falling off the end returns
    Op ret;
    ret.name = "ret";
    end.fn = select_control(ret, end);
    emit(end);
    for (Fixup& f : fixups)
        f.target = starts[f.target];
    function_.frame_bytes = (frame_bytes_ + 63) & ~63U;
    function_.local_bytes = local_bytes_;
    function_.instr_count = code.size();
}

void FunctionCompiler::instruction(const ParsedInstr& instr) {
    Instr in;
    const bool guarded_here = instr.guard >= 0;
    const Ref guard = guarded_here ? registers_[static_cast<std::size_t>(instr.guard)] : kNoRef;
    if (instr.op.name == "bra") {
        branches(instr, in);
        return;
    }
    const std::size_t around = code.size();
    if (guarded_here && is_control(instr.op.name)) {
        Instr skip;
        skip.fn = branch_if;
        skip.guard = guard;
        skip.flags = instr.guard_negated ? 0 : kGuardNegated;
        emit(skip);
        if (!try_instruction(instr, in)) {
            code.resize(around);
        } else {
            emit(in);
            // Straight to behind what was emitted: a fixup to the instruction after this one.
            const auto next = static_cast<std::size_t>(&instr - parsed_.code.data()) + 1;
            fixups.push_back({around, next, nullptr, 0});
            return;
        }
    } else if (try_instruction(instr, in)) {
        if (guarded_here) {
            in.body = in.fn;
            in.fn = guarded;
            in.guard = guard;
            in.flags |= instr.guard_negated ? kGuardNegated : std::uint16_t{0};
        }
        emit(in);
        return;
    }
    const std::string message = "not supported by softgpu: " + std::string(instr.op.full);
    if (function_.unsupported.empty())
        function_.unsupported = message + " (PTX line " + std::to_string(instr.line) + ")";
    program_.messages.push_back(message);
    Instr trap;
    trap.fn = not_supported;
    trap.message = &program_.messages.back();
    emit(trap);
}

bool FunctionCompiler::try_instruction(const ParsedInstr& instr, Instr& in) {
    const std::string_view n = instr.op.name;
    if (const auto shape = kShapes.find(n); shape != kShapes.end())
        return shaped(instr, in, shape->second);
    if (n == "mov")
        return move(instr, in);
    if (n == "cvt")
        return convert(instr, in);
    if (n == "cvta" || n == "isspacep")
        return convert_address(instr, in);
    if (n == "ld" || n == "ldu" || n == "st")
        return memory(instr, in);
    if (n == "atom" || n == "red")
        return atomic(instr, in);
    if (n == "cp")
        return copy_async(instr, in);
    if (n == "shfl" || n == "vote" || n == "match" || n == "redux" || n == "activemask" || n == "elect")
        return collective(instr, in);
    if (n == "bar" || n == "barrier")
        return instr.op.has("warp") ? collective(instr, in) : barrier(instr, in);
    if (n == "brx")
        return branches(instr, in);
    if (n == "call")
        return call(instr, in);
    return control(instr, in);
}

// Rounding and flushing of an instruction, for MXCSR.
void FunctionCompiler::floating_point(const Op& op, Instr& in) const {
    const bool ftz = op.has("ftz");
    std::uint32_t csr = 0x1f80;
    csr |= op.has("rm") ? 0x2000U : op.has("rp") ? 0x4000U : op.has("rz") ? 0x6000U : 0U;
    csr |= ftz ? 0x8040U : 0U;
    in.csr = static_cast<std::uint16_t>(csr);
    in.flags |= static_cast<std::uint16_t>((ftz ? kFtz : 0) | (op.has("sat") ? kSat : 0) |
                                           (op.has("NaN") ? kNaN : 0) | (op.has("xorsign") ? kXorSign : 0));
}

bool FunctionCompiler::shaped(const ParsedInstr& instr, Instr& in, std::string_view shape) {
    const Op& op = instr.op;
    if (op.has("wide"))
        shape = op.name == "mul" ? "WTT" : "WTTW";
    floating_point(op, in);
    Handler h = nullptr;
    for (const auto select :
         {isa_.select_half, isa_.select_float, isa_.select_int, isa_.select_bits, isa_.select_compare})
        if (h = select(op, in); h != nullptr)
            break;
    if (h == nullptr)
        return false;
    in.fn = h;
    Ref* const places[] = {&in.d, &in.a, &in.b, &in.c, &in.e};
    const std::uint16_t negated[] = {0, kANegated, kBNegated, kCNegated, 0};
    std::size_t used = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const char kind = shape[i];
        if (i >= instr.operands.size()) {
            if (kind == 't' || kind == 'p')
                break;
            fail(std::string(op.full) + " wants more operands");
        }
        const ParsedOperand& operand = instr.operands[i];
        used = i + 1;
        const Type type = kind == 'U' ? op.type(1) : op.type(0);
        unsigned size = 0;
        switch (kind) {
        case 'W':
            size = 2 * type_size(type);
            break;
        case '2':
        case '4':
        case '8':
            size = static_cast<unsigned>(kind - '0');
            break;
        case 'I':
            in.imm = static_cast<std::int64_t>(operand.bits);
            continue;
        case 'P':
        case 'p':
            break;
        default:
            size = type_size(type);
        }
        if (i == 0) {
            if (operand.kind == OperandKind::pair) {
                in.d = destination(operand.elements[0], size);
                in.e = destination(operand.elements[1], size);
            } else {
                in.d = destination(operand, size);
            }
            if (in.d == kNoRef && size != 0)
                in.d = temporary(size);
        } else {
            *places[i] = source(operand, size, kind == '4' ? Type::b32 : type);
            if (operand.negated)
                in.flags |= negated[i];
        }
    }
    if (used < instr.operands.size())
        return false;
    return true;
}

bool FunctionCompiler::control(const ParsedInstr& instr, Instr& in) {
    const Op& op = instr.op;
    if (op.name == "createpolicy" && !instr.operands.empty()) { // a cache hint: any value will do
        Op mov;
        mov.types = {Type::b64};
        in.d = destination(instr.operands[0], 8);
        in.a = module_.constants.add(8, 0);
        in.fn = isa_.select_move(mov, in, 0, false);
        return true;
    }
    in.fn = select_control(op, in);
    return in.fn != nullptr;
}

} // namespace softgpu::ptx
