// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#include "tests/ptx/operations.h"

#include <boost/test/unit_test.hpp>
#include <functional>

using namespace softgpu::ptx::test;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

namespace {

const std::vector<u64> k32{0,          1,          2,          3,          7,
                           31,         32,         33,         0x7fffffff, 0x80000000,
                           0x80000001, 0xffffffff, 0xfffffffe, 0x12345678, 0xdeadbeef};
const std::vector<u64> k64{0,
                           1,
                           2,
                           5,
                           63,
                           0x7fffffff,
                           0x80000000,
                           0xffffffff,
                           0x100000000,
                           0x7fffffffffffffff,
                           0x8000000000000000,
                           ~u64{0},
                           0x123456789abcdef0};
const std::vector<u64> k16{0, 1, 2, 15, 16, 0x7fff, 0x8000, 0xffff, 0x1234};

template <class T>
void check(const Operation& op, const std::vector<Operands>& in,
           const std::function<T(const Operands&)>& want) {
    const std::vector<u64> got = run(op, in);
    for (std::size_t i = 0; i < in.size(); ++i) {
        T value{};
        std::memcpy(&value, &got[i], sizeof value);
        BOOST_CHECK_MESSAGE(value == want(in[i]), op.text << " of " << std::hex << in[i][0] << ", "
                                                          << in[i][1] << ", " << in[i][2] << " gave "
                                                          << u64(value) << " and not " << u64(want(in[i])));
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(integers)

BOOST_AUTO_TEST_CASE(add_sub_mul) {
    check<u32>({"add.s32 d, a, b;", "u32", "u32"}, cross(k32, k32), [](auto& o) { return u32(o[0] + o[1]); });
    check<u32>({"sub.u32 d, a, b;", "u32", "u32"}, cross(k32, k32), [](auto& o) { return u32(o[0] - o[1]); });
    check<u64>({"sub.s64 d, a, b;", "u64", "u64"}, cross(k64, k64), [](auto& o) { return o[0] - o[1]; });
    check<u16>({"add.u16 d, a, b;", "u16", "u16"}, cross(k16, k16), [](auto& o) { return u16(o[0] + o[1]); });
    check<u32>({"mul.lo.s32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return u32(o[0] * o[1]); });
    check<u32>({"mul.hi.u32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return u32((o[0] * o[1]) >> 32); });
    check<u32>({"mul.hi.s32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return u32((s64(s32(o[0])) * s32(o[1])) >> 32); });
    check<u64>({"mul.hi.u64 d, a, b;", "u64", "u64"}, cross(k64, k64),
               [](auto& o) { return u64(((unsigned __int128)o[0] * o[1]) >> 64); });
    check<u64>({"mul.hi.s64 d, a, b;", "u64", "u64"}, cross(k64, k64),
               [](auto& o) { return u64(((__int128)s64(o[0]) * s64(o[1])) >> 64); });
    check<u64>({"mul.wide.s32 d, a, b;", "u64", "u32"}, cross(k32, k32),
               [](auto& o) { return u64(s64(s32(o[0])) * s32(o[1])); });
    check<u64>({"mul.wide.u32 d, a, b;", "u64", "u32"}, cross(k32, k32),
               [](auto& o) { return u64(u32(o[0])) * u32(o[1]); });
    check<u32>({"mul.wide.s16 d, a, b;", "u32", "u16"}, cross(k16, k16),
               [](auto& o) { return u32(s32(s16(o[0])) * s16(o[1])); });
    check<u32>({"mad.lo.s32 d, a, b, c;", "u32", "u32"}, cross(k32, k32, {0, 1, 0xffffffff}),
               [](auto& o) { return u32(o[0] * o[1] + o[2]); });
    check<u64>({"mad.wide.s32 d, a, b, c;", "u64", "u32", "u32", "u64"},
               cross(k32, k32, {0, 0x8000000000000000}),
               [](auto& o) { return u64(s64(s32(o[0])) * s32(o[1])) + o[2]; });
    check<u32>({"add.sat.s32 d, a, b;", "u32", "u32"}, cross(k32, k32), [](auto& o) {
        const s64 r = s64(s32(o[0])) + s32(o[1]);
        return u32(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : r);
    });
    check<u32>({"mul24.lo.s32 d, a, b;", "u32", "u32"}, cross(k32, k32), [](auto& o) {
        const s64 x = (o[0] & 0x800000) != 0 ? s64(o[0] & 0xffffff) - 0x1000000 : s64(o[0] & 0xffffff);
        const s64 y = (o[1] & 0x800000) != 0 ? s64(o[1] & 0xffffff) - 0x1000000 : s64(o[1] & 0xffffff);
        return u32(x * y);
    });
    check<u32>({"sad.s32 d, a, b, c;", "u32", "u32"}, cross(k32, k32, {5}), [](auto& o) {
        const s64 r = s64(s32(o[0])) - s32(o[1]);
        return u32(o[2] + u64(r < 0 ? -r : r));
    });
    check<u32>({"dp4a.s32.u32 d, a, b, c;", "u32", "u32"}, cross(k32, k32, {9}), [](auto& o) {
        u32 r = u32(o[2]);
        for (int i = 0; i < 32; i += 8)
            r += u32(s32(std::int8_t(o[0] >> i)) * s32(u8(o[1] >> i)));
        return r;
    });
}

BOOST_AUTO_TEST_CASE(division) {
    check<u32>({"div.u32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return o[1] == 0 ? ~0U : u32(o[0]) / u32(o[1]); });
    check<u32>({"rem.u32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return o[1] == 0 ? ~0U : u32(o[0]) % u32(o[1]); });
    check<u32>({"div.s32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return o[1] == 0 ? ~0U : u32(s64(s32(o[0])) / s32(o[1])); });
    check<u32>({"rem.s32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return o[1] == 0 ? ~0U : u32(s64(s32(o[0])) % s32(o[1])); });
    check<u64>({"div.s64 d, a, b;", "u64", "u64"}, cross(k64, k64),
               [](auto& o) { return o[1] == 0 ? ~u64{0} : u64((__int128)s64(o[0]) / s64(o[1])); });
    check<u64>({"rem.u64 d, a, b;", "u64", "u64"}, cross(k64, k64),
               [](auto& o) { return o[1] == 0 ? ~u64{0} : o[0] % o[1]; });
    check<u16>({"div.s16 d, a, b;", "u16", "u16"}, cross(k16, k16),
               [](auto& o) { return o[1] == 0 ? u16(0xffff) : u16(s16(o[0]) / s16(o[1])); });
}

BOOST_AUTO_TEST_CASE(min_max_abs_neg) {
    check<u32>({"min.s32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return u32(std::min(s32(o[0]), s32(o[1]))); });
    check<u32>({"max.u32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return std::max(u32(o[0]), u32(o[1])); });
    check<u64>({"max.s64 d, a, b;", "u64", "u64"}, cross(k64, k64),
               [](auto& o) { return u64(std::max(s64(o[0]), s64(o[1]))); });
    check<u32>({"abs.s32 d, a;", "u32", "u32"}, cross(k32, {0}),
               [](auto& o) { return s32(o[0]) < 0 ? u32(0 - o[0]) : u32(o[0]); });
    check<u64>({"neg.s64 d, a;", "u64", "u64"}, cross(k64, {0}), [](auto& o) { return 0 - o[0]; });
    check<u16>({"neg.s16 d, a;", "u16", "u16"}, cross(k16, {0}), [](auto& o) { return u16(0 - o[0]); });
}

BOOST_AUTO_TEST_CASE(logic_and_shifts) {
    check<u32>({"and.b32 d, a, b;", "b32", "b32"}, cross(k32, k32), [](auto& o) { return u32(o[0] & o[1]); });
    check<u64>({"xor.b64 d, a, b;", "b64", "b64"}, cross(k64, k64), [](auto& o) { return o[0] ^ o[1]; });
    check<u16>({"not.b16 d, a;", "b16", "b16"}, cross(k16, {0}), [](auto& o) { return u16(~o[0]); });
    check<u32>({"cnot.b32 d, a;", "b32", "b32"}, cross(k32, {0}), [](auto& o) { return u32(o[0] == 0); });
    const std::vector<u64> amounts{0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0xffffffff};
    check<u32>({"shl.b32 d, a, b;", "b32", "b32"}, cross(k32, amounts),
               [](auto& o) { return o[1] > 31 ? 0U : u32(o[0] << o[1]); });
    check<u32>({"shr.u32 d, a, b;", "b32", "b32"}, cross(k32, amounts),
               [](auto& o) { return o[1] > 31 ? 0U : u32(o[0]) >> o[1]; });
    check<u32>({"shr.s32 d, a, b;", "b32", "b32"}, cross(k32, amounts),
               [](auto& o) { return u32(s32(o[0]) >> std::min<u64>(o[1], 31)); });
    check<u64>({"shl.b64 d, a, b;", "b64", "b64", "b32"}, cross(k64, amounts),
               [](auto& o) { return o[1] > 63 ? 0 : o[0] << o[1]; });
    check<u64>({"shr.s64 d, a, b;", "b64", "b64", "b32"}, cross(k64, amounts),
               [](auto& o) { return u64(s64(o[0]) >> std::min<u64>(o[1], 63)); });
    check<u16>({"shr.s16 d, a, b;", "b16", "b16", "b32"}, cross(k16, amounts),
               [](auto& o) { return u16(s16(o[0]) >> std::min<u64>(o[1], 15)); });
    check<u16>({"shl.b16 d, a, b;", "b16", "b16", "b32"}, cross(k16, amounts),
               [](auto& o) { return o[1] > 15 ? u16(0) : u16(o[0] << o[1]); });
    check<u32>({"shf.l.wrap.b32 d, a, b, c;", "b32", "b32"}, cross(k32, k32, amounts),
               [](auto& o) { return u32((((o[1] << 32) | o[0]) << (o[2] & 31)) >> 32); });
    check<u32>({"shf.r.clamp.b32 d, a, b, c;", "b32", "b32"}, cross(k32, k32, amounts),
               [](auto& o) { return u32(((o[1] << 32) | o[0]) >> std::min<u64>(o[2], 32)); });
    check<u32>({"lop3.b32 d, a, b, c, 0x96;", "b32", "b32"}, cross(k32, k32, k32),
               [](auto& o) { return u32(o[0] ^ o[1] ^ o[2]); });
    check<u32>({"lop3.b32 d, a, b, c, 0xE2;", "b32", "b32"}, cross(k32, k32, k32), [](auto& o) {
        u32 r = 0;
        for (int i = 0; i < 32; ++i)
            r |= u32((0xE2 >> (((o[0] >> i & 1) << 2) | ((o[1] >> i & 1) << 1) | (o[2] >> i & 1))) & 1) << i;
        return r;
    });
}

BOOST_AUTO_TEST_CASE(bit_fields) {
    check<u32>({"popc.b32 d, a;", "b32", "b32"}, cross(k32, {0}),
               [](auto& o) { return u32(std::popcount(u32(o[0]))); });
    check<u32>({"popc.b64 d, a;", "b32", "b64"}, cross(k64, {0}),
               [](auto& o) { return u32(std::popcount(o[0])); });
    check<u32>({"clz.b32 d, a;", "b32", "b32"}, cross(k32, {0}),
               [](auto& o) { return u32(std::countl_zero(u32(o[0]))); });
    check<u32>({"clz.b64 d, a;", "b32", "b64"}, cross(k64, {0}),
               [](auto& o) { return u32(std::countl_zero(o[0])); });
    check<u32>({"bfind.u32 d, a;", "b32", "b32"}, cross(k32, {0}),
               [](auto& o) { return u32(31 - std::countl_zero(u32(o[0]))); });
    check<u32>({"bfind.s32 d, a;", "b32", "b32"}, cross(k32, {0}),
               [](auto& o) { return u32(31 - std::countl_zero(s32(o[0]) < 0 ? ~u32(o[0]) : u32(o[0]))); });
    check<u32>({"bfind.shiftamt.u64 d, a;", "b32", "b64"}, cross(k64, {0}),
               [](auto& o) { return o[0] == 0 ? ~0U : u32(std::countl_zero(o[0])); });
    check<u32>({"brev.b32 d, a;", "b32", "b32"}, cross(k32, {0}), [](auto& o) {
        u32 r = 0;
        for (int i = 0; i < 32; ++i)
            r |= u32(o[0] >> i & 1) << (31 - i);
        return r;
    });
    const std::vector<u64> fields{0, 1, 5, 8, 24, 31, 32, 33, 40, 64, 255, 256};
    // The PTX ISA's own pseudo code.
    const auto bfe = [](u64 a, u64 b, u64 c, int msb, bool is_signed) {
        const int pos = int(b & 0xff), len = int(c & 0xff);
        bool sbit = false;
        if (is_signed && len != 0)
            sbit = (a >> std::min(pos + len - 1, msb)) & 1;
        u64 d = 0;
        for (int i = 0; i <= msb; ++i)
            d |= u64(i < len && pos + i <= msb ? (a >> (pos + i)) & 1 : sbit) << i;
        return d;
    };
    check<u32>({"bfe.u32 d, a, b, c;", "b32", "b32"}, cross(k32, fields, fields),
               [&](auto& o) { return u32(bfe(o[0], o[1], o[2], 31, false)); });
    check<u32>({"bfe.s32 d, a, b, c;", "b32", "b32"}, cross(k32, fields, fields),
               [&](auto& o) { return u32(bfe(o[0], o[1], o[2], 31, true)); });
    check<u64>({"bfe.s64 d, a, b, c;", "b64", "b64", "b32", "b32"}, cross(k64, fields, fields),
               [&](auto& o) { return bfe(o[0], o[1], o[2], 63, true); });
    check<u32>({"bfi.b32 d, a, 0x5a5aa5a5, b, c;", "b32", "b32"}, cross(k32, fields, fields), [](auto& o) {
        const int pos = int(o[1] & 0xff), len = int(o[2] & 0xff);
        u32 f = 0x5a5aa5a5;
        for (int i = 0; i < len && pos + i <= 31; ++i)
            f = (f & ~(1U << (pos + i))) | u32((o[0] >> i) & 1) << (pos + i);
        return f;
    });
    check<u32>({"bmsk.clamp.b32 d, a, b;", "b32", "b32"}, cross(fields, fields), [](auto& o) {
        u32 r = 0;
        for (u64 i = o[0]; i < 32 && i < o[0] + o[1]; ++i)
            r |= 1U << i;
        return r;
    });
    check<u32>({"prmt.b32 d, a, b, c;", "b32", "b32"},
               cross(k32, k32, {0x3210, 0x7654, 0x0123, 0xba98, 0x4567, 0xf0c3}), [](auto& o) {
                   const u64 both = o[1] << 32 | o[0];
                   u32 r = 0;
                   for (int i = 0; i < 4; ++i) {
                       const u32 s = u32(o[2] >> (4 * i)) & 15;
                       const u8 byte = u8(both >> (8 * (s & 7)));
                       r |= u32((s & 8) != 0 ? ((byte & 0x80) != 0 ? 0xff : 0) : byte) << (8 * i);
                   }
                   return r;
               });
    check<u32>({"prmt.b32.rc16 d, a, b, c;", "b32", "b32"}, {{0x44332211, 0, 0}, {0x44332211, 0, 1}},
               [](auto& o) { return o[2] == 0 ? 0x22112211U : 0x44334433U; });
    check<u32>({"prmt.b32.b4e d, a, b, 1;", "b32", "b32"}, {{0x33221100, 0x77665544, 0}},
               [](auto&) { return 0x66770011U; });
    check<u32>({"fns.b32 d, a, b, c;", "b32", "b32"},
               {{0xf0, 0, 2}, {0xf0, 7, 0xfffffffe}, {0xf0, 0, 0}, {0xf0, 4, 0}}, [](auto& o) {
                   return o[1] == 7 ? 6U : o[2] == 2 ? 5U : o[1] == 4 ? 4U : ~0U;
               });
}

BOOST_AUTO_TEST_CASE(carry_chains) {
    check<u64>(
        {"mov.b64 {t, u}, a; mov.b64 {x, y}, b; add.cc.u32 t, t, x; addc.u32 u, u, y; mov.b64 d, {t, u};",
         "b64", "b64"},
        cross(k64, k64), [](auto& o) { return o[0] + o[1]; });
    check<u64>(
        {"mov.b64 {t, u}, a; mov.b64 {x, y}, b; sub.cc.u32 t, t, x; subc.u32 u, u, y; mov.b64 d, {t, u};",
         "b64", "b64"},
        cross(k64, k64), [](auto& o) { return o[0] - o[1]; });
    // 32 x 32 + 64, the carry through mad
    check<u64>({"mov.b64 {x, y}, c; mad.lo.cc.u32 t, a, b, x; madc.hi.u32 u, a, b, y; mov.b64 d, {t, u};",
                "b64", "u32", "u32", "b64"},
               cross(k32, k32, k64), [](auto& o) { return o[0] * o[1] + o[2]; });
}

BOOST_AUTO_TEST_CASE(comparisons) {
    const auto set = [](const std::string& text) { return text + " selp.u32 d, 1, 0, p;"; };
    check<u32>({set("setp.lt.s32 p, a, b;"), "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return u32(s32(o[0]) < s32(o[1])); });
    check<u32>({set("setp.hi.u32 p, a, b;"), "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return u32(u32(o[0]) > u32(o[1])); });
    check<u32>({set("setp.ge.u64 p, a, b;"), "u32", "u64"}, cross(k64, k64),
               [](auto& o) { return u32(o[0] >= o[1]); });
    check<u32>({set("setp.ne.s16 p, a, b;"), "u32", "u16"}, cross(k16, k16),
               [](auto& o) { return u32(o[0] != o[1]); });
    check<u32>(
        {"setp.ne.u32 q, c, 0; setp.lt.and.u32 p|r, a, b, !q; selp.u32 d, 1, 0, p; @r add.u32 d, d, 2;",
         "u32", "u32"},
        cross(k32, k32, {0, 1}), [](auto& o) {
            const bool t = o[0] < o[1], c = o[2] == 0;
            return u32(t && c) + 2 * u32(!t && c);
        });
    check<u32>({"set.gt.u32.s32 d, a, b;", "u32", "u32"}, cross(k32, k32),
               [](auto& o) { return s32(o[0]) > s32(o[1]) ? ~0U : 0U; });
    check<u32>({"set.eq.f32.u32 d, a, b;", "f32", "u32"}, cross(k32, k32),
               [](auto& o) { return o[0] == o[1] ? 0x3f800000U : 0U; });
    check<u32>({"slct.u32.s32 d, a, b, c;", "u32", "u32"}, cross({1}, {2}, k32),
               [](auto& o) { return s32(o[2]) >= 0 ? 1U : 2U; });
    check<u32>(
        {"setp.ne.u32 p, a, 0; setp.ne.u32 q, b, 0; xor.pred p, p, q; not.pred p, p; selp.u32 d, 7, 8, p;",
         "u32", "u32"},
        cross({0, 1}, {0, 1}), [](auto& o) { return o[0] == o[1] ? 7U : 8U; });
}

BOOST_AUTO_TEST_CASE(moves) {
    check<u64>({"mov.b64 d, {a, b};", "b64", "b32"}, cross(k32, k32),
               [](auto& o) { return o[1] << 32 | o[0]; });
    check<u32>({"mov.b64 {t, _}, a; mov.b64 {_, u}, a; xor.b32 d, t, u;", "b32", "b64"}, cross(k64, {0}),
               [](auto& o) { return u32(o[0]) ^ u32(o[0] >> 32); });
    check<u32>({"mov.b32 d, {a, b};", "b32", "b16"}, cross(k16, k16),
               [](auto& o) { return u32(o[1] << 16 | o[0]); });
    check<u32>({"{ .reg .b16 lo, hi; mov.b32 {lo, hi}, a; mov.b32 d, {hi, lo}; }", "b32", "b32"},
               cross(k32, {0}), [](auto& o) { return std::rotl(u32(o[0]), 16); });
    check<u32>({"mov.u32 d, 0xFFFFFFFEU;", "u32", "u32"}, {{}}, [](auto&) { return 0xfffffffeU; });
    check<u32>({"mov.u32 d, WARP_SZ;", "u32", "u32"}, {{}}, [](auto&) { return 32U; });
}

BOOST_AUTO_TEST_SUITE_END()
