// SPDX-License-Identifier: BSD-3-Clause
// cvt. Frequent pairs have handlers of their own; the others go through 64-bit integers or f64, which hold
// every source exactly.
#include "contrib/softgpu/ptx/exec/half_format.h"

#include <cmath>

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

enum class Integral : u8 { none, nearest, zero, down, up }; // .rni .rzi .rmi .rpi

struct Form { // packed into aux
    Type d, s;
    u8 integral;
    u8 rounding;
};

template <class D, class S>
const Instr* simple(Warp& w, const Instr* in) { // integers, and exact floats
    set_csr(w, in->csr);
    const S* a = row<S>(w, in->a);
    each(w, out<D>(w, in->d), [=](unsigned l) { return static_cast<D>(a[l]); });
    return in + 1;
}
// Takes T out of a register R and extends it to register D.
template <class D, class T, class R>
const Instr* narrow(Warp& w, const Instr* in) {
    const R* a = row<R>(w, in->a);
    each(w, out<D>(w, in->d), [=](unsigned l) { return static_cast<D>(static_cast<T>(a[l])); });
    return in + 1;
}
template <class H>
const Instr* half_to_float(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const u16* a = row<u16>(w, in->a);
    each(w, out<float>(w, in->d), [=](unsigned l) { return H::to(a[l]); });
    return in + 1;
}
template <class H>
const Instr* float_to_half(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const float* a = row<float>(w, in->a);
    each(w, out<u16>(w, in->d), [=](unsigned l) { return H::from(a[l]); });
    return in + 1;
}
const Instr* float_to_s32(Warp& w, const Instr* in) { // .rzi, which the processor does but for the range
    const float* a = row<float>(w, in->a);
    each(w, out<s32>(w, in->d), [=](unsigned l) {
        const float v = a[l];
        const s32 limit = v > 0 ? std::numeric_limits<s32>::max() : std::numeric_limits<s32>::min();
        const bool fits = v < 2147483648.0F && v > -2147483904.0F;
        const s32 r = static_cast<s32>(fits ? v : 0.0F);
        return fits ? r : (v != v ? 0 : limit);
    });
    return in + 1;
}
// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
template <class H>
const Instr* pack_halves(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const float* a = row<float>(w, in->a);
    const float* b = row<float>(w, in->b);
    const u16 flags = in->flags;
    const auto rounding = static_cast<Rounding>(in->aux);
    const auto one = [=](float v) {
        if ((flags & kRelu) != 0)
            v = v != v ? v : v > 0 ? v : 0.0F;
        u16 h = rounding == Rounding::nearest ? H::from(v) : H::round(v, rounding);
        if ((flags & kSat) != 0 && (h & 0x7fff) == H::infinity)
            --h; // .satfinite
        return static_cast<u32>(h);
    };
    each(w, out<u32>(w, in->d), [=](unsigned l) { return (one(a[l]) << 16) | one(b[l]); });
    return in + 1;
}

SOFTGPU_INLINE double integral(double v, Integral how) {
    switch (how) {
    case Integral::none:
        return v;
    case Integral::nearest:
        return ::nearbyint(v);
    case Integral::zero:
        return ::trunc(v);
    case Integral::down:
        return ::floor(v);
    case Integral::up:
        return ::ceil(v);
    }
    return v;
}

u64 extended(u64 v, Type t) { // the low bytes of v as t, extended to 64 bits
    switch (t) {
    case Type::u8:
    case Type::b8:
        return static_cast<u8>(v);
    case Type::u16:
    case Type::b16:
        return static_cast<u16>(v);
    case Type::u32:
    case Type::b32:
        return static_cast<u32>(v);
    case Type::s8:
        return static_cast<u64>(static_cast<s64>(static_cast<s8>(v)));
    case Type::s16:
        return static_cast<u64>(static_cast<s64>(static_cast<s16>(v)));
    case Type::s32:
        return static_cast<u64>(static_cast<s64>(static_cast<s32>(v)));
    default:
        return v;
    }
}

u64 float_to_int(double v, Type d, Type s) {
    const unsigned width = 8 * type_size(d);
    if (v != v) // PTX ISA, cvt: zero, but for f64 sources and 64-bit results
        return s == Type::f64 || width == 64 ? u64{1} << (width - 1) : 0;
    if (is_signed(d)) {
        const double limit = static_cast<double>(u64{1} << (width - 1));
        if (v >= limit)
            return (u64{1} << (width - 1)) - 1;
        if (v < -limit)
            return u64{0} - (u64{1} << (width - 1));
        return static_cast<u64>(static_cast<s64>(v));
    }
    const u64 most = width == 64 ? ~u64{0} : (u64{1} << width) - 1;
    if (v <= -1.0 || v < 0)
        return 0;
    if (v >= (width == 64 ? 18446744073709551616.0 : static_cast<double>(most) + 1))
        return most;
    return v >= 9223372036854775808.0
               ? static_cast<u64>(static_cast<s64>(v - 9223372036854775808.0)) + (u64{1} << 63)
               : static_cast<u64>(static_cast<s64>(v));
}

