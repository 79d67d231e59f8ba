// SPDX-License-Identifier: BSD-3-Clause
// Loads, stores, state spaces, faults, atomics.
#define BOOST_TEST_DYN_LINK
#include "tests/ptx/operations.h"

#include <boost/test/unit_test.hpp>

using namespace softgpu::ptx;
using namespace softgpu::ptx::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

// A kernel of two 64-bit parameters a, b; x is the thread's index in the grid.
std::string kernel(const std::string& body, const std::string& before = "") {
    return std::string(kHeader) + before + R"(
.visible .entry k(.param .u64 pa, .param .u64 pb)
{
    .reg .u64 a, b, i, j; .reg .u32 x, y, z, t, u; .reg .pred p, q; .reg .b16 h; .local .align 8 .b8 l[16];
    ld.param.u64 a, [pa]; ld.param.u64 b, [pb];
    mov.u32 x, %ctaid.x; mov.u32 y, %ntid.x; mov.u32 z, %tid.x; mad.lo.u32 x, x, y, z; cvt.u64.u32 i, x;
)" + body + "\nret;\n}\n";
}

struct Outcome {
    LaunchResult result;
    std::vector<u32> words;
};
Outcome run_words(const std::string& text, std::vector<u32> words, Dim3 grid, Dim3 block, u64 b = 0,
                  u32 shared = 0) {
    Device device;
    const auto module = device.load(text);
    const u64 a = device.upload(words);
    const LaunchResult result = device.launch(module->kernels().at(0), grid, block, {a, b}, {}, shared);
    return {result, device.download<u32>(a, words.size())};
}

} // namespace

BOOST_AUTO_TEST_SUITE(memory)

