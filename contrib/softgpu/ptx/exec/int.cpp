// SPDX-License-Identifier: BSD-3-Clause
// Integer arithmetic.
#include "contrib/softgpu/ptx/exec/common.h"

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

template <class T>
T add(T a, T b) {
    return static_cast<T>(static_cast<Work<T>>(a) + static_cast<Work<T>>(b));
}

#define SOFTGPU_OP2(Name, expression)                                                                        \
    struct Name {                                                                                            \
        template <class T>                                                                                   \
        static SOFTGPU_INLINE T apply(T a, T b) {                                                            \
            using W [[maybe_unused]] = Work<T>;                                                              \
            return static_cast<T>(expression);                                                               \
        }                                                                                                    \
    };
SOFTGPU_OP2(Add, W(a) + W(b))
SOFTGPU_OP2(Sub, W(a) - W(b))
SOFTGPU_OP2(MulLo, W(a) * W(b))
SOFTGPU_OP2(Min, a < b ? a : b)
SOFTGPU_OP2(Max, a > b ? a : b)
SOFTGPU_OP2(And, a& b)
SOFTGPU_OP2(Or, a | b)
SOFTGPU_OP2(Xor, a ^ b)

struct MulHi {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        if constexpr (sizeof(T) == 8) {
            using W = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
            return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> 64);
        } else {
            using W = std::conditional_t<std::is_signed_v<T>, s64, u64>;
            return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
        }
    }
};

// Division by zero gives all ones, as on the device.
struct Div {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        if (b == 0)
            return static_cast<T>(~T{0});
        if constexpr (std::is_signed_v<T>)
            if (b == -1)
                return static_cast<T>(Work<T>{0} - static_cast<Work<T>>(a));
        return static_cast<T>(a / b);
    }
};
struct Rem {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        if (b == 0)
            return static_cast<T>(~T{0});
        if constexpr (std::is_signed_v<T>)
            if (b == -1)
                return 0;
        return static_cast<T>(a % b);
    }
};
struct AddSat {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        const s64 r = static_cast<s64>(a) + b;
        return static_cast<T>(r > 0x7fffffff ? 0x7fffffff : r < -0x80000000LL ? -0x80000000LL : r);
    }
};
struct SubSat {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        const s64 r = static_cast<s64>(a) - b;
        return static_cast<T>(r > 0x7fffffff ? 0x7fffffff : r < -0x80000000LL ? -0x80000000LL : r);
    }
};

struct Abs {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return a < 0 ? static_cast<T>(Work<T>{0} - static_cast<Work<T>>(a)) : a;
    }
};
struct Neg {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return static_cast<T>(Work<T>{0} - static_cast<Work<T>>(a));
    }
};
struct Not {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return static_cast<T>(~a);
    }
};
struct Cnot {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return static_cast<T>(a == 0);
    }
};

