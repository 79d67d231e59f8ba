// SPDX-License-Identifier: BSD-3-Clause
// 16-bit formats against their definition: every value as a double, and rounding by search among all of them.
#define BOOST_TEST_DYN_LINK
#include "tests/ptx/operations.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>

using namespace softgpu::ptx::test;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

struct Format {
    int mantissa, bias;
    [[nodiscard]] u16 infinity() const { return static_cast<u16>(0x7fff >> mantissa << mantissa); }
    [[nodiscard]] double value(u16 h) const {
        const int e = (h & 0x7fff) >> mantissa, m = h & ((1 << mantissa) - 1);
        const double sign = (h & 0x8000) != 0 ? -1 : 1;
        if ((h & 0x7fff) > infinity())
            return NAN;
        if ((h & 0x7fff) == infinity())
            return sign * INFINITY;
        return sign * (e == 0 ? std::ldexp(m, 1 - bias - mantissa)
                              : std::ldexp(m + (1 << mantissa), e - bias - mantissa));
    }
    // The nearest, ties to even, by bisection over the positive values, which are in the order of their bits.
    // Values of long double hold sums and products of two exactly.
    [[nodiscard]] u16 nearest(long double v) const {
        if (std::isnan(v))
            return 0x7fff;
        const u16 sign = std::signbit(v) ? 0x8000 : 0;
        v = std::fabs(v);
        const long double limit = static_cast<long double>(value(static_cast<u16>(infinity() - 1))) +
                                  std::ldexp(0.5L, (infinity() >> mantissa) - 1 - bias - mantissa);
        if (v >= limit)
            return static_cast<u16>(sign | infinity());
        u16 low = 0, high = static_cast<u16>(infinity() - 1);
        while (low < high) { // the largest that is <= v
            const u16 middle = static_cast<u16>((low + high + 1) / 2);
            if (value(middle) <= v)
                low = middle;
            else
                high = static_cast<u16>(middle - 1);
        }
        const long double below = v - static_cast<long double>(value(low));
        const long double above =
            static_cast<long double>(low + 1 == infinity() ? 2 * (limit - value(low)) + value(low)
                                                           : value(static_cast<u16>(low + 1))) -
            v;
        const bool up = below > above || (below == above && (low & 1) != 0);
        return static_cast<u16>(sign | (low + (up ? 1 : 0)));
    }
};
const Format kHalf{10, 15}, kBfloat{7, 127};

