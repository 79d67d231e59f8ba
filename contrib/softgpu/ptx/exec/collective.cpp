// SPDX-License-Identifier: BSD-3-Clause
// What the lanes of a warp do together: shfl, vote, match, redux, activemask, elect, bar.warp.sync.
// Operands: d, a; the member mask in e; a second predicate result in guard (these are never guarded
// themselves). Instr::imm: see Kind in ../collective.cpp, for fragments that meet in different places of the
// code.
#include "contrib/softgpu/ptx/exec/common.h"

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

// True if the running lanes can go on; else the fragment waits.
SOFTGPU_INLINE bool gathered(Warp& w, const Instr* in, const u32*& members, const Instr*& next) {
    if (in->e == kNoRef) { // forms without .sync act on whoever is here
        members = nullptr;
        return true;
    }
    members = row<u32>(w, in->e);
    u32 all = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        all |= w.lanes[l] != 0 ? members[l] : 0;
    if ((all & w.live & ~w.mask) != 0) {
        next = w.wait_collective(all, in);
        return false;
    }
    return true;
}
SOFTGPU_INLINE u32 group_of(const Warp& w, const u32* members, unsigned lane) {
    return members == nullptr ? w.mask : members[lane] & w.mask;
}

enum Shuffle { up, down, butterfly, index };
template <Shuffle S>
const Instr* shfl(Warp& w, const Instr* in) {
    const u32* members = nullptr;
    const Instr* next = nullptr;
    if (!gathered(w, in, members, next))
        return next;
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    u32 value[kLanes];
    u32 valid = 0;
    for (s32 l = 0; l < static_cast<s32>(kLanes); ++l) {
        const s32 bval = static_cast<s32>(b[l] & 31), cval = static_cast<s32>(c[l] & 31);
        const s32 segment = static_cast<s32>((c[l] >> 8) & 31);
        const s32 most = (l & segment) | (cval & ~segment), least = l & segment;
        s32 j = l;
        bool p = false;
        if constexpr (S == up) {
            j = l - bval;
            p = j >= most;
        } else if constexpr (S == down) {
            j = l + bval;
            p = j <= most;
        } else if constexpr (S == butterfly) {
            j = l ^ bval;
            p = j <= most;
        } else {
            j = least | (bval & ~segment);
            p = j <= most;
        }
        j = p ? j & 31 : l;
        value[l] = a[j];
        valid |= static_cast<u32>(p) << l;
    }
    if (in->d != kNoRef)
        each(w, out<u32>(w, in->d), [&](unsigned l) { return value[l]; });
    set_predicate(w, in->guard, valid);
    return in + 1;
}

enum Vote { all, any, uni, ballot };
template <Vote V>
const Instr* vote(Warp& w, const Instr* in) {
    const u32* members = nullptr;
    const Instr* next = nullptr;
    if (!gathered(w, in, members, next))
        return next;
    const u32 p = predicate(w, in->a, (in->flags & kANegated) != 0);
    u32 value[kLanes];
    u32 r = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        const u32 group = group_of(w, members, l), yes = p & group;
        if constexpr (V == ballot)
            value[l] = yes;
        else
            r |= static_cast<u32>(V == all   ? yes == group
                                  : V == any ? yes != 0
                                             : yes == group || yes == 0)
                 << l;
    }
    if constexpr (V == ballot)
        each(w, out<u32>(w, in->d), [&](unsigned l) { return value[l]; });
    else
        set_predicate(w, in->d, r);
    return in + 1;
}

template <class T, bool All>
const Instr* match(Warp& w, const Instr* in) {
    const u32* members = nullptr;
    const Instr* next = nullptr;
    if (!gathered(w, in, members, next))
        return next;
    const T* a = row<T>(w, in->a);
    u32 value[kLanes];
    u32 same_everywhere = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        const u32 group = group_of(w, members, l);
        const u32 same = mask_of([=](unsigned k) { return a[k] == a[l]; }) & group;
        if (All)
            same_everywhere |= static_cast<u32>(same == group) << l;
        value[l] = All ? (same == group ? group : 0) : same;
    }
    if (in->d != kNoRef)
        each(w, out<u32>(w, in->d), [&](unsigned l) { return value[l]; });
    set_predicate(w, in->guard, same_everywhere);
    return in + 1;
}