template <class F, class T>
const Instr* unary(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    each(w, out<T>(w, in->d), [=](unsigned l) { return F::template apply<T>(a[l]); });
    return in + 1;
}
template <class F, class T>
const Instr* binary(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    each(w, out<T>(w, in->d), [=](unsigned l) { return F::template apply<T>(a[l], b[l]); });
    return in + 1;
}
template <class F, class T>
const Instr* then_add(Warp& w, const Instr* in) { // mad
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const T* c = row<T>(w, in->c);
    each(w, out<T>(w, in->d), [=](unsigned l) { return add<T>(F::template apply<T>(a[l], b[l]), c[l]); });
    return in + 1;
}
template <class W, class T>
const Instr* mul_wide(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    each(w, out<W>(w, in->d),
         [=](unsigned l) { return static_cast<W>(static_cast<W>(a[l]) * static_cast<W>(b[l])); });
    return in + 1;
}
template <class W, class T>
const Instr* mad_wide(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const W* c = row<W>(w, in->c);
    each(w, out<W>(w, in->d), [=](unsigned l) {
        return add<W>(static_cast<W>(static_cast<W>(a[l]) * static_cast<W>(b[l])), c[l]);
    });
    return in + 1;
}
const Instr* mad_hi_sat(Warp& w, const Instr* in) {
    const s32* a = row<s32>(w, in->a);
    const s32* b = row<s32>(w, in->b);
    const s32* c = row<s32>(w, in->c);
    each(w, out<s32>(w, in->d),
         [=](unsigned l) { return AddSat::apply<s32>(MulHi::apply<s32>(a[l], b[l]), c[l]); });
    return in + 1;
}
template <class T>
const Instr* sad(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const T* c = row<T>(w, in->c);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        const Work<T> x = static_cast<Work<T>>(a[l]), y = static_cast<Work<T>>(b[l]);
        return static_cast<T>(static_cast<Work<T>>(c[l]) + (a[l] < b[l] ? y - x : x - y));
    });
    return in + 1;
}
template <bool Hi, bool Signed>
SOFTGPU_INLINE u32 mul24(u32 a, u32 b) {
    if constexpr (Signed) {
        const s64 p = static_cast<s64>(static_cast<s32>(a << 8) >> 8) * (static_cast<s32>(b << 8) >> 8);
        return static_cast<u32>(Hi ? p >> 16 : p);
    } else {
        const u64 p = static_cast<u64>(a & 0xffffff) * (b & 0xffffff);
        return static_cast<u32>(Hi ? p >> 16 : p);
    }
}
template <bool Hi, bool Signed, bool Mad>
const Instr* mad24(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = Mad ? row<u32>(w, in->c) : a;
    each(w, out<u32>(w, in->d),
         [=](unsigned l) { return mul24<Hi, Signed>(a[l], b[l]) + (Mad ? c[l] : 0U); });
    return in + 1;
}

// Carry chains: aux bit 0 carry in, bit 1 carry out, bit 2 subtract. The carry is the warp's, a bit a lane.
enum Chain : u32 { kCarryIn = 1, kCarryOut = 2, kSubtract = 4 };
template <class T>
SOFTGPU_INLINE void chain(Warp& w, const Instr* in, const T* x, const T* y) {
    T* d = out<T>(w, in->d);
    u32 carry = w.carry;
    for (unsigned l = 0; l < kLanes; ++l) {
        if (((w.mask >> l) & 1) == 0)
            continue;
        const bool cin = (in->aux & kCarryIn) != 0 && ((carry >> l) & 1) != 0;
        T sum = 0;
        bool cout = false;
        if ((in->aux & kSubtract) != 0) { // the carry is the borrow
            T part = 0;
            cout = __builtin_sub_overflow(x[l], y[l], &part);
            cout |= __builtin_sub_overflow(part, static_cast<T>(cin), &sum);
        } else {
            T part = 0;
            cout = __builtin_add_overflow(x[l], y[l], &part);
            cout |= __builtin_add_overflow(part, static_cast<T>(cin), &sum);
        }
        d[l] = sum;
        if ((in->aux & kCarryOut) != 0)
            carry = (carry & ~(1U << l)) | (static_cast<u32>(cout) << l);
    }
    w.carry = carry;
}
template <class T>
const Instr* add_carry(Warp& w, const Instr* in) {
    chain<T>(w, in, row<T>(w, in->a), row<T>(w, in->b));
    return in + 1;
}
template <class T, class F>
const Instr* mad_carry(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    T product[kLanes];
    for (unsigned l = 0; l < kLanes; ++l)
        product[l] = F::template apply<T>(a[l], b[l]);
    chain<Unsigned<T>>(w, in, reinterpret_cast<const Unsigned<T>*>(product), row<Unsigned<T>>(w, in->c));
    return in + 1;
}

// dp4a, dp2a: aux bit 0: a is signed, bit 1: b is signed, bit 2: dp2a's upper half
const Instr* dp4a(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    const u32 aux = in->aux;
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        u32 sum = c[l];
        for (unsigned i = 0; i < 4; ++i) {
            const u8 x = static_cast<u8>(a[l] >> (8 * i)), y = static_cast<u8>(b[l] >> (8 * i));
            sum += static_cast<u32>(((aux & 1) != 0 ? static_cast<s8>(x) : static_cast<s32>(x)) *
                                    ((aux & 2) != 0 ? static_cast<s8>(y) : static_cast<s32>(y)));
        }
        return sum;
    });
    return in + 1;
}
const Instr* dp2a(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    const u32 aux = in->aux;
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        u32 sum = c[l];
        for (unsigned i = 0; i < 2; ++i) {
            const u16 x = static_cast<u16>(a[l] >> (16 * i));
            const u8 y = static_cast<u8>(b[l] >> (8 * i + ((aux & 4) != 0 ? 16 : 0)));
            sum += static_cast<u32>((aux & 1) != 0 ? static_cast<s16>(x) : static_cast<s32>(x)) *
                   static_cast<u32>((aux & 2) != 0 ? static_cast<s8>(y) : static_cast<s32>(y));
        }
        return sum;
    });
    return in + 1;
}

