// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/block.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace softgpu::ptx {

void Launch::fail(Status status, std::string message, std::uint64_t address) {
    const std::lock_guard lock(mutex);
    if (result.status == Status::ok) // the first one counts
        result = {status, std::move(message), address};
    ended.store(true);
}

void Launch::print(std::string_view text, bool error) {
    if (text.empty())
        return;
    const std::lock_guard lock(mutex);
    const auto& sink = error ? options->print_error : options->print;
    if (sink) {
        sink(text);
        return;
    }
    std::FILE* stream = error ? stderr : stdout;
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fflush(stream);
}

void Block::start(Launch& l, std::uint64_t index, unsigned cpu) {
    launch = &l;
    id.x = static_cast<std::uint32_t>(index % l.grid.x);
    id.y = static_cast<std::uint32_t>(index / l.grid.x % l.grid.y);
    id.z = static_cast<std::uint32_t>(index / l.grid.x / l.grid.y);
    threads = static_cast<std::uint32_t>(l.block.count());
    warp_count = (threads + kLanes - 1) / kLanes;
    first_warp = 0;
    for (Barrier& b : barriers)
        b = {};
    const std::size_t bytes = l.shared_bytes;
    if (shared_store.size() < bytes + 128)
        shared_store.resize(bytes + 128);
    shared = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(shared_store.data()) + 63) &
                                          ~std::uintptr_t{63});
    std::memset(shared, 0, bytes);
    while (warps.size() < warp_count)
        warps.push_back(std::make_unique<Warp>());
    for (std::uint32_t i = 0; i < warp_count; ++i)
        start_warp(*warps[i], i, cpu);
}

void Block::start_warp(Warp& w, std::uint32_t index, unsigned cpu) {
    const Launch& l = *launch;
    const Function& function = *l.kernel->function;
    for (const Fragment& f : w.fragments) // of a launch that was ended
        w.frames.release(f.frame);
    w.fragments.clear();
    w.block = this;
    w.index = index;
    w.carry = 0;
    w.force_oldest = false;
    w.turn = 0;
    w.shared = shared;
    w.shared_size = l.shared_bytes;
    w.parameters = l.parameters.data();
    w.parameter_size = l.parameters.size();
    w.space_base = l.space.base;
    w.space_size = l.space.size;
    w.pages = l.space.pages;
    w.reserve_local(function.local_bytes);

    const std::uint32_t left = threads - index * kLanes;
    w.live = left >= kLanes ? ~0U : (1U << left) - 1;

    if (w.special_store.empty())
        w.special_store.resize(kSpecialCount * kSpecialRow + 64);
    auto* specials = reinterpret_cast<std::byte*>(
        (reinterpret_cast<std::uintptr_t>(w.special_store.data()) + 63) & ~std::uintptr_t{63});
    w.base[1] = const_cast<std::byte*>(l.kernel->program->constants);
    w.base[2] = specials;
    w.base[3] = specials;
    const auto row = [&](Special s) { return reinterpret_cast<std::uint32_t*>(specials + s * kSpecialRow); };
    for (std::uint32_t i = 0; i < kLanes; ++i) {
        const std::uint32_t t = index * kLanes + i;
        row(kTidX)[i] = t % l.block.x;
        row(kTidY)[i] = t / l.block.x % l.block.y;
        row(kTidZ)[i] = t / l.block.x / l.block.y;
        row(kLaneId)[i] = i;
        row(kLanemaskEq)[i] = 1U << i;
        row(kLanemaskLt)[i] = (1U << i) - 1;
        row(kLanemaskLe)[i] = (1U << i) | ((1U << i) - 1);
        row(kLanemaskGe)[i] = ~((1U << i) - 1);
        row(kLanemaskGt)[i] = ~((1U << i) | ((1U << i) - 1));
    }
    const auto fill = [&](Special s, std::uint32_t v) { std::fill_n(row(s), kLanes, v); };
    fill(kNtidX, l.block.x);
    fill(kNtidY, l.block.y);
    fill(kNtidZ, l.block.z);
    fill(kCtaidX, id.x);
    fill(kCtaidY, id.y);
    fill(kCtaidZ, id.z);
    fill(kNctaidX, l.grid.x);
    fill(kNctaidY, l.grid.y);
    fill(kNctaidZ, l.grid.z);
    fill(kWarpId, index);
    fill(kNwarpId, kMostWarps);
    fill(kSmId, cpu % std::max(1U, l.options->sm_count));
    fill(kNsmId, l.options->sm_count);
    fill(kDynamicSmem, l.dynamic_begin);
    fill(kDynamicSmemSize, l.dynamic_shared);
    fill(kTotalSmemSize, l.static_shared + l.dynamic_shared);
    fill(kEnvreg1, static_cast<std::uint32_t>(l.options->grid_workspace >> 32));
    fill(kEnvreg2, static_cast<std::uint32_t>(l.options->grid_workspace));
    fill(kZero, 0);
    fill(kOne, 1);
    fill(kReservedSmem, l.reserved_begin);
    fill(kWarpSize, kLanes);

    Fragment f;
    f.mask = w.live;
    f.pc = function.entry;
    f.frame = w.frames.take(function, nullptr);
    w.fragments.push_back(f);
}

