// SPDX-License-Identifier: BSD-3-Clause
// f32 and f64 arithmetic. Rounding modes and .ftz are the processor's own (MXCSR): this file is compiled so
// that the compiler keeps floating-point operations where they stand.
#include "contrib/softgpu/ptx/exec/common.h"

#include <cmath>

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

// Single precision results that are NaN are the one canonical NaN.
template <class T>
SOFTGPU_INLINE T canonical(T v) {
    if constexpr (sizeof(T) == 4) {
        // Without a comparison, which the compiler would make a branch of and not vectorise.
        const u32 b = bits<u32>(v);
        const u32 nan = static_cast<u32>(static_cast<s32>(0x7f800000U - (b & 0x7fffffffU)) >> 31);
        return bits<T>((b | (nan >> 1)) & ~(nan << 31));
    } else {
        return v;
    }
}
template <class T>
SOFTGPU_INLINE T saturate(T v) { // NaN becomes +0
    v = v > T{0} ? v : T{0};
    return v < T{1} ? v : T{1};
}
template <class T>
SOFTGPU_INLINE T fused(T a, T b, T c) {
    if constexpr (sizeof(T) == 4)
        return __builtin_fmaf(a, b, c);
    else
        return __builtin_fma(a, b, c);
}
// Subnormals to zero of the same sign; for the operations the processor does not do this in.
template <class T>
SOFTGPU_INLINE T flush(T v) {
    if constexpr (sizeof(T) == 4) {
        const u32 b = bits<u32>(v);
        return (b & 0x7f800000) == 0 ? bits<T>(b & 0x80000000) : v;
    } else {
        return v;
    }
}

struct Add {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        return a + b;
    }
};
struct Sub {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        return a - b;
    }
};
struct Mul {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        return a * b;
    }
};
struct Div {
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        return a / b;
    }
};
struct Sqrt {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        if constexpr (sizeof(T) == 4)
            return __builtin_sqrtf(a);
        else
            return __builtin_sqrt(a);
    }
};
struct Rcp {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return T{1} / a;
    }
};
struct Rsqrt {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return T{1} / Sqrt::apply<T>(a);
    }
};
// The .approx functions: computed more exactly than the device does.
struct Sin {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return static_cast<T>(::sin(static_cast<double>(a)));
    }
};
struct Cos {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return static_cast<T>(::cos(static_cast<double>(a)));
    }
};
struct Ex2 {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return ::exp2f(a);
    }
};
struct Lg2 {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return ::log2f(a);
    }
};
struct Tanh {
    template <class T>
    static SOFTGPU_INLINE T apply(T a) {
        return ::tanhf(a);
    }
};
template <bool Max>
struct Extreme { // the number if one is NaN; -0 is less than +0
    template <class T>
    static SOFTGPU_INLINE T apply(T a, T b) {
        using U = Unsigned<T>;
        const U x = bits<U>(a), y = bits<U>(b);
        const T equal = bits<T>(static_cast<U>(Max ? x & y : x | y));
        const T number = (Max ? a > b : a < b) ? a : (a == b ? equal : b);
        return b != b ? a : number;
    }
};