const Instr* pred_op(Warp& w, const Instr* in) { // aux: 0 and, 1 or, 2 xor
    const u32 a = predicate(w, in->a, (in->flags & kANegated) != 0);
    const u32 b = predicate(w, in->b, (in->flags & kBNegated) != 0);
    set_predicate(w, in->d, in->aux == 0 ? a & b : in->aux == 1 ? a | b : a ^ b);
    return in + 1;
}
const Instr* pred_not(Warp& w, const Instr* in) {
    set_predicate(w, in->d, ~predicate(w, in->a, (in->flags & kANegated) != 0));
    return in + 1;
}

template <class F>
Handler binary_of(Type t) {
    switch (t) {
    case Type::u16:
    case Type::b16:
        return binary<F, u16>;
    case Type::s16:
        return binary<F, s16>;
    case Type::u32:
    case Type::b32:
        return binary<F, u32>;
    case Type::s32:
        return binary<F, s32>;
    case Type::u64:
    case Type::b64:
        return binary<F, u64>;
    case Type::s64:
        return binary<F, s64>;
    default:
        return nullptr;
    }
}
template <class F>
Handler bits_of(Type t) { // whatever the sign
    switch (type_size(t)) {
    case 2:
        return binary<F, u16>;
    case 4:
        return binary<F, u32>;
    case 8:
        return binary<F, u64>;
    default:
        return nullptr;
    }
}
template <class F>
Handler unary_bits_of(Type t) {
    switch (type_size(t)) {
    case 2:
        return unary<F, u16>;
    case 4:
        return unary<F, u32>;
    case 8:
        return unary<F, u64>;
    default:
        return nullptr;
    }
}
template <class F>
Handler unary_signed_of(Type t) {
    switch (type_size(t)) {
    case 2:
        return unary<F, s16>;
    case 4:
        return unary<F, s32>;
    case 8:
        return unary<F, s64>;
    default:
        return nullptr;
    }
}
template <class F>
Handler mad_of(Type t) {
    switch (t) {
    case Type::u16:
        return then_add<F, u16>;
    case Type::s16:
        return then_add<F, s16>;
    case Type::u32:
        return then_add<F, u32>;
    case Type::s32:
        return then_add<F, s32>;
    case Type::u64:
        return then_add<F, u64>;
    case Type::s64:
        return then_add<F, s64>;
    default:
        return nullptr;
    }
}
Handler wide_of(Type t, bool mad) {
    switch (t) {
    case Type::u16:
        return mad ? mad_wide<u32, u16> : mul_wide<u32, u16>;
    case Type::s16:
        return mad ? mad_wide<s32, s16> : mul_wide<s32, s16>;
    case Type::u32:
        return mad ? mad_wide<u64, u32> : mul_wide<u64, u32>;
    case Type::s32:
        return mad ? mad_wide<s64, s32> : mul_wide<s64, s32>;
    default:
        return nullptr;
    }
}
Handler mad24_of(const Op& op, bool mad) {
    const bool is_s = op.type() == Type::s32;
    if (op.has("hi"))
        return mad ? (is_s ? mad24<true, true, true> : mad24<true, false, true>)
                   : (is_s ? mad24<true, true, false> : mad24<true, false, false>);
    return mad ? (is_s ? mad24<false, true, true> : mad24<false, false, true>)
               : (is_s ? mad24<false, true, false> : mad24<false, false, false>);
}
Handler carry_of(const Op& op, Instr& in, bool carry_in, bool subtract) {
    in.aux = (carry_in ? kCarryIn : 0U) | (op.has("cc") ? kCarryOut : 0U) | (subtract ? kSubtract : 0U);
    return type_size(op.type()) == 8 ? add_carry<u64> : type_size(op.type()) == 4 ? add_carry<u32> : nullptr;
}
Handler mad_carry_of(const Op& op, Instr& in, bool carry_in) {
    in.aux = (carry_in ? kCarryIn : 0U) | (op.has("cc") ? kCarryOut : 0U);
    const bool hi = op.has("hi");
    switch (op.type()) {
    case Type::u32:
        return hi ? mad_carry<u32, MulHi> : mad_carry<u32, MulLo>;
    case Type::s32:
        return hi ? mad_carry<s32, MulHi> : mad_carry<s32, MulLo>;
    case Type::u64:
        return hi ? mad_carry<u64, MulHi> : mad_carry<u64, MulLo>;
    case Type::s64:
        return hi ? mad_carry<s64, MulHi> : mad_carry<s64, MulLo>;
    default:
        return nullptr;
    }
}
Handler logic_of(const Op& op, Instr& in) {
    const Type t = op.type();
    if (t == Type::pred) {
        in.aux = op.name == "and" ? 0 : op.name == "or" ? 1 : 2;
        return op.name == "not" ? pred_not : pred_op;
    }
    return op.name == "and"   ? bits_of<And>(t)
           : op.name == "or"  ? bits_of<Or>(t)
           : op.name == "xor" ? bits_of<Xor>(t)
                              : unary_bits_of<Not>(t);
}

} // namespace