BlockState Block::round() {
    bool left = false, progressed = false, all_spun = true;
    for (std::uint32_t i = 0; i < warp_count; ++i) {
        Warp& w = *warps[i];
        if (w.done())
            continue;
        left = true;
        if (!w.ready())
            continue;
        w.run();
        progressed = true;
        all_spun = all_spun && w.spun;
        if (launch->stopping())
            return BlockState::done;
    }
    if (!left)
        return BlockState::done;
    if (!progressed) {
        Warp& w = **std::find_if(warps.begin(), warps.end(), [](const auto& warp) { return !warp->done(); });
        w.set_mask(w.fragments.front().mask);
        w.fault(
            Status::illegal_instruction,
            w.fragments.front().state == FragmentState::barrier
                ? "deadlock: threads wait at a barrier that the others of their block never reach"
                : "deadlock: threads wait in a warp-wide operation for lanes of its mask that never come");
        return BlockState::done;
    }
    return all_spun ? BlockState::spinning : BlockState::running;
}

void Block::arrive(Warp& warp, unsigned barrier, std::uint32_t expected) {
    Barrier& b = barriers.at(barrier);
    b.in_use = true;
    b.expected = expected;
    b.arrived.at(warp.index) |= warp.mask;
    check_barrier(barrier);
}

void Block::check_barriers() {
    for (unsigned i = 0; i < kBarriers; ++i)
        if (barriers.at(i).in_use)
            check_barrier(i);
}

void Block::check_barrier(unsigned barrier) {
    Barrier& b = barriers.at(barrier);
    std::uint32_t count = 0;
    bool everyone = true;
    for (std::uint32_t i = 0; i < warp_count; ++i) {
        const std::uint32_t live = warps[i]->live, arrived = b.arrived.at(i);
        const bool whole = (arrived & live) == live;
        everyone = everyone && whole;
        // A warp that is there with all of its threads counts as 32, as the count is of warps.
        if (arrived != 0)
            count += whole ? kLanes : static_cast<std::uint32_t>(std::popcount(arrived));
    }
    if (b.expected == 0 ? !everyone : count < b.expected)
        return;
    for (std::uint32_t i = 0; i < warp_count; ++i)
        for (Fragment& f : warps[i]->fragments)
            if (f.state == FragmentState::barrier && f.barrier == barrier) {
                f.state = FragmentState::ready;
                if (const Instr& in = f.pc[-1]; is_barrier_red(in))
                    finish_barrier_red(f, in, b);
            }
    b = {};
}

} // namespace softgpu::ptx
