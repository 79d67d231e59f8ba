// SPDX-License-Identifier: BSD-3-Clause
// f16, f16x2, bf16, bf16x2 arithmetic. A row of pairs is a row of 64 halves.
#include "contrib/softgpu/ptx/exec/half_format.h"

#include <cmath>

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

// f16 sums and products round right from f32 (24 >= 2 * 11 + 2 bits); a bf16 result can be subnormal in f32,
// and a fused one can need more bits, so these go through f64 and rounding to odd.
struct Add {
    template <class H>
    static SOFTGPU_INLINE u16 apply(u16 a, u16 b) {
        if constexpr (std::is_same_v<H, Half>)
            return H::from(H::to(a) + H::to(b));
        else
            return H::round(add_to_odd(H::to(a), H::to(b)), Rounding::nearest);
    }
};
struct Sub {
    template <class H>
    static SOFTGPU_INLINE u16 apply(u16 a, u16 b) {
        if constexpr (std::is_same_v<H, Half>)
            return H::from(H::to(a) - H::to(b));
        else
            return H::round(add_to_odd(H::to(a), -static_cast<double>(H::to(b))), Rounding::nearest);
    }
};
struct Mul {
    template <class H>
    static SOFTGPU_INLINE u16 apply(u16 a, u16 b) {
        if constexpr (std::is_same_v<H, Half>)
            return H::from(H::to(a) * H::to(b));
        else
            return H::round(static_cast<double>(H::to(a)) * H::to(b), Rounding::nearest);
    }
};
struct Fma {
    template <class H>
    static SOFTGPU_INLINE u16 apply(u16 a, u16 b, u16 c) {
        return H::round(add_to_odd(static_cast<double>(H::to(a)) * H::to(b), H::to(c)), Rounding::nearest);
    }
};

template <class H>
SOFTGPU_INLINE u16 flush(u16 v) {
    return (v & H::infinity) == 0 ? v & 0x8000 : v;
}
template <class H>
SOFTGPU_INLINE u16 finish(u16 v, u16 flags) {
    if ((flags & kFtz) != 0)
        v = flush<H>(v);
    const bool nan = (v & 0x7fff) > H::infinity;
    if ((flags & kSat) != 0)
        v = nan || (v & 0x8000) != 0 ? u16{0} : v > H::one ? H::one : v;
    if ((flags & kRelu) != 0)
        v = nan ? u16{0x7fff} : (v & 0x8000) != 0 ? u16{0} : v;
    return v;
}

// f(i) for half i of n (32 or 64).
template <unsigned N, class F>
SOFTGPU_INLINE void each_half(Warp& w, u16* d, F f) {
    for (unsigned i = 0; i < N; ++i) {
        const u16 v = f(i);
        d[i] = w.lanes[N == 64 ? i >> 1 : i] != 0 ? v : d[i];
    }
}

template <class F, class H, unsigned N>
const Instr* binary(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const u16* a = row<u16>(w, in->a);
    const u16* b = row<u16>(w, in->b);
    const u16 flags = in->flags;
    const bool ftz = (flags & kFtz) != 0;
    if ((flags & (kFtz | kSat | kRelu)) == 0)
        each_half<N>(w, out<u16>(w, in->d), [=](unsigned i) { return F::template apply<H>(a[i], b[i]); });
    else
        each_half<N>(w, out<u16>(w, in->d), [=](unsigned i) {
            return finish<H>(F::template apply<H>(ftz ? flush<H>(a[i]) : a[i], ftz ? flush<H>(b[i]) : b[i]),
                             flags);
        });
    return in + 1;
}
template <class H, unsigned N>
const Instr* fma(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const u16* a = row<u16>(w, in->a);
    const u16* b = row<u16>(w, in->b);
    const u16* c = row<u16>(w, in->c);
    const u16 flags = in->flags;
    const bool ftz = (flags & kFtz) != 0;
    each_half<N>(w, out<u16>(w, in->d), [=](unsigned i) {
        return finish<H>(Fma::apply<H>(ftz ? flush<H>(a[i]) : a[i], ftz ? flush<H>(b[i]) : b[i],
                                       ftz ? flush<H>(c[i]) : c[i]),
                         flags);
    });
    return in + 1;
}
template <class H, unsigned N, bool Max>
const Instr* extreme(Warp& w, const Instr* in) {
    const u16* a = row<u16>(w, in->a);
    const u16* b = row<u16>(w, in->b);
    const u16 flags = in->flags;
    each_half<N>(w, out<u16>(w, in->d), [=](unsigned i) {
        u16 x = (flags & kFtz) != 0 ? flush<H>(a[i]) : a[i], y = (flags & kFtz) != 0 ? flush<H>(b[i]) : b[i];
        const u16 sign = (x ^ y) & 0x8000;
        if ((flags & kXorSign) != 0) {
            x &= 0x7fff;
            y &= 0x7fff;
        }
        const bool xnan = (x & 0x7fff) > H::infinity, ynan = (y & 0x7fff) > H::infinity;
        // Ordered as integers, -0 below +0.
        const s32 kx = (x & 0x8000) != 0 ? ~static_cast<s32>(x & 0x7fff) : x;
        const s32 ky = (y & 0x8000) != 0 ? ~static_cast<s32>(y & 0x7fff) : y;
        u16 v = (Max ? kx > ky : kx < ky) ? x : y;
        if (xnan || ynan)
            v = (xnan && ynan) || (flags & kNaN) != 0 ? u16{0x7fff} : xnan ? y : x;
        return (flags & kXorSign) != 0 ? static_cast<u16>((v & 0x7fff) | sign) : v;
    });
    return in + 1;
}
template <class H, unsigned N, bool Abs>
const Instr* sign_op(Warp& w, const Instr* in) {
    const u16* a = row<u16>(w, in->a);
    const u16 flags = in->flags;
    each_half<N>(w, out<u16>(w, in->d), [=](unsigned i) {
        const u16 v = (flags & kFtz) != 0 ? flush<H>(a[i]) : a[i];
        return static_cast<u16>(Abs ? v & 0x7fff : v ^ 0x8000);
    });
    return in + 1;
}
template <class H, unsigned N, bool Tanh>
const Instr* approximate(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const u16* a = row<u16>(w, in->a);
    const u16 flags = in->flags;
    each_half<N>(w, out<u16>(w, in->d), [=](unsigned i) {
        const float x = H::to((flags & kFtz) != 0 ? flush<H>(a[i]) : a[i]);
        return finish<H>(H::from(Tanh ? ::tanhf(x) : ::exp2f(x)), flags);
    });
    return in + 1;
}

