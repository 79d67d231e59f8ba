// SPDX-License-Identifier: BSD-3-Clause
// setp, set, selp, slct.
#include "contrib/softgpu/ptx/exec/common.h"

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

enum Finish : u32 { // aux
    kBoolMask = 3,  // 0 none, 1 and, 2 or, 3 xor
    kToInt = 4,     // set: all ones
    kToFloat = 8,   // set: 1.0
    kTo16 = 16,     // set.f16: 1.0 in 16 bits
    kToBf16 = 32,
};

SOFTGPU_INLINE u32 combine(const Warp& w, const Instr* in, u32 t) {
    const u32 how = in->aux & kBoolMask;
    if (how == 0)
        return t;
    const u32 c = predicate(w, in->c, (in->flags & kCNegated) != 0);
    return how == 1 ? t & c : how == 2 ? t | c : t ^ c;
}

const Instr* finish(Warp& w, const Instr* in, u32 t) {
    const u32 r = combine(w, in, t);
    if ((in->aux & (kToInt | kToFloat | kTo16 | kToBf16)) == 0) {
        const u32 other = in->e != kNoRef ? combine(w, in, ~t) : 0;
        if (in->d != kNoRef)
            set_predicate(w, in->d, r);
        set_predicate(w, in->e, other);
        return in + 1;
    }
    if ((in->aux & (kTo16 | kToBf16)) != 0) {
        const u16 one = (in->aux & kTo16) != 0 ? 0x3c00 : 0x3f80;
        each(w, out<u16>(w, in->d), [=](unsigned l) { return ((r >> l) & 1) != 0 ? one : u16{0}; });
        return in + 1;
    }
    const u32 one = (in->aux & kToInt) != 0 ? kAll : 0x3f800000;
    each(w, out<u32>(w, in->d), [=](unsigned l) { return ((r >> l) & 1) != 0 ? one : 0; });
    return in + 1;
}

enum Cmp { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

template <Cmp C, class T>
SOFTGPU_INLINE bool test(T a, T b) {
    const bool unordered = a != a || b != b;
    switch (C) {
    case eq:
        return a == b;
    case ne:
        return std::is_floating_point_v<T> ? !unordered && a != b : a != b;
    case lt:
        return a < b;
    case le:
        return a <= b;
    case gt:
        return a > b;
    case ge:
        return a >= b;
    case equ:
        return unordered || a == b;
    case neu:
        return a != b;
    case ltu:
        return !(a >= b);
    case leu:
        return !(a > b);
    case gtu:
        return !(a <= b);
    case geu:
        return !(a < b);
    case num:
        return !unordered;
    case nan:
        return unordered;
    }
}

template <Cmp C, class T>
const Instr* compare(Warp& w, const Instr* in) {
    if constexpr (std::is_floating_point_v<T>)
        set_csr(w, in->csr); // flushing counts
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    return finish(w, in, mask_of([=](unsigned l) { return test<C, T>(a[l], b[l]); }));
}

template <class T>
Handler integer(std::string_view c) {
    if (c == "eq")
        return compare<eq, T>;
    if (c == "ne")
        return compare<ne, T>;
    if (c == "lt" || c == "lo")
        return compare<lt, T>;
    if (c == "le" || c == "ls")
        return compare<le, T>;
    if (c == "gt" || c == "hi")
        return compare<gt, T>;
    if (c == "ge" || c == "hs")
        return compare<ge, T>;
    return nullptr;
}
template <class T>
Handler real(std::string_view c) {
    if (c == "ne")
        return compare<ne, T>;
    if (c == "equ")
        return compare<equ, T>;
    if (c == "neu")
        return compare<neu, T>;
    if (c == "ltu")
        return compare<ltu, T>;
    if (c == "leu")
        return compare<leu, T>;
    if (c == "gtu")
        return compare<gtu, T>;
    if (c == "geu")
        return compare<geu, T>;
    if (c == "num")
        return compare<num, T>;
    if (c == "nan")
        return compare<nan, T>;
    return integer<T>(c);
}
Handler comparison(std::string_view c, Type t) {
    switch (t) {
    case Type::b16:
    case Type::u16:
        return integer<u16>(c);
    case Type::s16:
        return integer<s16>(c);
    case Type::b32:
    case Type::u32:
        return integer<u32>(c);
    case Type::s32:
        return integer<s32>(c);
    case Type::b64:
    case Type::u64:
        return integer<u64>(c);
    case Type::s64:
        return integer<s64>(c);
    case Type::f32:
        return real<float>(c);
    case Type::f64:
        return real<double>(c);
    default:
        return nullptr;
    }
}

template <class T>
const Instr* selp(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const u32 p = predicate(w, in->c, (in->flags & kCNegated) != 0);
    each(w, out<T>(w, in->d), [=](unsigned l) { return ((p >> l) & 1) != 0 ? a[l] : b[l]; });
    return in + 1;
}
const Instr* selp_pred(Warp& w, const Instr* in) {
    const u32 p = predicate(w, in->c, (in->flags & kCNegated) != 0);
    set_predicate(w, in->d,
                  (predicate(w, in->a, (in->flags & kANegated) != 0) & p) |
                      (predicate(w, in->b, (in->flags & kBNegated) != 0) & ~p));
    return in + 1;
}
template <class T, class C>
const Instr* slct(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const C* c = row<C>(w, in->c);
    each(w, out<T>(w, in->d), [=](unsigned l) { return c[l] >= 0 ? a[l] : b[l]; });
    return in + 1;
}

} // namespace

Handler select_compare(const Op& op, Instr& in) {
    const std::string_view n = op.name;
    if (n == "setp" || n == "set") {
        in.aux = op.has("and") ? 1 : op.has("or") ? 2 : op.has("xor") ? 3 : 0;
        Type t = op.type();
        if (n == "set") {
            switch (op.type(0)) {
            case Type::f32:
                in.aux |= kToFloat;
                break;
            case Type::f16:
                in.aux |= kTo16;
                break;
            case Type::bf16:
                in.aux |= kToBf16;
                break;
            case Type::u32:
            case Type::s32:
            case Type::b32:
                in.aux |= kToInt;
                break;
            default:
                return nullptr;
            }
            t = op.type(1);
        }
        for (const std::string_view m : op.modifiers)
            if (const Handler h = comparison(m, t))
                return h;
        return nullptr;
    }
    const unsigned size = type_size(op.type());
    if (n == "selp") {
        if (op.type() == Type::pred)
            return selp_pred;
        return size == 2 ? selp<u16> : size == 4 ? selp<u32> : size == 8 ? selp<u64> : nullptr;
    }
    if (n == "slct") {
        const bool f = op.type(1) == Type::f32;
        if (size == 2)
            return f ? slct<u16, float> : slct<u16, s32>;
        if (size == 4)
            return f ? slct<u32, float> : slct<u32, s32>;
        if (size == 8)
            return f ? slct<u64, float> : slct<u64, s32>;
    }
    return nullptr;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