struct Sum {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(static_cast<u32>(a) + static_cast<u32>(b));
    }
};
struct Least {
    template <class T>
    static T apply(T a, T b) {
        return a < b ? a : b;
    }
};
struct Most {
    template <class T>
    static T apply(T a, T b) {
        return a > b ? a : b;
    }
};
struct And {
    template <class T>
    static T apply(T a, T b) {
        return a & b;
    }
};
struct Or {
    template <class T>
    static T apply(T a, T b) {
        return a | b;
    }
};
struct Xor {
    template <class T>
    static T apply(T a, T b) {
        return a ^ b;
    }
};
template <class F, class T>
const Instr* redux(Warp& w, const Instr* in) {
    const u32* members = nullptr;
    const Instr* next = nullptr;
    if (!gathered(w, in, members, next))
        return next;
    const T* a = row<T>(w, in->a);
    T value[kLanes];
    for (u32 left = w.mask; left != 0;) {
        const unsigned first = static_cast<unsigned>(__builtin_ctz(left));
        const u32 group = group_of(w, members, first) | (1U << first);
        T r = a[first];
        for (u32 m = group & ~(1U << first); m != 0; m &= m - 1)
            r = F::template apply<T>(r, a[__builtin_ctz(m)]);
        for (u32 m = group; m != 0; m &= m - 1)
            value[__builtin_ctz(m)] = r;
        left &= ~group;
    }
    each(w, out<T>(w, in->d), [&](unsigned l) { return value[l]; });
    return in + 1;
}
const Instr* active_mask(Warp& w, const Instr* in) {
    const u32 m = w.mask;
    each(w, out<u32>(w, in->d), [=](unsigned) { return m; });
    return in + 1;
}
const Instr* elect(Warp& w, const Instr* in) {
    const u32* members = nullptr;
    const Instr* next = nullptr;
    if (!gathered(w, in, members, next))
        return next;
    const u32 group = group_of(w, members, static_cast<unsigned>(__builtin_ctz(w.mask)));
    const u32 leader = static_cast<u32>(__builtin_ctz(group != 0 ? group : w.mask));
    if (in->d != kNoRef)
        each(w, out<u32>(w, in->d), [=](unsigned) { return leader; });
    set_predicate(w, in->guard, 1U << leader);
    return in + 1;
}
const Instr* warp_barrier(Warp& w, const Instr* in) {
    const u32* members = nullptr;
    const Instr* next = nullptr;
    return gathered(w, in, members, next) ? in + 1 : next;
}

Handler redux_of(const Op& op) {
    const bool s = op.type() == Type::s32;
    if (type_size(op.type()) != 4 || op.type() == Type::f32)
        return nullptr;
    if (op.has("add"))
        return redux<Sum, u32>;
    if (op.has("min"))
        return s ? redux<Least, s32> : redux<Least, u32>;
    if (op.has("max"))
        return s ? redux<Most, s32> : redux<Most, u32>;
    if (op.has("and"))
        return redux<And, u32>;
    if (op.has("or"))
        return redux<Or, u32>;
    if (op.has("xor"))
        return redux<Xor, u32>;
    return nullptr;
}

} // namespace

Handler select_warp(const Op& op, Instr&) {
    const std::string_view n = op.name;
    if (n == "shfl")
        return op.has("up")     ? shfl<up>
               : op.has("down") ? shfl<down>
               : op.has("bfly") ? shfl<butterfly>
               : op.has("idx")  ? shfl<index>
                                : nullptr;
    if (n == "vote")
        return op.has("ballot") ? vote<ballot>
               : op.has("all")  ? vote<all>
               : op.has("any")  ? vote<any>
               : op.has("uni")  ? vote<uni>
                                : nullptr;
    if (n == "match") {
        if (op.has("all"))
            return type_size(op.type()) == 8 ? match<u64, true> : match<u32, true>;
        return type_size(op.type()) == 8 ? match<u64, false> : match<u32, false>;
    }
    if (n == "redux")
        return redux_of(op);
    if (n == "activemask")
        return active_mask;
    if (n == "elect")
        return elect;
    if (n == "bar")
        return warp_barrier;
    return nullptr;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