BOOST_AUTO_TEST_CASE(sizes_and_vectors) {
    // Sign and zero extension, all widths.
    const auto r = run_words(kernel(R"(
        mad.lo.u64 a, i, 64, a;
        ld.global.s8 t, [a]; st.global.u32 [a+8], t;
        ld.global.u8 t, [a]; st.global.u32 [a+12], t;
        ld.global.s16 t, [a]; st.global.u32 [a+16], t;
        ld.global.nc.L1::no_allocate.u16 h, [a]; cvt.u32.u16 t, h; st.global.u32 [a+20], t;
        ld.global.s32 j, [a]; st.global.u64 [a+24], j;
        ld.global.v2.u32 {t, u}, [a]; st.global.v2.u32 [a+32], {u, t};
        ld.v4.u32 {t, u, y, z}, [a+16]; st.volatile.v4.u32 [a+48], {z, y, u, t};
        st.global.u8 [a+40], 511; st.global.u16 [a+42], 65537;)"),
                             [] {
                                 std::vector<u32> w(64);
                                 for (u32 i = 0; i < 4; ++i)
                                     w[16 * i] = 0x80018081 + i, w[16 * i + 1] = i;
                                 return w;
                             }(),
                             {1, 1, 1}, {4, 1, 1});
    BOOST_TEST_REQUIRE(r.result.message == "");
    for (u32 i = 0; i < 4; ++i) {
        const u32* w = &r.words[16 * i];
        const u32 v = 0x80018081 + i;
        const std::vector<u32> want{
            v, i, 0xffffff81 + i, 0x81 + i, 0xffff8081 + i, 0x8081 + i, v,          0xffffffff,
            i, v, 0x000100ff,     0,        0xffffffff,     v,          0x8081 + i, 0xffff8081 + i};
        BOOST_TEST(std::vector<u32>(w, w + 16) == want, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(shared_local_and_generic) {
    const auto r = run_words(kernel(R"(
        mov.u32 t, s; shl.b32 u, z, 2; add.u32 t, t, u; st.shared.u32 [t], x;
        bar.sync 0;
        xor.b32 u, z, 63; shl.b32 u, u, 2; mov.u32 t, s; add.u32 t, t, u; ld.shared.u32 y, [t];
        mov.u64 j, l; cvta.local.u64 j, j; st.u32 [j+4], y; ld.local.u32 y, [l+4];
        cvt.u64.u32 j, t; cvta.shared.u64 j, j; ld.u32 u, [j]; isspacep.shared p, j; @!p mov.u32 u, 0; add.u32 y, y, u;
        mad.lo.u64 a, i, 4, a; isspacep.global p, a; @p st.u32 [a], y;
        mov.u32 t, d; add.u32 t, t, 4; setp.eq.u32 p, z, 0; @p st.shared.u32 [t], 5;)",
                                    ".extern .shared .align 16 .b8 d[];\n.shared .align 4 .b8 s[256];\n") +
                                 "",
                             std::vector<u32>(128), {2, 1, 1}, {64, 1, 1}, 0, 64);
    BOOST_TEST_REQUIRE(r.result.message.find("'l'") == std::string::npos);
    BOOST_TEST(r.result.message == "");
    for (u32 i = 0; i < 128; ++i)
        BOOST_TEST(r.words[i] == 2 * ((i & 64) + (63 - (i & 63))));
}

BOOST_AUTO_TEST_CASE(faults_are_reported_not_fatal) {
    Device device;
    const auto module = device.load(kernel("mad.lo.u64 a, i, 4, a; st.global.u32 [a], x;"));
    const auto run = [&](u64 a, u32 threads = 32) {
        return device.launch(module->kernels().at(0), {1, 1, 1}, {threads, 1, 1}, {a, 0});
    };
    const u64 a = device.allocate(4096);
    BOOST_TEST(int(run(a).status) == int(Status::ok));
    for (const u64 bad :
         {u64{0}, u64{16}, a - 4096, a + 4096 - 64, ~u64{0} - 3, device.base() + Device::kBytes - 4,
          kSharedWindow, kLocalWindow + (1U << 20), kParamWindow, kCodeWindow}) {
        const LaunchResult r = run(bad & ~u64{3});
        BOOST_TEST(int(r.status) == int(Status::illegal_address), r.message << std::hex << bad);
        BOOST_TEST(r.message.find("kernel k, block (0,0,0)") != std::string::npos);
    }
    const LaunchResult edge = run(a + 4096 - 64);
    BOOST_TEST(edge.address == a + 4096);
    const LaunchResult odd = run(a + 2);
    BOOST_TEST(int(odd.status) == int(Status::misaligned_address));
    BOOST_TEST(odd.address % 4 == 2U);
    // Constant memory cannot be written.
    BOOST_TEST(int(run(device.allocate(4096, kPageReadOnly)).status) == int(Status::illegal_address));
    // Shared memory has an end, and a parameter block too.
    for (const char* text : {"ld.shared.u32 t, [4096];", "mov.u32 t, 0xfffffffc; ld.shared.u32 t, [t];",
                             "ld.local.u32 t, [100000000];", "mov.u64 j, pb; ld.param.u32 t, [j+8];",
                             "mov.u64 j, 0x1400000000; ld.u32 t, [j];", "atom.shared.add.u32 t, [64], 1;",
                             "ld.global.v4.u32 {t,t,t,t}, [a+4096];"}) {
        const auto m = device.load(kernel(text));
        const LaunchResult r = device.launch(m->kernels().at(0), {1, 1, 1}, {32, 1, 1}, {a, 0});
        BOOST_TEST(int(r.status) == int(Status::illegal_address), text << ": " << r.message);
    }
    // The device works on.
    BOOST_TEST(int(run(a).status) == int(Status::ok));
}

BOOST_AUTO_TEST_CASE(atomics_from_many_blocks) {
    // 4096 threads on one word each.
    const auto total = [](const std::string& op, u32 start) {
        return run_words(kernel(op), {start, 0, 0, 0}, {32, 1, 1}, {128, 1, 1}).words;
    };
    BOOST_TEST(total("atom.global.add.u32 t, [a], 3;", 7)[0] == 7U + 3 * 4096);
    BOOST_TEST(total("red.global.add.u64 [a], 4294967297;", 0)[1] == 4096U);
    BOOST_TEST(total("atom.max.s32 t, [a], x;", 0x80000000)[0] == 4095U);
    BOOST_TEST(total("red.global.min.u32 [a], x;", 0xffffffff)[0] == 0U);
    BOOST_TEST(total("and.b32 x, x, 31; shl.b32 x, 1, x; red.global.or.b32 [a], x;", 0)[0] == 0xffffffffU);
    BOOST_TEST(total("red.global.xor.b32 [a], 1;", 1)[0] == 1U);
    BOOST_TEST(total("atom.global.inc.u32 t, [a], 9;", 0)[0] == 4096U % 10);
    BOOST_TEST(total("atom.global.dec.u32 t, [a], 9;", 0)[0] == 4U);
    BOOST_TEST(total("red.global.add.f32 [a], 0f3F800000;", 0)[0] == f32(4096.0F));
    BOOST_TEST(total("red.global.add.f64 [a], 0d3FE0000000000000;", 0)[1] == u32(f64(2048.0) >> 32));
    BOOST_TEST(total("mov.b16 h, 0x3c00; setp.lt.u32 p, x, 100; @p red.global.add.noftz.f16 [a], h;", 0)[0] ==
               0x5640U); // 100
    BOOST_TEST(total("mov.b32 t, 0x40003c00; setp.lt.u32 p, x, 50; @p red.global.add.noftz.f16x2 [a], t;",
                     0)[0] == 0x56405240U); // (50, 100)
    // A sum by compare and swap.
    BOOST_TEST(total("ld.global.u32 t, [a]; L: mov.u32 u, t; add.u32 y, u, 1; atom.global.cas.b32 t, [a], u, "
                     "y; setp.ne.u32 p, t, u; @p bra L;",
                     0)[0] == 4096U);
    // Each old value was seen once: the results of exch and add are those before.
    const auto old = run_words(
        kernel(
            "atom.global.add.u32 t, [a], 1; mul.wide.u32 j, t, 4; add.u64 j, j, a; st.global.u32 [j+4], 1;"),
        std::vector<u32>(4097), {32, 1, 1}, {128, 1, 1});
    BOOST_TEST(std::count(old.words.begin() + 1, old.words.end(), 1U) == 4096);
    // 16-bit compare and swap, and one in shared memory.
    const auto narrow =
        run_words(kernel("mov.b16 h, 5; .reg .b16 o, n; mov.b16 n, 9; atom.global.cas.b16 o, [a+2], h, n;"),
                  {0x00050001}, {1, 1, 1}, {1, 1, 1});
    BOOST_TEST(narrow.words[0] == 0x00090001U);
    const auto shared = run_words(
        kernel("setp.eq.u32 p, z, 0; @p st.shared.u32 [s], 0; bar.sync 0; atom.shared.add.u32 t, [s], 2; "
               "bar.sync 0; ld.shared.u32 t, [s]; mad.lo.u64 a, i, 4, a; st.global.u32 [a], t;",
               ".shared .align 4 .b8 s[4];\n"),
        std::vector<u32>(256), {2, 1, 1}, {128, 1, 1});
    BOOST_TEST(std::count(shared.words.begin(), shared.words.end(), 256U) == 256);
}

BOOST_AUTO_TEST_CASE(copies_to_shared_memory) {
    const auto r = run_words(
        kernel(R"(
        shl.b32 t, z, 4; mad.lo.u64 b, i, 16, a;
        cp.async.cg.shared.global [t], [b], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
        ld.shared.u32 u, [t+12]; cp.async.ca.shared.global [t], [b], 4, 0; cp.async.wait_all; ld.shared.u32 y, [t];
        add.u32 u, u, y; st.global.u32 [b], u;)",
               ".shared .align 16 .b8 s[512];\n")
            .insert(0, ""),
        [] {
            std::vector<u32> w(128);
            for (u32 i = 0; i < 128; ++i)
                w[i] = i;
            return w;
        }(),
        {1, 1, 1}, {32, 1, 1}, 0, 512);
    BOOST_TEST(r.result.message == "");
    for (u32 i = 0; i < 32; ++i)
        BOOST_TEST(r.words[4 * i] == 4 * i + 3);
}

BOOST_AUTO_TEST_SUITE_END()
