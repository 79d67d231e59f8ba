// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/warp.h"

#include "contrib/softgpu/ptx/block.h"

#include <algorithm>
#include <cstring>
#include <immintrin.h>
#include <new>

namespace softgpu::ptx {
namespace {

constexpr std::int32_t kTurn = 4096; // backward branches; what smells of waiting counts more
constexpr std::uint32_t kDefaultCsr = 0x1f80;
constexpr std::align_val_t kRowAlign{64};

} // namespace

// ---- frames ----

FramePool::~FramePool() {
    for (Frame* frame : free_) {
        ::operator delete(frame->registers, kRowAlign);
        delete frame;
    }
}

Frame* FramePool::take(const Function& function, Frame* parent) {
    Frame* frame = nullptr;
    for (auto it = free_.rbegin(); it != free_.rend(); ++it)
        if ((*it)->capacity >= function.frame_bytes) {
            frame = *it;
            free_.erase(std::next(it).base());
            break;
        }
    if (frame == nullptr) {
        frame = new Frame;
        frame->capacity = std::max<std::uint32_t>(function.frame_bytes, 64);
        frame->registers = static_cast<std::byte*>(::operator new(frame->capacity, kRowAlign));
    }
    std::memset(frame->registers, 0, function.frame_bytes);
    frame->parent = parent;
    frame->function = &function;
    frame->site = nullptr;
    frame->resume = nullptr;
    frame->references = 1;
    frame->depth = parent == nullptr ? 0 : parent->depth + 1;
    frame->local_base = parent == nullptr ? 0 : parent->local_base + parent->function->local_bytes;
    if (parent != nullptr)
        ++parent->references;
    return frame;
}

void FramePool::release(Frame* frame) {
    while (frame != nullptr && --frame->references == 0) {
        Frame* parent = frame->parent;
        free_.push_back(frame);
        frame = parent;
    }
}

// ---- fragments ----

bool Warp::ready() const {
    return std::any_of(fragments.begin(), fragments.end(),
                       [](const Fragment& f) { return f.state == FragmentState::ready; });
}

void Warp::load(std::size_t i) {
    current = i;
    Fragment& f = fragments[i];
    f.last_run = ++turn;
    frame = f.frame;
    base[0] = frame->registers;
    pc = f.pc;
    set_mask(f.mask);
    recompute_stop();
}

// The running fragment stops where another one with the same frame waits to be joined.
void Warp::recompute_stop() {
    stop_at = kLeave;
    if (fragments.size() == 1)
        return;
    for (std::size_t i = 0; i < fragments.size(); ++i) {
        const Fragment& f = fragments[i];
        if (i != current && f.state == FragmentState::ready && f.frame == frame && f.pc >= pc &&
            f.pc < stop_at)
            stop_at = f.pc;
    }
}

std::size_t Warp::pick() {
    std::size_t best = fragments.size();
    for (std::size_t i = 0; i < fragments.size(); ++i) {
        const Fragment& f = fragments[i];
        if (f.state != FragmentState::ready)
            continue;
        if (best == fragments.size()) {
            best = i;
            continue;
        }
        const Fragment& b = fragments[best];
        const bool better = force_oldest                       ? f.last_run < b.last_run
                            : f.frame->depth != b.frame->depth ? f.frame->depth > b.frame->depth
                                                               : f.pc < b.pc;
        if (better)
            best = i;
    }
    force_oldest = false;
    return best;
}

void Warp::merge() {
    for (std::size_t i = 0; i < fragments.size(); ++i)
        for (std::size_t k = i + 1; k < fragments.size();) {
            Fragment& a = fragments[i];
            const Fragment& b = fragments[k];
            if (a.pc == b.pc && a.frame == b.frame && a.state == b.state &&
                a.state != FragmentState::barrier && a.members == b.members) {
                a.mask |= b.mask;
                a.last_run = std::min(a.last_run, b.last_run);
                frames.release(b.frame);
                fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(k));
            } else {
                ++k;
            }
        }
}

void Warp::run() {
    budget = kTurn;
    spun = false;
    csr = kDefaultCsr;
    _mm_setcsr(kDefaultCsr);
    while (budget > 0) {
        if (fragments.size() > 1)
            merge();
        const std::size_t next = pick();
        if (next == fragments.size())
            break;
        load(next);
        fragment_gone = false;
        const Instr* in = pc;
        do
            in = in->fn(*this, in);
        while (in < stop_at);
        if (in != kLeave)
            pc = in;
        if (!fragment_gone) {
            fragments[current].pc = pc;
            if (in == kLeave)
                resolve_collectives();
        }
        if (block->launch->ended.load(std::memory_order_relaxed))
            break;
    }
    if (budget <= 0)
        force_oldest = true;
    _mm_setcsr(kDefaultCsr);
}

const Instr* Warp::yield(const Instr* next) {
    budget = 0;
    pc = next;
    return kLeave;
}

void Warp::split_off(std::uint32_t lanes_off, const Instr* at) {
    Fragment fresh;
    fresh.mask = lanes_off;
    fresh.pc = at;
    fresh.frame = frame;
    fresh.last_run = fragments[current].last_run;
    ++frame->references;
    set_mask(mask & ~lanes_off);
    fragments[current].mask = mask;
    fragments.push_back(fresh);
}

const Instr* Warp::diverge(std::uint32_t taken, const Instr* target, const Instr* next) {
    const bool target_first = target < next;
    split_off(target_first ? mask & ~taken : taken, target_first ? next : target);
    pc = target_first ? target : next;
    if (target_first && --budget <= 0)
        return kLeave;
    recompute_stop();
    // Another fragment may wait right here.
    return stop_at == pc ? kLeave : pc;
}

