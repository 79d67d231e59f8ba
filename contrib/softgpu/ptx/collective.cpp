// SPDX-License-Identifier: BSD-3-Clause
// Lanes that meet for shfl.sync and its like from different fragments.
#include "contrib/softgpu/ptx/warp.h"

#include <array>
#include <cstring>

namespace softgpu::ptx {
namespace {

// Instr::imm of a collective says what its operands are, so that they can be gathered.
constexpr unsigned kRow = 256; // bytes, the widest

enum class Kind : std::uint8_t { none, predicate, word, wide };

Kind kind_of(const Instr& in, unsigned operand) {
    return static_cast<Kind>((in.imm >> (4 * operand)) & 15);
}

} // namespace

void Warp::resolve_collectives() {
    merge();
    for (std::size_t i = 0; i < fragments.size(); ++i) {
        const Fragment f = fragments[i];
        if (f.state != FragmentState::collective)
            continue;
        const std::uint32_t need = f.members & live;
        std::uint32_t here = 0;
        std::size_t count = 0;
        for (const Fragment& other : fragments)
            if (other.state == FragmentState::collective && other.members == f.members &&
                other.pc->fn == f.pc->fn) {
                here |= other.mask;
                ++count;
            }
        if ((need & ~here) != 0)
            continue;
        if (count == 1) { // all in one fragment: it executes the instruction again, and can now
            fragments[i].state = FragmentState::ready;
            fragments[i].members = 0;
        } else {
            gather_collective(f.members, f.pc);
        }
    }
}

// Runs the instruction once over a frame that holds each lane's operands, and hands the results back.
void Warp::gather_collective(std::uint32_t members, const Instr* op) {
    alignas(64) std::array<std::byte, kRow * 8> scratch{};
    Instr meeting = *op;
    const auto ref = [](Instr& in, unsigned operand) -> Ref& {
        switch (operand) {
        case 0:
            return in.d;
        case 1:
            return in.a;
        case 2:
            return in.b;
        case 3:
            return in.c;
        case 4:
            return in.e;
        default:
            return in.guard;
        }
    };
    const auto move = [&](std::byte* to, const std::byte* from, Kind kind, std::uint32_t lanes_moved) {
        if (kind == Kind::predicate) {
            std::uint32_t a = 0, b = 0;
            std::memcpy(&a, to, 4);
            std::memcpy(&b, from, 4);
            a = (a & ~lanes_moved) | (b & lanes_moved);
            std::memcpy(to, &a, 4);
            return;
        }
        const unsigned size = kind == Kind::wide ? 8 : 4;
        for (std::uint32_t m = lanes_moved; m != 0; m &= m - 1) {
            const auto l = static_cast<unsigned>(__builtin_ctz(m));
            std::memcpy(to + l * size, from + l * size, size);
        }
    };
    const auto place = [&](const Fragment& f, Ref r) {
        return ((r >> kRefShift) == 0 ? f.frame->registers : base.at(r >> kRefShift)) + (r & kRefMask);
    };

    std::uint32_t all = 0;
    for (const Fragment& f : fragments) {
        if (f.state != FragmentState::collective || f.members != members || f.pc->fn != op->fn)
            continue;
        all |= f.mask;
        Instr in = *f.pc;
        for (unsigned operand = 1; operand <= 4; ++operand)
            if (const Ref r = ref(in, operand); r != kNoRef && kind_of(in, operand) != Kind::none) {
                std::byte* to = scratch.data() + operand * kRow;
                // A negated predicate is stored as it counts, for the fragments may differ in this.
                move(to, place(f, r), kind_of(in, operand), f.mask);
                if (kind_of(in, operand) == Kind::predicate && (in.flags & kANegated) != 0) {
                    std::uint32_t p = 0;
                    std::memcpy(&p, to, 4);
                    p ^= f.mask;
                    std::memcpy(to, &p, 4);
                }
            }
    }
    meeting.flags = static_cast<std::uint16_t>(meeting.flags & ~kANegated);
    for (unsigned operand = 0; operand <= 5; ++operand)
        if (kind_of(meeting, operand) != Kind::none)
            ref(meeting, operand) = operand * kRow;

    std::byte* const saved_base = base[0];
    const std::uint32_t saved_mask = mask;
    base[0] = scratch.data();
    set_mask(all);
    meeting.fn(*this, &meeting);
    base[0] = saved_base;
    set_mask(saved_mask);

    for (Fragment& f : fragments) {
        if (f.state != FragmentState::collective || f.members != members || f.pc->fn != op->fn)
            continue;
        Instr in = *f.pc;
        for (const unsigned operand : {0U, 5U})
            if (const Ref r = ref(in, operand); r != kNoRef && kind_of(in, operand) != Kind::none)
                move(f.frame->registers + r, scratch.data() + operand * kRow, kind_of(in, operand), f.mask);
        f.state = FragmentState::ready;
        f.members = 0;
        ++f.pc;
    }
}

} // namespace softgpu::ptx
