// SPDX-License-Identifier: BSD-3-Clause
// Shifts, bit fields, counting, permutation.
#include "contrib/softgpu/ptx/exec/common.h"

namespace softgpu::ptx::SOFTGPU_ISA {
namespace {

template <class T>
const Instr* shl(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        const T shifted = static_cast<T>(static_cast<Work<T>>(a[l]) << (b[l] & (8 * sizeof(Work<T>) - 1)));
        return b[l] < 8 * sizeof(T) ? shifted : T{0};
    });
    return in + 1;
}
// Amounts over the width shift everything out.
template <class T>
const Instr* shr(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        constexpr u32 most = 8 * sizeof(T) - 1;
        if constexpr (std::is_signed_v<T>)
            return static_cast<T>(a[l] >> (b[l] < most ? b[l] : most));
        else
            return b[l] <= most ? static_cast<T>(a[l] >> (b[l] & most)) : T{0};
    });
    return in + 1;
}
template <class T>
const Instr* popc(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    each(w, out<u32>(w, in->d), [=](unsigned l) { return static_cast<u32>(__builtin_popcountll(a[l])); });
    return in + 1;
}
template <class T>
SOFTGPU_INLINE u32 leading_zeros(T v) {
    if (v == 0)
        return 8 * sizeof(T);
    return sizeof(T) == 8 ? static_cast<u32>(__builtin_clzll(v))
                          : static_cast<u32>(__builtin_clz(static_cast<u32>(v)));
}
template <class T>
const Instr* clz(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    each(w, out<u32>(w, in->d), [=](unsigned l) { return leading_zeros<T>(a[l]); });
    return in + 1;
}
template <class T>
const Instr* brev(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        u64 v = a[l];
        v = ((v >> 1) & 0x5555555555555555) | ((v & 0x5555555555555555) << 1);
        v = ((v >> 2) & 0x3333333333333333) | ((v & 0x3333333333333333) << 2);
        v = ((v >> 4) & 0x0f0f0f0f0f0f0f0f) | ((v & 0x0f0f0f0f0f0f0f0f) << 4);
        v = __builtin_bswap64(v);
        return static_cast<T>(v >> (64 - 8 * sizeof(T)));
    });
    return in + 1;
}
template <class T>
const Instr* bfind(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const bool shift = in->aux != 0;
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        Unsigned<T> v = static_cast<Unsigned<T>>(a[l]);
        if constexpr (std::is_signed_v<T>)
            v = a[l] < 0 ? ~v : v;
        const u32 position = 8 * sizeof(T) - 1 - leading_zeros<Unsigned<T>>(v);
        return v == 0 ? kAll : shift ? static_cast<u32>(8 * sizeof(T) - 1) - position : position;
    });
    return in + 1;
}
// PTX ISA: position and length from the low 8 bits; beyond the most significant bit the field is filled with
// the sign bit (signed) or zero.
template <class T>
const Instr* bfe(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        using U = Unsigned<T>;
        constexpr u32 width = 8 * sizeof(T);
        const u32 pos = b[l] & 0xff, len = c[l] & 0xff;
        const U v = static_cast<U>(a[l]);
        U field = pos < width ? static_cast<U>(v >> pos) : U{0};
        const U mask = len >= width ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << len) - 1);
        field &= mask;
        if constexpr (std::is_signed_v<T>) {
            const u32 top = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1;
            const bool sign = len != 0 && ((v >> top) & 1) != 0;
            const u32 have = pos < width ? (width - pos < len ? width - pos : len) : 0; // bits really taken
            const U upper = have >= width ? U{0} : static_cast<U>(~U{0} << have);
            field = sign ? static_cast<U>(field | upper) : field;
        }
        return static_cast<T>(field);
    });
    return in + 1;
}
template <class T>
const Instr* bfi(Warp& w, const Instr* in) {
    const T* a = row<T>(w, in->a);
    const T* b = row<T>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    const u32* e = row<u32>(w, in->e);
    each(w, out<T>(w, in->d), [=](unsigned l) {
        constexpr u32 width = 8 * sizeof(T);
        const u32 pos = c[l] & 0xff, len = e[l] & 0xff;
        if (pos >= width || len == 0)
            return b[l];
        T mask = len >= width ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << len) - 1);
        mask = static_cast<T>(mask << pos);
        return static_cast<T>((b[l] & ~mask) | ((a[l] << pos) & mask));
    });
    return in + 1;
}
const Instr* bmsk(Warp& w, const Instr* in) { // aux: wrap
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const bool wrap = in->aux != 0;
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        u32 pos = a[l], len = b[l];
        if (wrap) {
            pos &= 31;
            len &= 31;
        }
        if (pos >= 32 || len == 0)
            return u32{0};
        const u32 ones = len >= 32 ? kAll : (1U << len) - 1;
        return ones << pos;
    });
    return in + 1;
}
const Instr* szext(Warp& w, const Instr* in) { // aux bit 0: wrap, bit 1: signed
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32 aux = in->aux;
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        const u32 n = (aux & 1) != 0 ? b[l] & 31 : b[l];
        if (n == 0)
            return u32{0};
        if (n >= 32)
            return a[l];
        return (aux & 2) != 0 ? static_cast<u32>(static_cast<s32>(a[l] << (32 - n)) >> (32 - n))
                              : a[l] & ((1U << n) - 1);
    });
    return in + 1;
}