// Comparisons: `aux` is the relation in the low byte (less 1, equal 2, greater 4, unordered 8: any that
// holds), then the boolean operation, then how the result is written.
enum Result : u32 { to_pred = 0, to_one = 1, to_mask = 2, to_word = 3 };
template <class H, unsigned N>
const Instr* compare(Warp& w, const Instr* in) {
    const u16* a = row<u16>(w, in->a);
    const u16* b = row<u16>(w, in->b);
    const bool ftz = (in->flags & kFtz) != 0;
    set_csr(w, 0x1f80);
    u64 r = 0;
    for (unsigned i = 0; i < N; ++i) {
        const float x = H::to(ftz ? flush<H>(a[i]) : a[i]), y = H::to(ftz ? flush<H>(b[i]) : b[i]);
        const u32 holds = x < y ? 1 : x == y ? 2 : x > y ? 4 : 8;
        r |= u64{(in->aux & holds) != 0} << i;
    }
    const u32 how = (in->aux >> 8) & 3, result = (in->aux >> 16) & 3;
    u32 low = 0, high = 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        low |= static_cast<u32>((r >> (N == 64 ? 2 * l : l)) & 1) << l;
        high |= N == 64 ? static_cast<u32>((r >> (2 * l + 1)) & 1) << l : 0;
    }
    u32 negated = ~low;
    if (how != 0) {
        const u32 c = predicate(w, in->c, (in->flags & kCNegated) != 0);
        const auto combine = [=](u32 t) { return how == 1 ? t & c : how == 2 ? t | c : t ^ c; };
        low = combine(low);
        high = combine(high);
        negated = combine(negated);
    }
    if (result == to_pred) {
        if (in->d != kNoRef)
            set_predicate(w, in->d, low);
        set_predicate(w, in->e, N == 64 ? high : negated);
        return in + 1;
    }
    if (result == to_word) {
        each(w, out<u32>(w, in->d), [=](unsigned l) { return ((low >> l) & 1) != 0 ? kAll : 0; });
        return in + 1;
    }
    const u16 one = result == to_one ? H::one : u16{0xffff};
    each_half<N>(w, out<u16>(w, in->d), [=](unsigned i) {
        const u32 bit = N == 64 ? ((i & 1) != 0 ? high : low) >> (i >> 1) : low >> i;
        return (bit & 1) != 0 ? one : u16{0};
    });
    return in + 1;
}

u32 relation(const Op& op) {
    struct Named {
        std::string_view name;
        u32 mask;
    };
    static constexpr Named all[] = {{"eq", 2},   {"ne", 5},   {"lt", 1},   {"le", 3},  {"gt", 4},
                                    {"ge", 6},   {"equ", 10}, {"neu", 13}, {"ltu", 9}, {"leu", 11},
                                    {"gtu", 12}, {"geu", 14}, {"num", 7},  {"nan", 8}};
    for (const Named& r : all)
        if (op.has(r.name))
            return r.mask;
    return 0;
}

template <class H, unsigned N>
Handler select(const Op& op, Instr& in) {
    const std::string_view n = op.name;
    in.flags |= static_cast<u16>((op.has("sat") ? kSat : 0) | (op.has("relu") ? kRelu : 0));
    if (n == "add")
        return binary<Add, H, N>;
    if (n == "sub")
        return binary<Sub, H, N>;
    if (n == "mul")
        return binary<Mul, H, N>;
    if (n == "fma")
        return fma<H, N>;
    if (n == "min")
        return extreme<H, N, false>;
    if (n == "max")
        return extreme<H, N, true>;
    if (n == "neg")
        return sign_op<H, N, false>;
    if (n == "abs")
        return sign_op<H, N, true>;
    if (n == "ex2")
        return approximate<H, N, false>;
    if (n == "tanh")
        return approximate<H, N, true>;
    if (n == "setp" || n == "set") {
        const u32 rel = relation(op);
        if (rel == 0)
            return nullptr;
        Result result = to_pred;
        if (n == "set")
            result = is_half(op.type(0)) ? to_one : type_size(op.type(0)) == 4 && N == 32 ? to_word : to_mask;
        in.aux = rel |
                 (op.has("and")   ? 0x100
                  : op.has("or")  ? 0x200
                  : op.has("xor") ? 0x300
                                  : 0) |
                 (static_cast<u32>(result) << 16);
        return compare<H, N>;
    }
    return nullptr;
}

} // namespace

Handler select_half(const Op& op, Instr& in) {
    switch (op.types.empty() ? Type::none : op.types.back()) {
    case Type::f16:
        return select<Half, 32>(op, in);
    case Type::f16x2:
        return select<Half, 64>(op, in);
    case Type::bf16:
        return select<Bfloat, 32>(op, in);
    case Type::bf16x2:
        return select<Bfloat, 64>(op, in);
    default:
        return nullptr;
    }
}

} // namespace softgpu::ptx::SOFTGPU_ISA