template <class F, class T, bool Sat>
const Instr* unary(Warp& w, const Instr* in) {
    set_csr(w, in->csr);
    const T* a = row<T>(w, in->a);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        const T v = F::template apply<T>(a[l]);
        return Sat ? saturate(v) : canonical(v);
    });
    return in + 1;
}
// For functions of libm: under round-to-nearest, flushing by hand.
template <class F>
const Instr* approximate(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const float* a = row<float>(w, in->a);
    float* d = out<float>(w, in->d);
    const bool ftz = (in->flags & kFtz) != 0;
    for (unsigned l = 0; l < kLanes; ++l) {
        if (((w.mask >> l) & 1) == 0)
            continue;
        float v = F::template apply<float>(ftz ? flush(a[l]) : a[l]);
        v = ftz ? flush(v) : v;
        d[l] = (in->flags & kSat) != 0 ? saturate(v) : canonical(v);
    }
    return in + 1;
}
template <class F, class T, bool Sat>
const Instr* binary(Warp& w, const Instr* in) {
    set_csr(w, in->csr);
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        const T v = F::template apply<T>(a[l], b[l]);
        return Sat ? saturate(v) : canonical(v);
    });
    return in + 1;
}
template <class T, bool Sat>
const Instr* fma(Warp& w, const Instr* in) {
    set_csr(w, in->csr);
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const T* c = row<T>(w, in->c);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        const T v = fused<T>(a[l], b[l], c[l]);
        return Sat ? saturate(v) : canonical(v);
    });
    return in + 1;
}
template <class T, bool Max>
const Instr* extreme(Warp& w, const Instr* in) {
    set_csr(w, in->csr);
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const T* c = in->c != kNoRef ? row<T>(w, in->c) : nullptr;
    const bool ftz = (in->flags & kFtz) != 0, nan = (in->flags & kNaN) != 0,
               xorsign = (in->flags & kXorSign) != 0;
    if (!ftz && !nan && !xorsign && c == nullptr) {
        each(w, out<T>(w, in->d),
             [=](unsigned l) { return canonical(Extreme<Max>::template apply<T>(a[l], b[l])); });
        return in + 1;
    }
    using U = Unsigned<T>;
    constexpr U sign = U{1} << (8 * sizeof(T) - 1);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        T x = ftz ? flush(a[l]) : a[l], y = ftz ? flush(b[l]) : b[l];
        const U signs = (bits<U>(x) ^ bits<U>(y)) & sign;
        if (xorsign) {
            x = bits<T>(static_cast<U>(bits<U>(x) & ~sign));
            y = bits<T>(static_cast<U>(bits<U>(y) & ~sign));
        }
        T v = Extreme<Max>::template apply<T>(x, y);
        v = nan && x != x ? x : nan && y != y ? y : v;
        if (c != nullptr) {
            const T z = ftz ? flush(c[l]) : c[l];
            const T r = Extreme<Max>::template apply<T>(v, z);
            v = nan && v != v ? v : nan && z != z ? z : r;
        }
        v = canonical(v);
        return xorsign ? bits<T>(static_cast<U>((bits<U>(v) & ~sign) | signs)) : v;
    });
    return in + 1;
}
template <class T, bool Abs>
const Instr* sign_op(Warp& w, const Instr* in) {
    using U = Unsigned<T>;
    constexpr U sign = U{1} << (8 * sizeof(T) - 1);
    const T* a = row<T>(w, in->a);
    const bool ftz = (in->flags & kFtz) != 0;
    each(w, out<T>(w, in->d), [=](unsigned l) {
        const U v = bits<U>(ftz ? flush(a[l]) : a[l]);
        return bits<T>(static_cast<U>(Abs ? v & ~sign : v ^ sign));
    });
    return in + 1;
}
template <class T>
const Instr* copysign(Warp& w, const Instr* in) {
    using U = Unsigned<T>;
    constexpr U sign = U{1} << (8 * sizeof(T) - 1);
    const U* a = row<U>(w, in->a); // sign from a, magnitude from b
    const U* b = row<U>(w, in->b);
    each(w, out<U>(w, in->d), [=](unsigned l) { return static_cast<U>((a[l] & sign) | (b[l] & ~sign)); });
    return in + 1;
}
template <class T>
const Instr* testp(Warp& w, const Instr* in) { // aux: finite infinite number notanumber normal subnormal
    using U = Unsigned<T>;
    constexpr unsigned mantissa = sizeof(T) == 4 ? 23 : 52;
    constexpr U magnitude = static_cast<U>(~U{0}) >> 1;
    constexpr U infinity = (magnitude >> mantissa) << mantissa;
    const U* a = row<U>(w, in->a);
    const u32 test = in->aux;
    set_predicate(w, in->d, mask_of([=](unsigned l) {
                      const U v = a[l] & magnitude;
                      switch (test) {
                      case 0:
                          return v < infinity;
                      case 1:
                          return v == infinity;
                      case 2:
                          return v <= infinity;
                      case 3:
                          return v > infinity;
                      case 4:
                          return v < infinity && v >= (U{1} << mantissa);
                      default:
                          return v != 0 && v < (U{1} << mantissa);
                      }
                  }));
    return in + 1;
}
// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: the lower 32 bits of the result are zero.
template <bool Root>
const Instr* approximate64(Warp& w, const Instr* in) {
    set_csr(w, 0x1f80);
    const double* a = row<double>(w, in->a);
    each(w, out<double>(w, in->d), [=](unsigned l) {
        const double x = (bits<u64>(a[l]) & 0x7ff0000000000000) == 0
                             ? bits<double>(bits<u64>(a[l]) & (u64{1} << 63))
                             : a[l];
        const double v = Root ? 1.0 / Sqrt::apply<double>(x) : 1.0 / x;
        u64 r = bits<u64>(v) & 0xffffffff00000000;
        if ((r & 0x7ff0000000000000) == 0)
            r &= u64{1} << 63;
        return v != v ? bits<double>(u64{0x7fffffff00000000}) : bits<double>(r);
    });
    return in + 1;
}