SOFTGPU_INLINE u32 permute(u32 a, u32 b, u32 selector) {
    const u64 both = (static_cast<u64>(b) << 32) | a;
    u32 r = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const u32 s = selector >> (4 * i);
        u32 byte = static_cast<u32>(both >> (8 * (s & 7))) & 0xff;
        byte = (s & 8) != 0 ? ((byte & 0x80) != 0 ? 0xffU : 0U) : byte;
        r |= byte << (8 * i);
    }
    return r;
}
// The special modes' selectors, by the low two bits of c.
constexpr u32 kModes[7][4] = {{0, 0, 0, 0},
                              {0x3210, 0x4321, 0x5432, 0x6543},  // f4e
                              {0x5670, 0x6701, 0x7012, 0x0123},  // b4e
                              {0x0000, 0x1111, 0x2222, 0x3333},  // rc8
                              {0x3210, 0x3211, 0x3222, 0x3333},  // ecl
                              {0x0000, 0x1110, 0x2210, 0x3210},  // ecr
                              {0x1010, 0x3232, 0x1010, 0x3232}}; // rc16
const Instr* prmt(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    const u32* modes = in->aux != 0 ? kModes[in->aux] : nullptr;
    each(w, out<u32>(w, in->d),
         [=](unsigned l) { return permute(a[l], b[l], modes != nullptr ? modes[c[l] & 3] : c[l]); });
    return in + 1;
}
template <bool Left, bool Wrap>
const Instr* shf(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a); // low
    const u32* b = row<u32>(w, in->b); // high
    const u32* c = row<u32>(w, in->c);
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        const u32 n = Wrap ? c[l] & 31 : (c[l] < 32 ? c[l] : 32);
        const u64 both = (static_cast<u64>(b[l]) << 32) | a[l];
        return static_cast<u32>(Left ? (both << n) >> 32 : both >> n);
    });
    return in + 1;
}
const Instr* lop3(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    u32 term[8];
    for (unsigned i = 0; i < 8; ++i)
        term[i] = ((in->imm >> i) & 1) != 0 ? kAll : 0;
    each(w, out<u32>(w, in->d), [&](unsigned l) {
        const u32 x = a[l], y = b[l], z = c[l];
        return (term[0] & ~x & ~y & ~z) | (term[1] & ~x & ~y & z) | (term[2] & ~x & y & ~z) |
               (term[3] & ~x & y & z) | (term[4] & x & ~y & ~z) | (term[5] & x & ~y & z) |
               (term[6] & x & y & ~z) | (term[7] & x & y & z);
    });
    return in + 1;
}
const Instr* fns(Warp& w, const Instr* in) {
    const u32* mask = row<u32>(w, in->a);
    const u32* base = row<u32>(w, in->b);
    const s32* offset = row<s32>(w, in->c);
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        const u32 m = mask[l];
        s64 at = base[l] & 31;
        s64 left = offset[l];
        if (left == 0)
            return ((m >> at) & 1) != 0 ? static_cast<u32>(at) : kAll;
        const s64 step = left > 0 ? 1 : -1;
        left = left > 0 ? left : -left;
        for (; at >= 0 && at < 32; at += step)
            if (((m >> at) & 1) != 0 && --left == 0)
                return static_cast<u32>(at);
        return kAll;
    });
    return in + 1;
}

