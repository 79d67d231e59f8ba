// SPDX-License-Identifier: BSD-3-Clause
// Handlers of control flow, barriers, fences and special registers.
#include "contrib/softgpu/ptx/block.h"

#include <bit>
#include <chrono>
#include <cstring>

namespace softgpu::ptx {
namespace {

template <class T>
T* out(Warp& w, Ref r) {
    return reinterpret_cast<T*>(w.base[0] + r);
}
template <class T>
const T* row(const Warp& w, Ref r) {
    return reinterpret_cast<const T*>(w.base.at(r >> kRefShift) + (r & kRefMask));
}
std::uint32_t predicate(const Warp& w, Ref r, bool negated) {
    const std::uint32_t p = *row<std::uint32_t>(w, r);
    return negated ? ~p : p;
}
unsigned first_lane(const Warp& w) {
    return static_cast<unsigned>(std::countr_zero(w.mask));
}

// Going backwards: others get a turn from time to time.
const Instr* backward(Warp& w, const Instr* target) {
    if (--w.budget <= 0)
        return w.yield(target);
    if (w.fragments.size() > 1) {
        w.pc = target;
        w.recompute_stop();
    }
    return target;
}

const Instr* exit(Warp& w, const Instr*) {
    return w.exit_lanes();
}
const Instr* fence(Warp&, const Instr* in) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return in + 1;
}
const Instr* nothing(Warp&, const Instr* in) {
    return in + 1;
}
const Instr* nanosleep(Warp& w, const Instr* in) {
    w.spun = true;
    return w.yield(in + 1);
}
const Instr* trap(Warp& w, const Instr*) {
    return w.fault(Status::illegal_instruction, "trap was executed");
}

// bar and barrier. a: which; b: how many threads; c: predicate of bar.red. aux: Action.
enum Action : std::uint32_t { kSync, kArrive, kPopc, kAnd, kOr };

const Instr* barrier(Warp& w, const Instr* in) {
    const unsigned lane = first_lane(w);
    const std::uint32_t id = row<std::uint32_t>(w, in->a)[lane];
    const std::uint32_t expected = in->b != kNoRef ? row<std::uint32_t>(w, in->b)[lane] : 0;
    if (id >= kBarriers || (id == kBarriers - 1 && in->imm == 0))
        return w.fault(Status::illegal_instruction, "there is no barrier " + std::to_string(id));
    Block& block = *w.block;
    if (in->aux == kArrive) {
        block.arrive(w, id, expected);
        return in + 1;
    }
    if (in->aux != kSync) {
        Barrier& b = block.barriers.at(id);
        const std::uint32_t p = predicate(w, in->c, (in->flags & kCNegated) != 0) & w.mask;
        if (!b.in_use) {
            b.count = 0;
            b.all = true;
            b.any = false;
        }
        b.count += static_cast<std::uint32_t>(std::popcount(p));
        b.all = b.all && p == w.mask;
        b.any = b.any || p != 0;
    }
    w.wait_barrier(id, in + 1);
    block.arrive(w, id, expected);
    return Warp::kLeave;
}

Handler barrier_of(const Op& op, Instr& in) {
    in.aux = op.has("arrive") ? kArrive
             : op.has("popc") ? kPopc
             : op.has("and")  ? kAnd
             : op.has("or")   ? kOr
                              : kSync;
    return barrier;
}

} // namespace

bool is_barrier_red(const Instr& in) {
    return in.fn == barrier && in.aux >= kPopc;
}

void finish_barrier_red(Fragment& fragment, const Instr& in, const Barrier& barrier) {
    std::byte* d = fragment.frame->registers + in.d;
    if (in.aux == kPopc) {
        auto* values = reinterpret_cast<std::uint32_t*>(d);
        for (std::uint32_t m = fragment.mask; m != 0; m &= m - 1)
            values[std::countr_zero(m)] = barrier.count;
        return;
    }
    const bool value = in.aux == kAnd ? barrier.all : barrier.any;
    auto* p = reinterpret_cast<std::uint32_t*>(d);
    *p = value ? *p | fragment.mask : *p & ~fragment.mask;
}

const Instr* guarded(Warp& w, const Instr* in) {
    const std::uint32_t saved = w.mask;
    const std::uint32_t m = saved & predicate(w, in->guard, (in->flags & kGuardNegated) != 0);
    if (m == 0)
        return in + 1;
    if (m == saved)
        return in->body(w, in);
    w.set_mask(m);
    const Instr* next = in->body(w, in);
    w.set_mask(saved);
    return next;
}

const Instr* branch(Warp& w, const Instr* in) {
    if (in->target <= in)
        return backward(w, in->target);
    return in->target;
}

const Instr* branch_if(Warp& w, const Instr* in) {
    const std::uint32_t taken = w.mask & predicate(w, in->guard, (in->flags & kGuardNegated) != 0);
    if (taken == 0)
        return in + 1;
    if (taken == w.mask)
        return branch(w, in);
    return w.diverge(taken, in->target, in + 1);
}

