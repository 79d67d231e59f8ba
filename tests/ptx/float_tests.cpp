// SPDX-License-Identifier: BSD-3-Clause
// f32 and f64 against the processor's own IEEE arithmetic in each rounding mode, evaluated one by one here.
#define BOOST_TEST_DYN_LINK
#include "tests/ptx/operations.h"

#include <boost/test/unit_test.hpp>
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

using namespace softgpu::ptx::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const std::vector<u64> kF32{f32(0.0F),
                            f32(-0.0F),
                            f32(1.0F),
                            f32(-1.0F),
                            f32(1.5F),
                            f32(0.1F),
                            f32(3.0F),
                            f32(-7.25F),
                            f32(1e-40F),
                            f32(-1e-45F),
                            f32(1.17549435e-38F),
                            f32(3.4e38F),
                            f32(-3.4e38F),
                            f32(16777217.F),
                            f32(2.5F),
                            f32(-2.5F),
                            f32(kInf),
                            f32(-kInf),
                            0x7fc00000,
                            0x7f800001,
                            f32(0.333333F),
                            f32(1e-20F),
                            f32(2147483520.F),
                            f32(4294967040.F)};
const std::vector<u64> kF64{f64(0.0),          f64(-0.0),          f64(1.0),      f64(-1.0),
                            f64(0.1),          f64(3.0),           f64(-7.25),    f64(5e-324),
                            f64(2.3e-308),     f64(1.7e308),       f64(-1.7e308), f64(1e-170),
                            f64(INFINITY),     f64(-INFINITY),     f64(2.5),      f64(9007199254740993.0),
                            f64(4294967295.5), f64(-2147483648.5), f64(1e19)};

struct Mode {
    const char* name;
    int mode;
};
const Mode kModes[] = {
    {".rn", FE_TONEAREST}, {".rz", FE_TOWARDZERO}, {".rm", FE_DOWNWARD}, {".rp", FE_UPWARD}};

bool same(u64 got, u64 want, bool single) {
    if (single)
        return std::isnan(as_f32(want)) ? u32(got) == 0x7fffffff : u32(got) == u32(want);
    return std::isnan(as_f64(want)) ? std::isnan(as_f64(got)) : got == want;
}
void check(const Operation& op, const std::vector<Operands>& in, bool single,
           const std::function<u64(const Operands&)>& want) {
    const std::vector<u64> got = run(op, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
        const u64 w = want(in[i]);
        BOOST_CHECK_MESSAGE(same(got[i], w, single), op.text << " of " << std::hex << in[i][0] << ", "
                                                             << in[i][1] << ", " << in[i][2] << " gave "
                                                             << got[i] << " and not " << w);
    }
}
template <class F>
u64 rounded(int mode, F f) {
    std::fesetround(mode);
    const u64 r = f();
    std::fesetround(FE_TONEAREST);
    return r;
}
// Operations the compiler must not move out of the rounding mode.
float hold(float v) {
    volatile float x = v;
    return x;
}
double hold(double v) {
    volatile double x = v;
    return x;
}
float flush(float v) {
    return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0F, v) : v;
}

} // namespace

BOOST_AUTO_TEST_SUITE(floats)