u64 int_to_int(u64 v, Type d, Type s) { // .sat
    const unsigned width = 8 * type_size(d);
    const bool negative = is_signed(s) && static_cast<s64>(v) < 0;
    if (is_signed(d)) {
        const s64 most = static_cast<s64>((u64{1} << (width - 1)) - 1), least = -most - 1;
        if (!negative && v > static_cast<u64>(most))
            return static_cast<u64>(most);
        return negative && static_cast<s64>(v) < least ? static_cast<u64>(least) : v;
    }
    const u64 most = width == 64 ? ~u64{0} : (u64{1} << width) - 1;
    return negative ? 0 : v > most ? most : v;
}

constexpr u32 kCsr[] = {0x1f80, 0x1f80 | 0x6000, 0x1f80 | 0x2000, 0x1f80 | 0x4000};

// An integer as the nearest f64, but odd if inexact, for results of fewer bits.
double int_to_odd(u64 v, bool negative) {
    const u64 m = negative ? u64{0} - v : v;
    const unsigned zeros = m == 0 ? 64 : static_cast<unsigned>(__builtin_clzll(m));
    u64 kept = m;
    if (zeros < 11) {
        const u64 lost = m & ((u64{1} << (11 - zeros)) - 1);
        kept = (m >> (11 - zeros) << (11 - zeros)) | (lost != 0 ? u64{1} << (11 - zeros) : 0);
    }
    const double r = static_cast<double>(static_cast<s64>(kept >> 1)) * 2 + static_cast<double>(kept & 1);
    return negative ? -r : r;
}

const Instr* general(Warp& w, const Instr* in) {
    const Form form = __builtin_bit_cast(Form, in->aux);
    const auto rounding = static_cast<Rounding>(form.rounding);
    const u32 d_size = static_cast<u32>(in->imm & 0xff), a_size = static_cast<u32>((in->imm >> 8) & 0xff);
    const bool from_float = is_half(form.s) || is_float(form.s),
               to_float = is_half(form.d) || is_float(form.d);
    const bool sat = (in->flags & kSat) != 0, ftz = (in->flags & kFtz) != 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        if (((w.mask >> l) & 1) == 0)
            continue;
        const u64 raw = a_size == 2   ? row<u16>(w, in->a)[l]
                        : a_size == 4 ? row<u32>(w, in->a)[l]
                                      : row<u64>(w, in->a)[l];
        u64 result = 0;
        set_csr(w, 0x1f80);
        if (!from_float) {
            const u64 v = extended(raw, form.s);
            const bool negative = is_signed(form.s) && static_cast<s64>(v) < 0;
            if (!to_float) {
                result = extended(sat ? int_to_int(v, form.d, form.s) : v, form.d);
            } else if (is_half(form.d)) {
                const double x = int_to_odd(v, negative);
                result = form.d == Type::f16 ? Half::round(x, rounding) : Bfloat::round(x, rounding);
            } else {
                set_csr(w, kCsr[form.rounding]);
                if (form.d == Type::f32)
                    result = bits<u32>(is_signed(form.s) ? static_cast<float>(static_cast<s64>(pinned(v)))
                                                         : static_cast<float>(pinned(v)));
                else
                    result = bits<u64>(is_signed(form.s) ? static_cast<double>(static_cast<s64>(pinned(v)))
                                                         : static_cast<double>(pinned(v)));
            }
        } else {
            double v = 0;
            switch (form.s) {
            case Type::f16:
                v = Half::to(static_cast<u16>(raw));
                break;
            case Type::bf16:
                v = Bfloat::to(static_cast<u16>(raw));
                break;
            case Type::f32: {
                u32 b = static_cast<u32>(raw);
                b = ftz && (b & 0x7f800000) == 0 ? b & 0x80000000 : b;
                v = bits<float>(b);
                break;
            }
            default:
                v = bits<double>(raw);
            }
            v = integral(v, static_cast<Integral>(form.integral));
            if (!to_float) {
                result = float_to_int(v, form.d, form.s);
            } else {
                if (sat)
                    v = v > 0 ? (v < 1 ? v : 1) : 0;
                if ((in->flags & kRelu) != 0)
                    v = v != v ? v : v > 0 ? v : 0;
                switch (form.d) {
                case Type::f16:
                    result = Half::round(v, rounding);
                    break;
                case Type::bf16:
                    result = Bfloat::round(v, rounding);
                    break;
                case Type::f32: {
                    set_csr(w, kCsr[form.rounding]);
                    u32 b = bits<u32>(static_cast<float>(pinned(v)));
                    b = (b & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : b;
                    result = ftz && (b & 0x7f800000) == 0 ? b & 0x80000000 : b;
                    break;
                }
                default:
                    result = bits<u64>(v);
                }
            }
        }
        if (d_size == 2)
            out<u16>(w, in->d)[l] = static_cast<u16>(result);
        else if (d_size == 4)
            out<u32>(w, in->d)[l] = static_cast<u32>(result);
        else
            out<u64>(w, in->d)[l] = result;
    }
    return in + 1;
}

