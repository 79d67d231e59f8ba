// SPDX-License-Identifier: BSD-3-Clause
// The compiled form of a module: decoded instructions, functions, constants.
#pragma once

#include "contrib/softgpu/ptx/ast.h"
#include "contrib/softgpu/ptx/engine.h"

#include <deque>
#include <unordered_map>

namespace softgpu::ptx {

inline constexpr unsigned kLanes = 32;

struct Warp;
struct CallSite;
struct Instr;
// Executes one instruction for all lanes of the warp's mask; returns the next one, or Warp::kLeave to give
// control back to the warp's scheduler.
using Handler = const Instr* (*)(Warp&, const Instr*);

// An operand: which base (frame, constants, specials) in the upper two bits, byte offset in the others. A
// register is a row: its value in each of the 32 lanes, side by side. A predicate is a bit mask over the
// lanes.
using Ref = std::uint32_t;
inline constexpr Ref kFrame = 0, kConstants = 1U << 30, kSpecials = 2U << 30;
inline constexpr Ref kNoRef = 0xffffffff;
inline constexpr unsigned kRefShift = 30;
inline constexpr Ref kRefMask = (1U << 30) - 1;

struct Instr {
    Handler fn = nullptr;   // what the interpreter calls
    Handler body = nullptr; // what fn calls if the instruction is guarded
    Ref d = kNoRef, a = kNoRef, b = kNoRef, c = kNoRef, e = kNoRef;
    Ref guard = kNoRef; // predicate
    std::int64_t imm = 0;
    std::uint16_t flags = 0; // Flag...
    std::uint16_t csr = 0;   // floating-point control (MXCSR) the instruction runs under
    std::uint32_t aux = 0;   // what the handler wants
    union {
        const Instr* target = nullptr;
        const Ref* list;                        // operands of a vector instruction
        const CallSite* site;                   // call
        const std::vector<const Instr*>* table; // brx.idx
        const std::string* message;             // an instruction that is not supported
    };
};
static_assert(sizeof(Instr) == 64);

inline constexpr std::uint16_t kGuardNegated = 1, kANegated = 2, kCNegated = 4, kSat = 8, kNaN = 16,
                               kAddress32 = 32, kSpin = 64, kFtz = 128, kXorSign = 256, kUniform = 512,
                               kNoWait = 1024, kBNegated = 2048, kRelu = 4096;

// Rows that hold special registers. %dynamic_smem is where dynamic shared memory begins.
enum Special : std::uint8_t {
    kTidX,
    kTidY,
    kTidZ,
    kNtidX,
    kNtidY,
    kNtidZ,
    kCtaidX,
    kCtaidY,
    kCtaidZ,
    kNctaidX,
    kNctaidY,
    kNctaidZ,
    kLaneId,
    kWarpId,
    kNwarpId,
    kSmId,
    kNsmId,
    kLanemaskEq,
    kLanemaskLe,
    kLanemaskLt,
    kLanemaskGe,
    kLanemaskGt,
    kDynamicSmem,
    kDynamicSmemSize,
    kTotalSmemSize,
    kEnvreg1,
    kEnvreg2,
    kZero,
    kOne,
    kReservedSmem,
    kWarpSize,
    kSpecialCount
};
inline constexpr unsigned kReservedSharedBytes = 1024;
inline constexpr unsigned kSpecialRow = kLanes * 4; // bytes

// Special registers that change: read by an instruction of their own.
enum class Clock : std::uint8_t {
    clock,
    clock_hi,
    clock64,
    globaltimer,
    globaltimer_lo,
    globaltimer_hi,
    gridid
};

// Where a parameter or a return value lives: a register's row, or bytes of the frame's local memory.
struct Slot {
    bool is_row = false;
    Ref row = kNoRef;
    std::uint32_t offset = 0; // in the frame's local memory
    std::uint32_t size = 0;   // bytes
};

struct CallSite {
    const Function* callee = nullptr; // nullptr: through the register in the instruction's `a`
    std::vector<Slot> arguments, returns;
};

enum class Builtin : std::uint8_t { none, vprintf, malloc, free, assertfail };

struct Function {
    std::string name;
    bool is_entry = false;
    bool has_body = false;
    Builtin builtin = Builtin::none;
    std::uint32_t index = 0;
    const Instr* entry = nullptr;
    std::size_t first_instr = 0, instr_count = 0;
    std::uint32_t frame_bytes = 0;
    std::uint32_t local_bytes = 0;
    std::vector<Slot> parameters, returns;
    std::string unsupported;
    std::uint32_t static_shared = 0; // bytes, of an entry
};

struct Program {
    std::vector<Kernel> kernels;
    std::vector<Global> globals;
    std::deque<Function> functions; // addresses stay
    std::vector<Instr> code;        // all functions, in their order; each ends with an instruction that traps
    std::vector<std::byte> constants_store;
    const std::byte* constants = nullptr; // 64-byte aligned
    std::deque<CallSite> calls;
    std::deque<std::vector<const Instr*>> tables; // of brx.idx
    std::deque<std::vector<Ref>> lists;           // operands of vector instructions
    bool reserved_shared = false;     // %reserved_smem_offset is read: cooperative groups' scratch
    std::deque<std::string> messages; // of instructions that are not supported
};

[[nodiscard]] inline std::uint64_t function_address(std::uint32_t index) {
    return kCodeWindow + (std::uint64_t{index} + 1) * 16;
}

} // namespace softgpu::ptx