BOOST_AUTO_TEST_CASE(arithmetic_in_all_rounding_modes) {
    for (const Mode& m : kModes) {
        const std::string s = m.name;
        check({"add" + s + ".f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true, [&](auto& o) {
            return rounded(m.mode, [&] { return f32(hold(hold(as_f32(o[0])) + hold(as_f32(o[1])))); });
        });
        check({"mul" + s + ".f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true, [&](auto& o) {
            return rounded(m.mode, [&] { return f32(hold(hold(as_f32(o[0])) * hold(as_f32(o[1])))); });
        });
        check({"div" + s + ".f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true, [&](auto& o) {
            return rounded(m.mode, [&] { return f32(hold(hold(as_f32(o[0])) / hold(as_f32(o[1])))); });
        });
        check({"fma" + s + ".f32 d, a, b, c;", "f32", "f32"},
              cross(kF32, kF32, {f32(1.0F), f32(-1e-30F), f32(0.1F), f32(-0.0F), f32(1e38F)}), true,
              [&](auto& o) {
                  return rounded(m.mode, [&] {
                      return f32(hold(std::fma(hold(as_f32(o[0])), hold(as_f32(o[1])), hold(as_f32(o[2])))));
                  });
              });
        check({"sqrt" + s + ".f32 d, a;", "f32", "f32"}, cross(kF32, {0}), true, [&](auto& o) {
            return rounded(m.mode, [&] { return f32(hold(std::sqrt(hold(as_f32(o[0]))))); });
        });
        check({"rcp" + s + ".f32 d, a;", "f32", "f32"}, cross(kF32, {0}), true, [&](auto& o) {
            return rounded(m.mode, [&] { return f32(hold(hold(1.0F) / hold(as_f32(o[0])))); });
        });
        check({"add" + s + ".f64 d, a, b;", "f64", "f64"}, cross(kF64, kF64), false, [&](auto& o) {
            return rounded(m.mode, [&] { return f64(hold(hold(as_f64(o[0])) + hold(as_f64(o[1])))); });
        });
        check({"fma" + s + ".f64 d, a, b, c;", "f64", "f64"}, cross(kF64, kF64, {f64(1.0), f64(-1e-30)}),
              false, [&](auto& o) {
                  return rounded(m.mode, [&] {
                      return f64(hold(std::fma(hold(as_f64(o[0])), hold(as_f64(o[1])), hold(as_f64(o[2])))));
                  });
              });
        check({"div" + s + ".f64 d, a, b;", "f64", "f64"}, cross(kF64, kF64), false, [&](auto& o) {
            return rounded(m.mode, [&] { return f64(hold(hold(as_f64(o[0])) / hold(as_f64(o[1])))); });
        });
        check({"cvt" + s + ".f32.f64 d, a;", "f32", "f64"}, cross(kF64, {0}), true, [&](auto& o) {
            return rounded(m.mode, [&] { return f32(hold(static_cast<float>(hold(as_f64(o[0]))))); });
        });
        check({"cvt" + s + ".f32.s32 d, a;", "f32", "u32"},
              cross({0, 1, 0xffffffff, 0x7fffffff, 0x80000001, 16777217}, {0}), true, [&](auto& o) {
                  return rounded(m.mode, [&] { return f32(hold(static_cast<float>(s32(u32(o[0]))))); });
              });
        check({"cvt" + s + ".f64.s64 d, a;", "f64", "u64"},
              cross({0, 1, ~u64{0}, 0x7fffffffffffffff, 9007199254740993}, {0}), false, [&](auto& o) {
                  return rounded(m.mode, [&] { return f64(hold(static_cast<double>(s64(o[0])))); });
              });
    }
}