template <class T>
Handler narrow_of(unsigned d, unsigned a) {
    if (d == 2)
        return a == 2 ? narrow<u16, T, u16> : a == 4 ? narrow<u16, T, u32> : narrow<u16, T, u64>;
    if (d == 4)
        return a == 2 ? narrow<u32, T, u16> : a == 4 ? narrow<u32, T, u32> : narrow<u32, T, u64>;
    return a == 2 ? narrow<u64, T, u16> : a == 4 ? narrow<u64, T, u32> : narrow<u64, T, u64>;
}

// Integer to integer without .sat: the narrower of both types decides; the register is filled by extension.
Handler integers(Type d, Type s, unsigned d_size, unsigned a_size) {
    const Type t = type_size(d) <= type_size(s) ? d : s;
    // A narrower source in a register wider than the destination type must not leave more bits than that type
    // has: s8 to u16 in a 32-bit register. Compilers do not write this; the general handler does it.
    if (type_size(d) < d_size && type_size(s) < type_size(d) && is_signed(s) && !is_signed(d))
        return general;
    switch (t) {
    case Type::u8:
    case Type::b8:
        return narrow_of<u8>(d_size, a_size);
    case Type::s8:
        return narrow_of<s8>(d_size, a_size);
    case Type::u16:
    case Type::b16:
        return narrow_of<u16>(d_size, a_size);
    case Type::s16:
        return narrow_of<s16>(d_size, a_size);
    case Type::u32:
    case Type::b32:
        return narrow_of<u32>(d_size, a_size);
    case Type::s32:
        return narrow_of<s32>(d_size, a_size);
    default:
        return narrow_of<u64>(d_size, a_size);
    }
}

} // namespace

Handler select_convert(const Op& op, Instr& in, unsigned d_size, unsigned a_size) {
    const Type d = op.type(0), s = op.type(1);
    const bool sat = op.has("sat"), ftz = op.has("ftz");
    Form form{d, s, static_cast<u8>(Integral::none), static_cast<u8>(Rounding::nearest)};
    if (op.has("rni"))
        form.integral = static_cast<u8>(Integral::nearest);
    if (op.has("rzi"))
        form.integral = static_cast<u8>(Integral::zero);
    if (op.has("rmi"))
        form.integral = static_cast<u8>(Integral::down);
    if (op.has("rpi"))
        form.integral = static_cast<u8>(Integral::up);
    if (op.has("rz"))
        form.rounding = static_cast<u8>(Rounding::zero);
    if (op.has("rm"))
        form.rounding = static_cast<u8>(Rounding::down);
    if (op.has("rp"))
        form.rounding = static_cast<u8>(Rounding::up);
    in.flags |= static_cast<u16>((sat || op.has("satfinite") ? kSat : 0) | (op.has("relu") ? kRelu : 0) |
                                 (ftz ? kFtz : 0));
    if (d == Type::f16x2 || d == Type::bf16x2) {
        if (s != Type::f32 || in.b == kNoRef)
            return nullptr;
        in.aux = form.rounding;
        return d == Type::f16x2 ? pack_halves<Half> : pack_halves<Bfloat>;
    }
    const auto known = [](Type t) {
        return (t >= Type::b8 && t <= Type::s64 && t != Type::b128) || t == Type::f16 || t == Type::bf16 ||
               is_float(t);
    };
    if (!known(d) || !known(s) || op.has("satfinite") || op.has("rs") || op.has("rna"))
        return nullptr;
    const bool from_float = is_half(s) || is_float(s), to_float = is_half(d) || is_float(d);
    if (!from_float && !to_float && !sat)
        return integers(d, s, d_size, a_size);
    const bool plain = !sat && !ftz && !op.has("relu") && form.integral == 0 && d_size == type_size(d) &&
                       a_size == type_size(s);
    if (plain) {
        in.csr = static_cast<u16>(kCsr[form.rounding]);
        const bool nearest = form.rounding == 0;
        if (d == Type::f32 && s == Type::s32)
            return simple<float, s32>;
        if (d == Type::f32 && s == Type::u32)
            return simple<float, u32>;
        if (d == Type::f64 && s == Type::s32)
            return simple<double, s32>;
        if (d == Type::f64 && s == Type::u32)
            return simple<double, u32>;
        if (d == Type::f64 && s == Type::f32)
            return simple<double, float>;
        if (d == Type::f32 && s == Type::f64)
            return simple<float, double>;
        if (d == Type::f32 && s == Type::f16)
            return half_to_float<Half>;
        if (d == Type::f32 && s == Type::bf16)
            return half_to_float<Bfloat>;
        if (d == Type::f16 && s == Type::f32 && nearest)
            return float_to_half<Half>;
        if (d == Type::bf16 && s == Type::f32 && nearest)
            return float_to_half<Bfloat>;
    }
    if (d == Type::s32 && s == Type::f32 && form.integral == static_cast<u8>(Integral::zero) && d_size == 4 &&
        !ftz)
        return float_to_s32;
    if (!to_float && from_float && form.integral == 0)
        form.integral = static_cast<u8>(Integral::zero);
    in.aux = __builtin_bit_cast(u32, form);
    in.imm = static_cast<s64>(d_size | (a_size << 8));
    return general;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