const Instr* branch_table(Warp& w, const Instr* in) {
    const std::uint32_t* index = row<std::uint32_t>(w, in->a);
    const std::uint32_t wanted = index[first_lane(w)];
    if (wanted >= in->table->size())
        return w.fault(Status::illegal_instruction,
                       "brx.idx: index " + std::to_string(wanted) + " is not in the table");
    std::uint32_t others = 0;
    for (std::uint32_t m = w.mask; m != 0; m &= m - 1)
        if (const int l = std::countr_zero(m); index[l] != wanted)
            others |= 1U << l;
    const Instr* target = (*in->table)[wanted];
    if (others == 0)
        return target <= in ? backward(w, target) : target;
    w.split_off(others, in);
    w.pc = target;
    --w.budget;
    return Warp::kLeave;
}

const Instr* call(Warp& w, const Instr* in) {
    const Function& function = *in->site->callee;
    if (function.builtin != Builtin::none)
        return builtin(w, function, *in->site, in + 1);
    return w.enter(function, *in->site, in + 1);
}

const Instr* call_indirect(Warp& w, const Instr* in) {
    const std::uint64_t* targets = row<std::uint64_t>(w, in->a);
    const std::uint64_t wanted = targets[first_lane(w)];
    const Program& program = *w.block->launch->kernel->program;
    const std::uint64_t index = (wanted - kCodeWindow) / 16 - 1;
    if (wanted < kCodeWindow + 16 || wanted >= kWindowsEnd || wanted % 16 != 0 ||
        index >= program.functions.size())
        return w.fault(Status::illegal_instruction, "a call through a pointer that is no function");
    std::uint32_t others = 0;
    for (std::uint32_t m = w.mask; m != 0; m &= m - 1)
        if (const int l = std::countr_zero(m); targets[l] != wanted)
            others |= 1U << l;
    if (others != 0)
        w.split_off(others, in);
    const Function& function = program.functions[index];
    const Instr* next = nullptr;
    if (function.builtin != Builtin::none)
        next = builtin(w, function, *in->site, in + 1);
    else if (!function.has_body || function.is_entry)
        return w.fault(Status::illegal_instruction,
                       "a call of " + function.name + ", which has no body here");
    else
        next = w.enter(function, *in->site, in + 1);
    if (others != 0 && next != Warp::kLeave) {
        w.pc = next;
        return Warp::kLeave;
    }
    return next;
}

const Instr* return_from(Warp& w, const Instr*) {
    return w.leave_function();
}

const Instr* not_supported(Warp& w, const Instr* in) {
    return w.fault(Status::not_supported, *in->message);
}

const Instr* read_clock(Warp& w, const Instr* in) {
    using namespace std::chrono;
    const auto nanoseconds = static_cast<std::uint64_t>(
        duration_cast<std::chrono::nanoseconds>(steady_clock::now().time_since_epoch()).count());
    std::uint64_t v = nanoseconds;
    switch (static_cast<Clock>(in->imm)) {
    case Clock::clock:
    case Clock::clock64:
        w.spun = true; // kernels that wait a while read the clock in a loop
        w.budget -= 4;
        break;
    case Clock::clock_hi:
        v >>= 32;
        break;
    case Clock::globaltimer:
    case Clock::globaltimer_lo:
        v = static_cast<std::uint64_t>(
            duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch()).count());
        break;
    case Clock::globaltimer_hi:
        v = static_cast<std::uint64_t>(
                duration_cast<std::chrono::nanoseconds>(system_clock::now().time_since_epoch()).count()) >>
            32;
        break;
    case Clock::gridid:
        v = w.block->launch->id;
        break;
    }
    for (std::uint32_t m = w.mask; m != 0; m &= m - 1) {
        const int l = std::countr_zero(m);
        if ((in->flags & kAddress32) != 0)
            out<std::uint32_t>(w, in->d)[l] = static_cast<std::uint32_t>(v);
        else
            out<std::uint64_t>(w, in->d)[l] = v;
    }
    return in + 1;
}

const Instr* space_test(Warp& w, const Instr* in) {
    const std::uint64_t* a = row<std::uint64_t>(w, in->a);
    std::uint32_t r = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        const bool window = a[l] >= kWindowsBegin && a[l] < kWindowsEnd;
        bool is = false;
        switch (static_cast<Space>(in->aux)) {
        case Space::shared:
            is = window && a[l] < kLocalWindow;
            break;
        case Space::local:
            is = window && a[l] >= kLocalWindow && a[l] < kParamWindow;
            break;
        case Space::param:
            is = window && a[l] >= kParamWindow && a[l] < kCodeWindow;
            break;
        default:
            is = !window;
            break;
        }
        r |= static_cast<std::uint32_t>(is) << l;
    }
    auto* p = out<std::uint32_t>(w, in->d);
    *p = (*p & ~w.mask) | (r & w.mask);
    return in + 1;
}

Handler select_control(const Op& op, Instr& in) {
    const std::string_view n = op.name;
    if (n == "exit")
        return exit;
    if (n == "ret")
        return return_from;
    if (n == "trap")
        return trap;
    if (n == "membar" || n == "fence")
        return fence;
    if (n == "nanosleep")
        return nanosleep;
    if (n == "bar" || n == "barrier")
        return barrier_of(op, in);
    if (n == "brkpt" || n == "pmevent" || n == "prefetch" || n == "prefetchu" || n == "griddepcontrol" ||
        n == "setmaxnreg" || n == "discard" || n == "applypriority" || n == "cp.async.wait" || n == "nothing")
        return nothing;
    return nullptr;
}

} // namespace softgpu::ptx