std::vector<u64> sample(const Format& f) {
    std::vector<u64> v{0, 0x8000, f.infinity(),         u64(f.infinity()) | 0x8000, u64(f.infinity()) + 1,
                       1, 0x8001, u64(1) << f.mantissa, (u64(1) << f.mantissa) - 1, u64(f.infinity()) - 1};
    for (u64 x = 3; x < 0x10000; x += 2477)
        v.push_back(x);
    return v;
}
void check(const Format& f, const std::string& type, const char* text, const std::vector<Operands>& in,
           long double (*g)(long double, long double, long double)) {
    const std::vector<u64> got = run({text, type, type}, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const auto v = [&](int k) {
            return static_cast<long double>(f.value(static_cast<u16>(in[i][static_cast<std::size_t>(k)])));
        };
        const u16 want = f.nearest(g(v(0), v(1), v(2)));
        const u16 have = static_cast<u16>(got[i]);
        BOOST_CHECK_MESSAGE(have == want, text << " of " << std::hex << in[i][0] << ", " << in[i][1] << ", "
                                               << in[i][2] << " gave " << have << " and not " << want);
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(halves)

BOOST_AUTO_TEST_CASE(every_half_to_float_and_back) {
    std::vector<Operands> all;
    for (u64 h = 0; h < 0x10000; ++h)
        all.push_back({h, 0, 0});
    const auto up = run({"cvt.f32.f16 d, a;", "f32", "b16"}, all);
    const auto up_b = run({"cvt.f32.bf16 d, a;", "f32", "b16"}, all);
    std::vector<Operands> floats;
    std::size_t wrong = 0;
    for (std::size_t h = 0; h < all.size(); ++h) {
        const double want = kHalf.value(static_cast<u16>(h)), want_b = kBfloat.value(static_cast<u16>(h));
        wrong +=
            !(std::isnan(want) ? std::isnan(as_f32(up[h]))
                               : as_f32(up[h]) == want && std::signbit(as_f32(up[h])) == ((h & 0x8000) != 0));
        wrong += !(std::isnan(want_b) ? std::isnan(as_f32(up_b[h])) : as_f32(up_b[h]) == want_b);
        floats.push_back({up[h], 0, 0});
    }
    BOOST_TEST(wrong == 0U);
    const auto down = run({"cvt.rn.f16.f32 d, a;", "b16", "f32"}, floats);
    for (std::size_t h = 0; h < all.size(); ++h)
        if (std::isnan(kHalf.value(static_cast<u16>(h))))
            wrong += static_cast<u16>(down[h]) != 0x7fff;
        else
            wrong += static_cast<u16>(down[h]) != h;
    BOOST_TEST(wrong == 0U);
}

BOOST_AUTO_TEST_CASE(rounding_from_wider_types) {
    std::vector<Operands> in;
    for (u64 b = 0x12345; b < 0x100000000; b += 0x1357913)
        in.push_back({b, 0, 0});
    for (const float f : {65519.9F, 65520.0F, 65504.0F, 5.9604645e-8F, 2.9802322e-8F, 2.9802326e-8F,
                          1.00048828125F, 1.0014648F, 3.4e38F, 3.3895e38F})
        in.push_back({f32(f), 0, 0});
    const auto half = run({"cvt.rn.f16.f32 d, a;", "b16", "f32"}, in),
               bf = run({"cvt.rn.bf16.f32 d, a;", "b16", "f32"}, in);
    const auto down = run({"cvt.rz.f16.f32 d, a;", "b16", "f32"}, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const float v = as_f32(in[i][0]);
        BOOST_TEST(static_cast<u16>(half[i]) == kHalf.nearest(v));
        BOOST_TEST(static_cast<u16>(bf[i]) == kBfloat.nearest(v));
        if (!std::isnan(v) && !std::isinf(v)) { // toward zero: not above, and the next one is
            const u16 h = static_cast<u16>(down[i]);
            BOOST_TEST(std::fabs(kHalf.value(h)) <= std::fabs(v));
            BOOST_TEST(
                ((h & 0x7fff) == 0x7bff || std::fabs(kHalf.value(static_cast<u16>(h + 1))) > std::fabs(v)));
        }
    }
    // A double that lies a little over a tie of the half, by less than a float can show.
    BOOST_TEST(static_cast<u16>(run({"cvt.rn.f16.f64 d, a;", "b16", "f64"},
                                    {{f64(1.00048828125 + 1e-12), 0, 0}})[0]) == 0x3c01);
    BOOST_TEST(static_cast<u16>(run({"cvt.rn.f16.s32 d, a;", "b16", "u32"}, {{2049, 0, 0}})[0]) == 0x6800);
    BOOST_TEST(static_cast<u32>(run({"cvt.rn.f16x2.f32 d, a, b;", "b32", "f32"},
                                    {{f32(1.0F), f32(-2.0F), 0}})[0]) == 0x3c00c000U);
    BOOST_TEST(static_cast<u32>(run({"cvt.rzi.s32.f16 d, a;", "u32", "b16"}, {{0xc580, 0, 0}})[0]) ==
               0xfffffffbU); // -5.5
    BOOST_TEST(static_cast<u16>(run({"cvt.rni.f16.f16 d, a;", "b16", "b16"}, {{0x4100, 0, 0}})[0]) ==
               0x4000); // 2.5
}

BOOST_AUTO_TEST_CASE(arithmetic) {
    for (const auto& [format, name] : {std::pair{kHalf, "f16"}, std::pair{kBfloat, "bf16"}}) {
        const std::string n = name;
        const auto in = cross(sample(format), sample(format));
        const auto in3 = cross(sample(format), sample(format), {0, 0x3c00, 0x8001, 0x3f80, 0x0400});
        check(format, "b16", ("add.rn." + n + " d, a, b;").c_str(), in,
              [](long double a, long double b, long double) { return a + b; });
        check(format, "b16", ("sub.rn." + n + " d, a, b;").c_str(), in,
              [](long double a, long double b, long double) { return a - b; });
        check(format, "b16", ("mul.rn." + n + " d, a, b;").c_str(), in,
              [](long double a, long double b, long double) { return a * b; });
        if (n == "f16") // a long double holds every product plus sum of these
            check(format, "b16", "fma.rn.f16 d, a, b, c;", in3,
                  [](long double a, long double b, long double c) { return a * b + c; });
    }
    // bf16: the product 1.00390625 lies on a tie, the addend decides from far below.
    BOOST_TEST(static_cast<u16>(run({"fma.rn.bf16 d, a, b, c;", "b16", "b16"}, {
                                                                                   {
                                                                                       0x3f80,
                                                                                       0x3f80,
                                                                                       0,
                                                                                   },
                                                                               })[0]) == 0x3f80);
    const auto tie = run({"fma.rn.bf16 d, a, b, c;", "b16", "b16"},
                         {{0x3f88, 0x3f88, 0x0000}, {0x3f88, 0x3f88, 0x1000}, {0x3f88, 0x3f88, 0x9000}});
    // 1.0625^2 = 1.12890625 = 0x3f90 + half a unit: to even, up, down
    BOOST_TEST(static_cast<u16>(tie[0]) == 0x3f90);
    BOOST_TEST(static_cast<u16>(tie[1]) == 0x3f91);
    BOOST_TEST(static_cast<u16>(tie[2]) == 0x3f90);
}

BOOST_AUTO_TEST_CASE(pairs_comparisons_extremes) {
    // (1, -2) + (2, 0.5)
    BOOST_TEST(static_cast<u32>(run({"add.f16x2 d, a, b;", "b32", "b32"},
                                    {{0xc0003c00, 0x38004000, 0}})[0]) == 0xbe004200U);
    BOOST_TEST(static_cast<u32>(run({"neg.f16x2 d, a;", "b32", "b32"}, {{0xc0003c00, 0, 0}})[0]) ==
               0x4000bc00U);
    BOOST_TEST(static_cast<u32>(run({"max.f16x2 d, a, b;", "b32", "b32"},
                                    {{0xc0003c00, 0x38004000, 0}})[0]) == 0x38004000U);
    BOOST_TEST(static_cast<u32>(run({"set.gt.f16x2.f16x2 d, a, b;", "b32", "b32"},
                                    {{0xc0003c00, 0x38000000, 0}})[0]) == 0x00003c00U);
    BOOST_TEST(static_cast<u32>(
                   run({"setp.lt.f16x2 p|q, a, b; selp.u32 t, 1, 0, p; selp.u32 u, 2, 0, q; or.b32 d, t, u;",
                        "b32", "b32"},
                       {{0xc0003c00, 0x38000000, 0}})[0]) == 2U);
    BOOST_TEST(static_cast<u32>(run({"setp.geu.f16 p, a, b; selp.u32 d, 1, 0, p;", "b32", "b16"},
                                    {{0x7e00, 0x3c00, 0}})[0]) == 1U);
    BOOST_TEST(static_cast<u16>(run({"min.f16 d, a, b;", "b16", "b16"}, {{0x7e00, 0x3c00, 0}})[0]) == 0x3c00);
    BOOST_TEST(static_cast<u16>(run({"min.NaN.f16 d, a, b;", "b16", "b16"}, {{0x7e00, 0x3c00, 0}})[0]) ==
               0x7fff);
    BOOST_TEST(
        static_cast<u16>(run({"fma.rn.relu.f16 d, a, b, c;", "b16", "b16"}, {{0xbc00, 0x3c00, 0}})[0]) == 0);
    BOOST_TEST(static_cast<u16>(run({"add.sat.f16 d, a, b;", "b16", "b16"}, {{0x3c00, 0x3c00, 0}})[0]) ==
               0x3c00);
}

BOOST_AUTO_TEST_SUITE_END()
