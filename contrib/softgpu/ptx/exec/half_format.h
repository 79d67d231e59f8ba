// SPDX-License-Identifier: BSD-3-Clause
// Conversions of the two 16-bit formats. All of them want MXCSR at its default.
#pragma once

#include "contrib/softgpu/ptx/exec/common.h"

namespace softgpu::ptx::SOFTGPU_ISA {

enum class Rounding : u8 { nearest, zero, down, up };

// Rounds to a format with `mantissa` stored bits and least normal exponent 1 - bias; 16 bits in all. NaN:
// 0x7fff.
template <unsigned Mantissa, int Bias>
inline u16 round_to_format(double value, Rounding rounding) {
    const u64 b = bits<u64>(value);
    const u16 sign = static_cast<u16>((b >> 63) << 15);
    const bool negative = sign != 0;
    const u64 magnitude = b & ~(u64{1} << 63);
    constexpr u64 infinity = u64{0x7ff} << 52;
    constexpr u32 infinity16 = 0x7fff >> Mantissa << Mantissa;
    if (magnitude > infinity)
        return 0x7fff;
    if (magnitude == 0 || magnitude == infinity)
        return static_cast<u16>(sign | (magnitude == 0 ? 0U : infinity16));
    int exponent = static_cast<int>(magnitude >> 52) - 1023;
    u64 mantissa = (magnitude & ((u64{1} << 52) - 1)) | (magnitude >> 52 != 0 ? u64{1} << 52 : 0);
    if (exponent < 1 - Bias) { // subnormal: fewer bits
        const int shift = 1 - Bias - exponent < 60 ? 1 - Bias - exponent : 60;
        const u64 lost = mantissa & ((u64{1} << shift) - 1);
        mantissa = (mantissa >> shift) | (lost != 0 ? 1 : 0); // sticky
        exponent = 1 - Bias;
    }
    constexpr unsigned drop = 52 - Mantissa;
    u64 kept = mantissa >> drop;
    const u64 rest = mantissa & ((u64{1} << drop) - 1);
    constexpr u64 half = u64{1} << (drop - 1);
    bool up = false;
    switch (rounding) {
    case Rounding::nearest:
        up = rest > half || (rest == half && (kept & 1) != 0);
        break;
    case Rounding::zero:
        break;
    case Rounding::down:
        up = negative && rest != 0;
        break;
    case Rounding::up:
        up = !negative && rest != 0;
        break;
    }
    kept += up ? 1 : 0;
    const u64 result = (static_cast<u64>(exponent - (1 - Bias)) << Mantissa) + kept;
    if (result >= infinity16) {
        const bool to_infinity = rounding == Rounding::nearest || (rounding == Rounding::down && negative) ||
                                 (rounding == Rounding::up && !negative);
        return static_cast<u16>(sign | (to_infinity ? infinity16 : infinity16 - 1));
    }
    return static_cast<u16>(sign | result);
}

// exact = sum + error, rounded to odd: a later rounding to fewer bits is then that of the exact value.
SOFTGPU_INLINE double to_odd(double sum, double error) {
    const u64 b = bits<u64>(sum);
    if (error == 0 || (b & 0x7ff0000000000000) == 0x7ff0000000000000 || error != error)
        return sum;
    const bool smaller = (error < 0) != ((b >> 63) != 0);
    return bits<double>((smaller ? b - 1 : b) | 1);
}
SOFTGPU_INLINE double add_to_odd(double a, double b) {
    const double sum = a + b;
    const double t = sum - a;
    return to_odd(sum, (a - (sum - t)) + (b - t));
}

struct Half {
    static SOFTGPU_INLINE float to(u16 h) {
        const u32 m = (h & 0x7fffU) << 13;
        const float scaled = bits<float>(m) * bits<float>(0x77800000U); // 2^112; subnormals come out right
        const u32 special = m >= (0x7c00U << 13) ? bits<u32>(scaled) | 0x7f800000U : bits<u32>(scaled);
        return bits<float>(special | ((h & 0x8000U) << 16));
    }
    static SOFTGPU_INLINE u16 from(float value) {
        const u32 b = bits<u32>(value);
        const u32 sign = b & 0x80000000U, m = b ^ sign;
        const u32 small = bits<u32>(bits<float>(m) + 0.5F) - 0x3f000000U;
        const u32 normal = (m + 0xc8000fffU + ((m >> 13) & 1)) >> 13;
        const u32 large = m > 0x7f800000U ? 0x7fffU : 0x7c00U;
        const u32 r = m >= 0x47800000U ? large : m < 0x38800000U ? small : normal;
        return static_cast<u16>(r | (m > 0x7f800000U ? 0U : sign >> 16));
    }
    static u16 round(double value, Rounding r) { return round_to_format<10, 15>(value, r); }
    static constexpr u16 one = 0x3c00, infinity = 0x7c00;
};
struct Bfloat {
    static SOFTGPU_INLINE float to(u16 h) { return bits<float>(static_cast<u32>(h) << 16); }
    static SOFTGPU_INLINE u16 from(float value) {
        const u32 b = bits<u32>(value);
        const u32 r = (b + 0x7fffU + ((b >> 16) & 1)) >> 16;
        return static_cast<u16>((b & 0x7fffffffU) > 0x7f800000U ? 0x7fffU : r);
    }
    static u16 round(double value, Rounding r) { return round_to_format<7, 127>(value, r); }
    static constexpr u16 one = 0x3f80, infinity = 0x7f80;
};

} // namespace softgpu::ptx::SOFTGPU_ISA