// vabsdiff4, vabsdiff2: imm: bits of a part; aux bit 0: signed, bit 1: sum of the parts plus c
const Instr* vabsdiff(Warp& w, const Instr* in) {
    const u32* a = row<u32>(w, in->a);
    const u32* b = row<u32>(w, in->b);
    const u32* c = row<u32>(w, in->c);
    const u32 part = static_cast<u32>(in->imm), aux = in->aux;
    each(w, out<u32>(w, in->d), [=](unsigned l) {
        u32 sum = c[l], parts = 0;
        for (u32 i = 0; i < 32; i += part) {
            const u32 up = 32 - part;
            const s64 x = (aux & 1) != 0 ? static_cast<s32>((a[l] >> i) << up) >> up
                                         : static_cast<s64>(((a[l] >> i) << up) >> up);
            const s64 y = (aux & 1) != 0 ? static_cast<s32>((b[l] >> i) << up) >> up
                                         : static_cast<s64>(((b[l] >> i) << up) >> up);
            const u32 difference = static_cast<u32>(x > y ? x - y : y - x);
            sum += difference;
            parts |= (difference & (kAll >> up)) << i;
        }
        return (aux & 2) != 0 ? sum : parts;
    });
    return in + 1;
}

u32 mode_of(const Op& op) {
    static constexpr std::string_view names[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    for (u32 i = 1; i < 7; ++i)
        if (op.has(names[i]))
            return i;
    return 0;
}

} // namespace

Handler select_bits(const Op& op, Instr& in) {
    const std::string_view n = op.name;
    const Type t = op.type();
    const unsigned size = type_size(t);
    if (n == "shl")
        return size == 2 ? shl<u16> : size == 4 ? shl<u32> : size == 8 ? shl<u64> : nullptr;
    if (n == "shr") {
        if (is_signed(t))
            return size == 2 ? shr<s16> : size == 4 ? shr<s32> : size == 8 ? shr<s64> : nullptr;
        return size == 2 ? shr<u16> : size == 4 ? shr<u32> : size == 8 ? shr<u64> : nullptr;
    }
    if (n == "popc")
        return size == 8 ? popc<u64> : popc<u32>;
    if (n == "clz")
        return size == 8 ? clz<u64> : clz<u32>;
    if (n == "brev")
        return size == 8 ? brev<u64> : brev<u32>;
    if (n == "bfind") {
        in.aux = op.has("shiftamt") ? 1 : 0;
        return t == Type::u32   ? bfind<u32>
               : t == Type::s32 ? bfind<s32>
               : t == Type::u64 ? bfind<u64>
               : t == Type::s64 ? bfind<s64>
                                : nullptr;
    }
    if (n == "bfe")
        return t == Type::u32   ? bfe<u32>
               : t == Type::s32 ? bfe<s32>
               : t == Type::u64 ? bfe<u64>
               : t == Type::s64 ? bfe<s64>
                                : nullptr;
    if (n == "bfi")
        return size == 8 ? bfi<u64> : bfi<u32>;
    if (n == "bmsk") {
        in.aux = op.has("wrap") ? 1 : 0;
        return bmsk;
    }
    if (n == "szext") {
        in.aux = (op.has("wrap") ? 1U : 0U) | (is_signed(t) ? 2U : 0U);
        return szext;
    }
    if (n == "prmt") {
        in.aux = mode_of(op);
        return prmt;
    }
    if (n == "shf") {
        const bool wrap = op.has("wrap");
        return op.has("l") ? (wrap ? shf<true, true> : shf<true, false>)
                           : (wrap ? shf<false, true> : shf<false, false>);
    }
    if (n == "lop3")
        return lop3;
    if (n == "fns")
        return fns;
    if ((n == "vabsdiff4" || n == "vabsdiff2") && !op.has("sat") && op.type(1) == op.type(2)) {
        in.imm = n == "vabsdiff4" ? 8 : 16;
        in.aux = (is_signed(op.type(1)) ? 1U : 0U) | (op.has("add") ? 2U : 0U);
        return vabsdiff;
    }
    return nullptr;
}

} // namespace softgpu::ptx::SOFTGPU_ISA
