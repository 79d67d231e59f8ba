// SPDX-License-Identifier: BSD-3-Clause
// What instruction handlers share. The files of this folder are compiled once for each level of the x86-64
// instruction set, each time in a namespace of its own (SOFTGPU_ISA), and the best one is chosen at run time.
// They keep clear of the standard library's inline functions: the linker could take a copy that was compiled
// for a newer CPU.
#pragma once

#include "contrib/softgpu/ptx/warp.h"

#include <immintrin.h>
#include <limits>
#include <type_traits>

#ifndef SOFTGPU_ISA
#error "SOFTGPU_ISA names the namespace of this instruction set level"
#endif

#ifdef __OPTIMIZE__
#define SOFTGPU_INLINE inline __attribute__((always_inline))
#else // which a compiler told to optimise nothing refuses
#define SOFTGPU_INLINE inline
#endif

namespace softgpu::ptx::SOFTGPU_ISA {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

inline constexpr u32 kAll = 0xffffffff;

template <class T>
struct UnsignedOf {
    using type = std::make_unsigned_t<T>;
};
template <>
struct UnsignedOf<float> {
    using type = u32;
};
template <>
struct UnsignedOf<double> {
    using type = u64;
};
template <class T>
using Unsigned = typename UnsignedOf<T>::type;
// Wide enough that products of 16-bit values do not overflow an int.
template <class T>
using Work = std::conditional_t<sizeof(T) == 8, u64, u32>;

template <class To, class From>
SOFTGPU_INLINE To bits(From v) {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, v);
}

template <class T>
SOFTGPU_INLINE T* out(Warp& w, Ref r) {
    return reinterpret_cast<T*>(w.base[0] + r);
}

template <class T>
SOFTGPU_INLINE const T* row(const Warp& w, Ref r) {
    return reinterpret_cast<const T*>(w.base.data()[r >> kRefShift] + (r & kRefMask));
}

SOFTGPU_INLINE u32 predicate(const Warp& w, Ref r, bool negated) {
    const u32 p = *row<u32>(w, r);
    return negated ? ~p : p;
}

SOFTGPU_INLINE void set_predicate(Warp& w, Ref r, u32 value) {
    if (r == kNoRef)
        return;
    u32* p = out<u32>(w, r);
    *p = (*p & ~w.mask) | (value & w.mask);
}

// d[l] = f(l) for the lanes of the mask. f is evaluated for the others too, so that the loop vectorises. A
// row that is source and destination is the same row: no iteration reads what another one wrote.
template <class D, class F>
SOFTGPU_INLINE void each(Warp& w, D* d, F f) {
    if (w.mask == kAll) {
#pragma GCC ivdep
        for (unsigned l = 0; l < kLanes; ++l)
            d[l] = f(l);
    } else {
        const s32* m = w.lanes.data();
#pragma GCC ivdep
        for (unsigned l = 0; l < kLanes; ++l) {
            // In integers: a conditional store would not be vectorised.
            using U = Unsigned<D>;
            const U keep = static_cast<U>(static_cast<s64>(m[l]));
            d[l] = bits<D>(static_cast<U>((bits<U>(static_cast<D>(f(l))) & keep) | (bits<U>(d[l]) & ~keep)));
        }
    }
}

// A value that set_csr() must come before the use of: what is only in a register is not held back by it.
template <class T>
SOFTGPU_INLINE T pinned(T v) {
    if constexpr (std::is_floating_point_v<T>)
        asm volatile("" : "+x"(v));
    else
        asm volatile("" : "+r"(v));
    return v;
}

template <class F>
SOFTGPU_INLINE u32 mask_of(F f) {
    u32 r = 0;
    for (unsigned l = 0; l < kLanes; ++l)
        r |= static_cast<u32>(f(l)) << l;
    return r;
}

// Sets rounding and flushing for the instruction. Kept between instructions, as they mostly agree.
SOFTGPU_INLINE void set_csr(Warp& w, u32 csr) {
    if (w.csr != csr) {
        w.csr = csr;
        _mm_setcsr(csr);
    }
    asm volatile("" ::: "memory"); // no operand is read, and so nothing computed, before
}

// The handler for an opcode; nullptr: not in this group, or not supported. May set fields of `in`.
Handler select_int(const Op& op, Instr& in);
Handler select_bits(const Op& op, Instr& in);
Handler select_float(const Op& op, Instr& in);
Handler select_half(const Op& op, Instr& in);
Handler select_compare(const Op& op, Instr& in);
Handler select_convert(const Op& op, Instr& in, unsigned d_size, unsigned a_size);
Handler select_memory(const Op& op, Instr& in, unsigned register_size);
Handler select_atomic(const Op& op, Instr& in);
Handler select_warp(const Op& op, Instr& in);
Handler select_move(const Op& op, Instr& in, unsigned element_size, bool pack);

} // namespace softgpu::ptx::SOFTGPU_ISA