BOOST_AUTO_TEST_CASE(flush_and_saturate) {
    check({"add.ftz.f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true,
          [](auto& o) { return f32(flush(flush(as_f32(o[0])) + flush(as_f32(o[1])))); });
    check({"mul.ftz.f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true,
          [](auto& o) { return f32(flush(flush(as_f32(o[0])) * flush(as_f32(o[1])))); });
    check({"add.sat.f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true, [](auto& o) {
        const float r = as_f32(o[0]) + as_f32(o[1]);
        return f32(std::isnan(r) || r <= 0 ? 0.0F : r > 1 ? 1.0F : r);
    });
    // Flushing must not outlive its instruction.
    check({"add.ftz.f32 d, a, b; add.f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true,
          [](auto& o) { return f32(as_f32(o[0]) + as_f32(o[1])); });
    check({"setp.eq.ftz.f32 p, a, 0f00000000; selp.f32 d, 0f3F800000, 0f00000000, p;", "f32", "f32"},
          cross({f32(1e-40F), f32(1.0F)}, {0}), true,
          [](auto& o) { return f32(as_f32(o[0]) < 1 ? 1.0F : 0.0F); });
}

BOOST_AUTO_TEST_CASE(minimum_and_maximum) {
    const auto pick = [](float a, float b, bool max) {
        if (std::isnan(a) || std::isnan(b))
            return std::isnan(a) ? b : a;
        if (a == b)
            return std::signbit(a) == max ? b : a;
        return (a > b) == max ? a : b;
    };
    check({"min.f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true,
          [&](auto& o) { return f32(pick(as_f32(o[0]), as_f32(o[1]), false)); });
    check({"max.f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true,
          [&](auto& o) { return f32(pick(as_f32(o[0]), as_f32(o[1]), true)); });
    check({"max.NaN.f32 d, a, b;", "f32", "f32"}, cross(kF32, kF32), true, [&](auto& o) {
        const float a = as_f32(o[0]), b = as_f32(o[1]);
        return std::isnan(a) || std::isnan(b) ? 0x7fffffff : f32(pick(a, b, true));
    });
    check({"min.f64 d, a, b;", "f64", "f64"}, cross(kF64, kF64), false, [](auto& o) {
        const double a = as_f64(o[0]), b = as_f64(o[1]);
        return f64(a == b ? (std::signbit(a) ? a : b) : a < b ? a : b);
    });
    check({"neg.f32 d, a;", "f32", "f32"}, cross({f32(1.0F), f32(-0.0F)}, {0}), true,
          [](auto& o) { return o[0] ^ 0x80000000; });
    check({"abs.ftz.f32 d, a;", "f32", "f32"}, cross({f32(-2.0F), f32(-1e-40F)}, {0}), true,
          [](auto& o) { return f32(flush(std::fabs(as_f32(o[0])))); });
    check({"copysign.f32 d, a, b;", "f32", "f32"}, cross(kF32, {f32(2.0F)}), true,
          [](auto& o) { return f32(std::copysign(2.0F, as_f32(o[0]))); });
}

BOOST_AUTO_TEST_CASE(comparisons) {
    struct Relation {
        const char* name;
        bool less, equal, greater, unordered;
    };
    const Relation all[] = {{"eq", 0, 1, 0, 0},  {"ne", 1, 0, 1, 0},  {"lt", 1, 0, 0, 0},
                            {"le", 1, 1, 0, 0},  {"gt", 0, 0, 1, 0},  {"ge", 0, 1, 1, 0},
                            {"equ", 0, 1, 0, 1}, {"neu", 1, 0, 1, 1}, {"ltu", 1, 0, 0, 1},
                            {"leu", 1, 1, 0, 1}, {"gtu", 0, 0, 1, 1}, {"geu", 0, 1, 1, 1},
                            {"num", 1, 1, 1, 0}, {"nan", 0, 0, 0, 1}};
    for (const Relation& r : all) {
        check({std::string("setp.") + r.name + ".f32 p, a, b; selp.f32 d, 0f3F800000, 0f00000000, p;", "f32",
               "f32"},
              cross(kF32, kF32), true, [&](auto& o) {
                  const float a = as_f32(o[0]), b = as_f32(o[1]);
                  return f32((a < b    ? r.less
                              : a == b ? r.equal
                              : a > b  ? r.greater
                                       : r.unordered)
                                 ? 1.0F
                                 : 0.0F);
              });
        check(
            {std::string("setp.") + r.name +
                 ".f64 p, a, b; selp.f64 d, 0d3FF0000000000000, 0d0000000000000000, p;",
             "f64", "f64"},
            cross(kF64, {f64(1.0), f64(NAN)}), false, [&](auto& o) {
                const double a = as_f64(o[0]), b = as_f64(o[1]);
                return f64((a < b ? r.less : a == b ? r.equal : a > b ? r.greater : r.unordered) ? 1.0 : 0.0);
            });
    }
    check({"testp.subnormal.f32 p, a; selp.f32 d, 0f3F800000, 0f00000000, p;", "f32", "f32"},
          cross(kF32, {0}), true,
          [](auto& o) { return f32(std::fpclassify(as_f32(o[0])) == FP_SUBNORMAL ? 1.0F : 0.0F); });
    check({"testp.finite.f32 p, a; selp.f32 d, 0f3F800000, 0f00000000, p;", "f32", "f32"}, cross(kF32, {0}),
          true, [](auto& o) { return f32(std::isfinite(as_f32(o[0])) ? 1.0F : 0.0F); });
}

BOOST_AUTO_TEST_CASE(to_integers) {
    struct Way {
        const char* name;
        double (*f)(double);
    };
    const Way ways[] = {{"rni", [](double v) { return std::nearbyint(v); }},
                        {"rzi", [](double v) { return std::trunc(v); }},
                        {"rmi", [](double v) { return std::floor(v); }},
                        {"rpi", [](double v) { return std::ceil(v); }}};
    const auto clamp = [](double v, double low, double high, u64 at_high) {
        return v >= high ? at_high : v <= low ? u64(s64(low)) : u64(s64(v));
    };
    for (const Way& way : ways) {
        const std::string n = way.name;
        check({"{ .reg .b32 e; cvt." + n + ".s32.f32 e, a; mov.b32 d, e; }", "f32", "f32"}, cross(kF32, {0}),
              false, [&](auto& o) {
                  return std::isnan(as_f32(o[0]))
                             ? 0
                             : u64(u32(clamp(way.f(as_f32(o[0])), -2147483648.0, 2147483648.0, 0x7fffffff)));
              });
        check({"{ .reg .b32 e; cvt." + n + ".u32.f32 e, a; mov.b32 d, e; }", "f32", "f32"}, cross(kF32, {0}),
              false, [&](auto& o) {
                  return std::isnan(as_f32(o[0]))
                             ? 0
                             : u64(u32(clamp(way.f(as_f32(o[0])), 0, 4294967296.0, 0xffffffff)));
              });
        check({"{ .reg .b64 e; cvt." + n + ".s64.f64 e, a; mov.b64 d, e; }", "f64", "f64"}, cross(kF64, {0}),
              false, [&](auto& o) {
                  return clamp(way.f(as_f64(o[0])), -9223372036854775808.0, 9223372036854775808.0,
                               0x7fffffffffffffff);
              });
        check({"cvt." + n + ".f32.f32 d, a;", "f32", "f32"}, cross(kF32, {0}), true,
              [&](auto& o) { return f32(float(way.f(as_f32(o[0])))); });
    }
    check({"cvt.rzi.u64.f64 d, a;", "u64", "f64"},
          {{f64(1e19), 0, 0}, {f64(-1.0), 0, 0}, {f64(1e20), 0, 0}, {f64(NAN), 0, 0}}, false, [](auto& o) {
              const double v = as_f64(o[0]);
              return std::isnan(v) ? u64{1} << 63
                     : v < 0       ? 0
                     : v > 1.9e19  ? ~u64{0}
                                   : u64{10000000000000000000U};
          });
    check({"cvt.rzi.u8.f32 t, a; cvt.u64.u32 d, t;", "u64", "f32"},
          {{f32(300.F), 0, 0}, {f32(-5.F), 0, 0}, {f32(77.9F), 0, 0}}, false, [](auto& o) {
              return as_f32(o[0]) > 255 ? 255 : as_f32(o[0]) < 0 ? 0 : 77;
          });
}

BOOST_AUTO_TEST_CASE(integer_conversions) {
    const std::vector<u64> v{
        0,      1,      0x7f,       0x80,       0xff,       0x100,      0x7fff,
        0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0xffffff80, 0x8000000000000000,
        ~u64{0}};
    const auto in = cross(v, {0});
    check({"cvt.s64.s32 d, a;", "u64", "u32"}, in, false, [](auto& o) { return u64(s64(s32(u32(o[0])))); });
    check({"cvt.u64.u32 d, a;", "u64", "u32"}, in, false, [](auto& o) { return u64(u32(o[0])); });
    check({"cvt.s64.s8 d, a;", "u64", "u32"}, in, false, [](auto& o) { return u64(s64(std::int8_t(o[0]))); });
    check({"cvt.u64.u16 d, a;", "u64", "u64"}, in, false, [](auto& o) { return u64(std::uint16_t(o[0])); });
    check({"cvt.u32.u64 t, a; cvt.u64.u32 d, t;", "u64", "u64"}, in, false,
          [](auto& o) { return u64(u32(o[0])); });
    check({"{ .reg .u16 h; cvt.u16.u32 h, a; cvt.s64.s16 d, h; }", "u64", "u32"}, in, false,
          [](auto& o) { return u64(s64(std::int16_t(o[0]))); });
    check({"cvt.sat.s8.s32 t, a; cvt.s64.s32 d, t;", "u64", "u32"}, in, false, [](auto& o) {
        const s32 x = s32(u32(o[0]));
        return u64(s64(x > 127 ? 127 : x < -128 ? -128 : x));
    });
    check({"cvt.sat.u16.s64 t, a; cvt.u64.u32 d, t;", "u64", "u64"}, in, false,
          [](auto& o) { return s64(o[0]) < 0 ? 0 : std::min<u64>(o[0], 65535); });
}

BOOST_AUTO_TEST_CASE(approximations) {
    const std::vector<Operands> in =
        cross({f32(0.5F), f32(1.0F), f32(2.75F), f32(10.0F), f32(0.01F)}, {f32(3.0F)});
    struct Function {
        const char* text;
        double (*f)(double);
    };
    const Function all[] = {{"ex2.approx.f32 d, a;", [](double x) { return std::exp2(x); }},
                            {"lg2.approx.f32 d, a;", [](double x) { return std::log2(x); }},
                            {"sin.approx.f32 d, a;", [](double x) { return std::sin(x); }},
                            {"cos.approx.f32 d, a;", [](double x) { return std::cos(x); }},
                            {"tanh.approx.f32 d, a;", [](double x) { return std::tanh(x); }},
                            {"rcp.approx.f32 d, a;", [](double x) { return 1 / x; }},
                            {"rsqrt.approx.f32 d, a;", [](double x) { return 1 / std::sqrt(x); }},
                            {"sqrt.approx.f32 d, a;", [](double x) { return std::sqrt(x); }},
                            {"div.full.f32 d, a, b;", [](double x) { return x / 3; }}};
    for (const Function& f : all) {
        const std::vector<u64> got = run({f.text, "f32", "f32"}, in);
        for (std::size_t i = 0; i < in.size(); ++i)
            BOOST_TEST(as_f32(got[i]) == f.f(as_f32(in[i][0])), boost::test_tools::tolerance(1e-5));
    }
    BOOST_TEST(as_f32(run({"lg2.approx.f32 d, a;", "f32", "f32"}, {{f32(0.0F), 0, 0}})[0]) == -kInf);
    BOOST_TEST(as_f32(run({"rcp.approx.ftz.f32 d, a;", "f32", "f32"}, {{f32(1e-40F), 0, 0}})[0]) == kInf);
    BOOST_TEST(as_f64(run({"rcp.approx.ftz.f64 d, a;", "f64", "f64"}, {{f64(4.0), 0, 0}})[0]) == 0.25);
    BOOST_TEST(as_f64(run({"rsqrt.approx.f64 d, a;", "f64", "f64"}, {{f64(4.0), 0, 0}})[0]) == 0.5);
}

BOOST_AUTO_TEST_SUITE_END()