template <class F>
Handler binary_of(Type t, bool sat) {
    if (t == Type::f64)
        return binary<F, double, false>;
    return sat ? binary<F, float, true> : binary<F, float, false>;
}
template <class F>
Handler unary_of(Type t, bool sat) {
    if (t == Type::f64)
        return unary<F, double, false>;
    return sat ? unary<F, float, true> : unary<F, float, false>;
}

} // namespace

Handler select_float(const Op& op, Instr& in) {
    const std::string_view n = op.name;
    const Type t = op.type();
    if (!is_float(t))
        return nullptr;
    const bool sat = op.has("sat"), f64 = t == Type::f64, exact = !op.has("approx") && !op.has("full");
    if (n == "add")
        return binary_of<Add>(t, sat);
    if (n == "sub")
        return binary_of<Sub>(t, sat);
    if (n == "mul")
        return binary_of<Mul>(t, sat);
    if (n == "div")
        return binary_of<Div>(t, sat);
    if (n == "fma" || n == "mad")
        return f64 ? fma<double, false> : sat ? fma<float, true> : fma<float, false>;
    if (n == "min")
        return f64 ? extreme<double, false> : extreme<float, false>;
    if (n == "max")
        return f64 ? extreme<double, true> : extreme<float, true>;
    if (n == "abs")
        return f64 ? sign_op<double, true> : sign_op<float, true>;
    if (n == "neg")
        return f64 ? sign_op<double, false> : sign_op<float, false>;
    if (n == "copysign")
        return f64 ? copysign<double> : copysign<float>;
    if (n == "sqrt")
        return unary_of<Sqrt>(t, sat);
    if (n == "rcp")
        return f64 && !exact ? approximate64<false> : unary_of<Rcp>(t, sat);
    if (n == "rsqrt")
        return f64 ? approximate64<true> : unary_of<Rsqrt>(t, sat);
    if (f64 && n != "testp")
        return nullptr;
    if (n == "sin")
        return approximate<Sin>;
    if (n == "cos")
        return approximate<Cos>;
    if (n == "ex2")
        return approximate<Ex2>;
    if (n == "lg2")
        return approximate<Lg2>;
    if (n == "tanh")
        return approximate<Tanh>;
    if (n == "testp") {
        static constexpr std::string_view tests[] = {"finite",     "infinite", "number",
                                                     "notanumber", "normal",   "subnormal"};
        for (u32 i = 0; i < 6; ++i)
            if (op.has(tests[i])) {
                in.aux = i;
                return f64 ? testp<double> : testp<float>;
            }
    }
    return nullptr;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