Handler select_int(const Op& op, Instr& in) {
    const Type t = op.type();
    const std::string_view n = op.name;
    const bool sat = op.has("sat");
    if (n == "and" || n == "or" || n == "xor" || n == "not")
        return logic_of(op, in);
    if (is_half(t) || is_float(t))
        return nullptr;
    if (n == "add")
        return op.has("cc") ? carry_of(op, in, false, false)
               : sat        ? (t == Type::s32 ? binary<AddSat, s32> : nullptr)
                            : bits_of<Add>(t);
    if (n == "sub")
        return op.has("cc") ? carry_of(op, in, false, true)
               : sat        ? (t == Type::s32 ? binary<SubSat, s32> : nullptr)
                            : bits_of<Sub>(t);
    if (n == "addc")
        return carry_of(op, in, true, false);
    if (n == "subc")
        return carry_of(op, in, true, true);
    if (n == "mul")
        return op.has("wide") ? wide_of(t, false) : op.has("hi") ? binary_of<MulHi>(t) : bits_of<MulLo>(t);
    if (n == "madc")
        return mad_carry_of(op, in, true);
    if (n == "mad" && op.has("cc"))
        return mad_carry_of(op, in, false);
    if (n == "mad" && sat)
        return op.has("hi") && t == Type::s32 ? mad_hi_sat : nullptr;
    if (n == "mad")
        return op.has("wide") ? wide_of(t, true) : op.has("hi") ? mad_of<MulHi>(t) : mad_of<MulLo>(t);
    if (n == "mul24" || n == "mad24")
        return mad24_of(op, n == "mad24");
    if (n == "div")
        return binary_of<Div>(t);
    if (n == "rem")
        return binary_of<Rem>(t);
    if (n == "min" || n == "max") {
        if (op.has("relu"))
            return nullptr;
        return n == "min" ? binary_of<Min>(t) : binary_of<Max>(t);
    }
    if (n == "abs")
        return unary_signed_of<Abs>(t);
    if (n == "neg")
        return unary_signed_of<Neg>(t);
    if (n == "cnot")
        return unary_bits_of<Cnot>(t);
    if (n == "sad")
        switch (t) {
        case Type::u16:
            return sad<u16>;
        case Type::s16:
            return sad<s16>;
        case Type::u32:
            return sad<u32>;
        case Type::s32:
            return sad<s32>;
        case Type::u64:
            return sad<u64>;
        case Type::s64:
            return sad<s64>;
        default:
            return nullptr;
        }
    if (n == "dp4a" || n == "dp2a") {
        in.aux =
            (is_signed(op.type(0)) ? 1U : 0U) | (is_signed(op.type(1)) ? 2U : 0U) | (op.has("hi") ? 4U : 0U);
        return n == "dp4a" ? dp4a : dp2a;
    }
    return nullptr;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