const Instr* Warp::wait_collective(std::uint32_t members, const Instr* at) {
    Fragment& f = fragments[current];
    f.state = FragmentState::collective;
    f.members = members;
    pc = at;
    return kLeave;
}

const Instr* Warp::wait_barrier(unsigned barrier, const Instr* at) {
    Fragment& f = fragments[current];
    f.state = FragmentState::barrier;
    f.barrier = static_cast<std::uint8_t>(barrier);
    f.members = 0;
    f.pc = at;
    pc = at;
    return kLeave;
}

const Instr* Warp::exit_lanes() {
    live &= ~mask;
    // All frames up to the kernel's go.
    frames.release(frame);
    fragments.erase(fragments.begin() + static_cast<std::ptrdiff_t>(current));
    fragment_gone = true;
    resolve_collectives();
    block->check_barriers();
    return kLeave;
}

const Instr* Warp::fault(Status status, std::string message, std::uint64_t address) {
    // In the words of compute-sanitizer: who it was.
    const Launch& launch = *block->launch;
    const unsigned lane = mask != 0 ? static_cast<unsigned>(__builtin_ctz(mask)) : 0;
    const std::uint32_t thread = index * kLanes + lane;
    const Dim3& size = launch.block;
    message += " (kernel " + launch.kernel->name + ", block (" + std::to_string(block->id.x) + "," +
               std::to_string(block->id.y) + "," + std::to_string(block->id.z) + "), thread (" +
               std::to_string(thread % size.x) + "," + std::to_string(thread / size.x % size.y) + "," +
               std::to_string(thread / size.x / size.y) + "))";
    block->launch->fail(status, std::move(message), address);
    return kLeave;
}

// ---- calls ----

bool Warp::reserve_local(std::uint64_t end) {
    if (end <= local_stride)
        return true;
    if (end > block->launch->local_limit)
        return false;
    const std::uint64_t stride =
        std::min(std::max(end, local_stride * 2), block->launch->local_limit + 15) & ~15ULL;
    const std::uint64_t rounded = std::max<std::uint64_t>(stride, (end + 15) & ~15ULL);
    std::vector<std::byte> bigger(rounded * kLanes + 64);
    std::byte* begin = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(bigger.data()) + 63) &
                                                    ~std::uintptr_t{63});
    for (unsigned l = 0; l < kLanes && local != nullptr; ++l)
        std::memcpy(begin + l * rounded, local + l * local_stride, local_stride);
    local_store = std::move(bigger);
    local = begin;
    local_stride = rounded;
    return true;
}

namespace {

// A parameter or result from one frame to another, for the lanes of the mask. The sizes need not agree.
void copy_slot(Warp& w, const Slot& to, Frame& to_frame, const Slot& from, const Frame& from_frame) {
    const std::uint32_t size = std::min(to.size, from.size);
    for (std::uint32_t m = w.mask; m != 0; m &= m - 1) {
        const auto l = static_cast<unsigned>(__builtin_ctz(m));
        const std::byte* source = nullptr;
        if (from.is_row)
            source =
                ((from.row >> kRefShift) == 0 ? from_frame.registers : w.base.at(from.row >> kRefShift)) +
                (from.row & kRefMask) + l * from.size;
        else
            source = w.local + l * w.local_stride + from_frame.local_base + from.offset;
        std::byte* target = to.is_row ? to_frame.registers + to.row + l * to.size
                                      : w.local + l * w.local_stride + to_frame.local_base + to.offset;
        std::memmove(target, source, size);
    }
}

} // namespace

const Instr* Warp::enter(const Function& function, const CallSite& site, const Instr* resume) {
    Launch& launch = *block->launch;
    const std::uint64_t end =
        std::uint64_t{frame->local_base} + frame->function->local_bytes + function.local_bytes;
    if (frame->depth + 1 > launch.depth_limit || !reserve_local(end))
        return fault(Status::stack_overflow, "the stack overflows in a call of " + function.name +
                                                 ": cudaLimitStackSize is " +
                                                 std::to_string(launch.options->stack_bytes) + " bytes");
    Frame* callee = frames.take(function, frame);
    callee->site = &site;
    callee->resume = resume;
    const std::size_t n = std::min(site.arguments.size(), function.parameters.size());
    for (std::size_t i = 0; i < n; ++i)
        copy_slot(*this, function.parameters[i], *callee, site.arguments[i], *frame);
    frames.release(frame); // the callee holds it now
    frame = callee;
    base[0] = callee->registers;
    fragments[current].frame = callee;
    pc = function.entry;
    --budget;
    if (fragments.size() > 1)
        recompute_stop();
    else
        stop_at = kLeave;
    return pc;
}

const Instr* Warp::leave_function() {
    Frame* callee = frame;
    if (callee->parent == nullptr)
        return exit_lanes();
    Frame* parent = callee->parent;
    const std::size_t n = std::min(callee->site->returns.size(), callee->function->returns.size());
    for (std::size_t i = 0; i < n; ++i)
        copy_slot(*this, callee->site->returns[i], *parent, callee->function->returns[i], *callee);
    pc = callee->resume;
    ++parent->references;
    frames.release(callee);
    frame = parent;
    base[0] = parent->registers;
    fragments[current].frame = parent;
    if (fragments.size() == 1) {
        stop_at = kLeave;
        return pc;
    }
    return kLeave; // others may lie deeper, or wait here to be joined
}

} // namespace softgpu::ptx
