// SPDX-License-Identifier: BSD-3-Clause
// Divergence, calls, barriers, warp-wide operations, blocks that wait for each other.
#define BOOST_TEST_DYN_LINK
#include "tests/ptx/operations.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <thread>
#include <utility>

using namespace softgpu::ptx;
using namespace softgpu::ptx::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

// x: thread in the grid, z: in the block; what is in r goes to a[x].
std::string kernel(const std::string& body, const std::string& before = "") {
    return std::string(kHeader) + before + R"(
.visible .entry k(.param .u64 pa, .param .u64 pb)
{
    .reg .u64 a, b, i, j; .reg .u32 x, y, z, t, u, v, r; .reg .pred p, q;
    ld.param.u64 a, [pa]; ld.param.u64 b, [pb];
    mov.u32 x, %ctaid.x; mov.u32 y, %ntid.x; mov.u32 z, %tid.x; mad.lo.u32 x, x, y, z; cvt.u64.u32 i, x;
    mov.u32 r, 0;
)" + body + "\nEND: mad.lo.u64 j, i, 4, a; st.global.u32 [j], r;\nret;\n}\n";
}

struct Run {
    LaunchResult result;
    std::vector<u32> r;
    std::vector<u32> b;
    std::string output, errors;
};
Run run(const std::string& text, u32 blocks, u32 threads, LaunchOptions options = {},
        std::size_t words_b = 64) {
    Device device;
    const auto module = device.load(text);
    const u64 a = device.upload(std::vector<u32>(std::size_t{blocks} * threads)),
              b = device.upload(std::vector<u32>(words_b));
    Run run;
    run.result = device.launch(module->kernels().at(0), {blocks, 1, 1}, {threads, 1, 1}, {a, b}, options);
    run.r = device.download<u32>(a, std::size_t{blocks} * threads);
    run.b = device.download<u32>(b, words_b);
    run.output = device.output;
    run.errors = device.errors;
    return run;
}
template <class F>
void expect(const std::string& text, u32 blocks, u32 threads, F want) {
    const Run got = run(text, blocks, threads);
    BOOST_TEST(got.result.message == "");
    for (u32 i = 0; i < blocks * threads; ++i)
        BOOST_TEST(got.r[i] == u32(want(i)),
                   "thread " << i << ": " << got.r[i] << " and not " << u32(want(i)));
}

} // namespace

BOOST_AUTO_TEST_SUITE(control)

BOOST_AUTO_TEST_CASE(divergent_loops_and_branches) {
    // The sum 1..x, each lane a loop of its own length.
    expect(
        kernel("mov.u32 t, 0; L: setp.gt.u32 p, t, x; @p bra END; add.u32 r, r, t; add.u32 t, t, 1; bra L;"),
        2, 80, [](u32 i) { return i * (i + 1) / 2; });
    // Collatz steps: branches in loops, every lane another way.
    expect(
        kernel(
            R"(add.u32 t, x, 1; L: setp.eq.u32 p, t, 1; @p bra END; add.u32 r, r, 1; and.b32 u, t, 1; setp.eq.u32 q, u, 0; @q bra EVEN;
                     mad.lo.u32 t, t, 3, 1; bra L; EVEN: shr.u32 t, t, 1; bra L;)"),
        1, 100, [](u32 i) {
            u32 n = 0;
            for (u32 v = i + 1; v != 1; ++n)
                v = v % 2 != 0 ? 3 * v + 1 : v / 2;
            return n;
        });
    expect(kernel("and.b32 t, x, 3; T: .branchtargets A, B, C, A; brx.idx t, T; A: mov.u32 r, 10; bra END; "
                  "B: mov.u32 r, 20; bra END; C: mov.u32 r, 30;"),
           1, 64, [](u32 i) { return i % 4 == 1   ? 20
                                     : i % 4 == 2 ? 30
                                                  : 10; });
    // Lanes that leave early, by exit and by ret under a guard.
    const Run early =
        run(kernel("setp.lt.u32 p, z, 5; @p exit; setp.gt.u32 p, z, 20; @p ret; mov.u32 r, 1;"), 1, 32);
    for (u32 i = 0; i < 32; ++i)
        BOOST_TEST(early.r[i] == u32(i >= 5 && i <= 20));
    // After a loop the lanes are together again.
    expect(kernel("and.b32 t, x, 15; L: setp.eq.u32 p, t, 0; @p bra M; sub.u32 t, t, 1; bra L; M: "
                  "activemask.b32 r;"),
           1, 64, [](u32) { return 0xffffffff; });
}

BOOST_AUTO_TEST_CASE(spin_lock_among_the_lanes_of_a_warp) {
    const std::string lock = R"(
        L: atom.global.cas.b32 t, [b], 0, 1; setp.ne.u32 p, t, 0; @p bra L;
        ld.volatile.global.u32 u, [b+4]; add.u32 u, u, 1; st.volatile.global.u32 [b+4], u; membar.gl;
        atom.global.exch.b32 t, [b], 0; mov.u32 r, u;)";
    const Run got = run(kernel(lock), 3, 64);
    BOOST_TEST(got.result.message == "");
    BOOST_TEST(got.b[1] == 192U);
    std::vector<u32> order = got.r;
    std::sort(order.begin(), order.end());
    std::vector<u32> all(192);
    std::iota(all.begin(), all.end(), 1U);
    BOOST_TEST(order == all, boost::test_tools::per_element());
    // Lane 0 waits for a flag that lane 31 sets after it.
    expect(kernel("setp.ne.u32 p, z, 0; @p bra SET; W: nanosleep.u32 20; ld.volatile.global.u32 t, [b]; "
                  "setp.eq.u32 p, t, 0; @p bra W; mov.u32 r, t; bra END; SET: setp.eq.u32 q, z, 31; @q "
                  "st.volatile.global.u32 [b], 9; mov.u32 r, 9;"),
           1, 32, [](u32) { return 9; });
}

BOOST_AUTO_TEST_CASE(calls_and_recursion) {
    const std::string fib = R"(
.func (.param .b32 ret) fib(.param .b32 n)
{
    .reg .b32 m, s, t; .reg .pred p;
    ld.param.b32 m, [n]; setp.lt.u32 p, m, 2; @p bra DONE;
    { .param .b32 x0; .param .b32 r0; sub.u32 t, m, 1; st.param.b32 [x0+0], t; call.uni (r0), fib, (x0); ld.param.b32 s, [r0+0]; }
    { .param .b32 x0; .param .b32 r0; sub.u32 t, m, 2; st.param.b32 [x0], t; call (r0), fib, (x0); ld.param.b32 t, [r0]; }
    add.u32 m, s, t;
DONE: st.param.b32 [ret], m; ret;
}
)";
    expect(kernel("{ .param .b32 x0; .param .b32 r0; rem.u32 t, x, 13; st.param.b32 [x0], t; call (r0), fib, "
                  "(x0); ld.param.b32 r, [r0]; }",
                  fib),
           1, 64, [](u32 i) {
               u32 a = 0, b = 1;
               for (u32 k = 0; k < i % 13; ++k)
                   b = std::exchange(a, b) + b;
               return a;
           });
    const Run deep = run(kernel("{ .param .b32 x0; .param .b32 r0; st.param.b32 [x0], 1000000; call (r0), "
                                "fib, (x0); ld.param.b32 r, [r0]; }",
                                fib),
                         1, 32);
    BOOST_TEST(int(deep.result.status) == int(Status::stack_overflow));

    // Function pointers that differ among lanes, and struct parameters.
    const std::string table = R"(
.func (.param .b32 ret) twice(.param .b32 n) { .reg .b32 m; ld.param.b32 m, [n]; shl.b32 m, m, 1; st.param.b32 [ret], m; ret; }
.func (.param .b32 ret) plus9(.param .b32 n) { .reg .b32 m; ld.param.b32 m, [n]; add.u32 m, m, 9; st.param.b32 [ret], m; ret; }
.func (.param .align 4 .b8 ret[8]) swap(.param .align 4 .b8 s[8]) { .reg .b32 m, n; ld.param.v2.b32 {m, n}, [s]; st.param.b32 [ret+0], n; st.param.b32 [ret+4], m; ret; }
.func (.reg .u32 out) sum(.reg .u32 one, .reg .u32 two) { add.u32 out, one, two; ret; }
.global .align 8 .u64 functions[2] = {twice, plus9};
)";
    expect(
        kernel(
            R"(and.b32 t, x, 1; mul.wide.u32 j, t, 8; mov.u64 b, functions; add.u64 j, j, b; ld.global.u64 j, [j];
        { .param .b32 x0; .param .b32 r0; st.param.b32 [x0], x; P: .callprototype (.param .b32 _) _ (.param .b32 _); call (r0), j, (x0), P; ld.param.b32 r, [r0]; })",
            table),
        1, 64, [](u32 i) { return i % 2 != 0 ? i + 9 : 2 * i; });
    expect(kernel("{ .param .align 4 .b8 x0[8]; .param .align 4 .b8 r0[8]; st.param.b32 [x0], x; "
                  "st.param.b32 [x0+4], 77; call (r0), swap, (x0); ld.param.b32 t, [r0+0]; ld.param.b32 u, "
                  "[r0+4]; sub.u32 r, t, u; }",
                  table),
           1, 32, [](u32 i) { return 77 - i; });
    expect(kernel("call (r), sum, (x, 5);", table), 1, 32, [](u32 i) { return i + 5; });
    const Run bad = run(kernel("{ .param .b32 x0; .param .b32 r0; P: .callprototype (.param .b32 _) _ "
                               "(.param .b32 _); mov.u64 j, 12345; call (r0), j, (x0), P; }"),
                        1, 32);
    BOOST_TEST(int(bad.result.status) == int(Status::illegal_instruction));
}

BOOST_AUTO_TEST_CASE(barriers) {
    const Run got = run(
        kernel("setp.ge.u32 p, z, 100; @p exit; mov.u32 t, s; mad.lo.u32 t, z, 4, t; st.shared.u32 [t], x; "
               "bar.sync 0; mov.u32 t, s; sub.u32 u, 99, z; mad.lo.u32 t, u, 4, t; ld.shared.u32 r, [t];",
               ".shared .align 4 .b8 s[400];\n"),
        2, 128);
    BOOST_TEST(got.result.message == "");
    for (u32 i = 0; i < 100; ++i) {
        BOOST_TEST(got.r[i] == 99 - i);
        BOOST_TEST(got.r[128 + i] == 128 + 99 - i);
    }
    expect(kernel("and.b32 t, z, 1; setp.eq.u32 p, t, 1; bar.red.popc.u32 r, 1, p; bar.red.and.pred q, 2, "
                  "!p; @q add.u32 r, r, 1000; bar.red.or.pred q, 3, p; @q add.u32 r, r, 100;"),
           1, 70, [](u32) { return 135; });
    // Producers arrive, consumers wait: one warp each.
    expect(kernel("setp.lt.u32 p, z, 32; @p bra C; st.global.u32 [b], 5; bar.arrive 4, 64; bra END; C: "
                  "bar.sync 4, 64; ld.global.u32 r, [b];"),
           1, 64, [](u32 i) { return i < 32 ? 5 : 0; });
    // Diverged lanes of one warp meet at the same barrier number from two places.
    expect(kernel("setp.lt.u32 p, z, 7; @p bra A; barrier.sync 0; bra J; A: mov.u32 r, 3; barrier.sync 0; J: "
                  "add.u32 r, r, 1;"),
           1, 64, [](u32 i) { return i < 7 ? 4 : 1; });
    const Run dead = run(kernel("setp.lt.u32 p, z, 7; @p bra A; bar.sync 1; bra END; A: bar.sync 2;"), 1, 64);
    BOOST_TEST(int(dead.result.status) == int(Status::illegal_instruction));
    BOOST_TEST(dead.result.message.find("deadlock") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(shuffles_votes_matches) {
    expect(kernel("shfl.sync.bfly.b32 r|p, x, 5, 31, -1;"), 1, 64, [](u32 i) { return i ^ 5; });
    expect(kernel("shfl.sync.up.b32 r|p, x, 3, 0, -1; @!p mov.u32 r, 999;"), 1, 64,
           [](u32 i) { return i % 32 < 3 ? 999 : i - 3; });
    expect(kernel("shfl.sync.down.b32 r|p, x, 3, 0x181f, -1; @!p mov.u32 r, 999;"), 1, 32,
           [](u32 i) { return i % 8 > 4 ? 999 : i + 3; });
    expect(kernel("shfl.sync.idx.b32 r, x, 2, 0x1c1f, -1;"), 1, 32, [](u32 i) { return i / 4 * 4 + 2; });
    expect(kernel("setp.gt.u32 p, z, 10; vote.sync.ballot.b32 r, p, -1;"), 1, 32,
           [](u32) { return 0xfffff800; });
    expect(kernel("setp.gt.u32 p, z, 10; vote.ballot.sync.b32 r, !p, 0xffffffff;"), 1, 32,
           [](u32) { return 0x7ff; });
    expect(kernel("setp.gt.u32 p, z, 10; vote.sync.all.pred q, p, -1; @q add.u32 r, r, 1; vote.sync.any.pred "
                  "q, p, -1; @q add.u32 r, r, 2; vote.sync.uni.pred q, p, -1; @!q add.u32 r, r, 4;"),
           1, 32, [](u32) { return 6; });
    expect(kernel("shr.u32 t, z, 3; match.any.sync.b32 r, t, -1;"), 1, 32,
           [](u32 i) { return 0xffU << (i / 8 * 8); });
    expect(kernel("mov.u64 j, 7; match.all.sync.b64 r|p, j, -1; @!p mov.u32 r, 0;"), 1, 32,
           [](u32) { return 0xffffffff; });
    expect(kernel("redux.sync.add.s32 r, x, -1; redux.sync.max.u32 t, x, -1; add.u32 r, r, t;"), 1, 32,
           [](u32) { return 496 + 31; });
    // Halves of a warp with masks of their own, diverged.
    expect(kernel("setp.lt.u32 p, z, 16; @p bra A; redux.sync.add.u32 r, x, 0xffff0000; bra END; A: "
                  "redux.sync.min.u32 r, x, 0x0000ffff;"),
           1, 32, [](u32 i) { return i < 16 ? 0 : 376; });
    // One instruction, a mask for each half.
    expect(kernel("setp.lt.u32 p, z, 16; selp.b32 t, 0xffff, 0xffff0000, p; redux.sync.add.u32 r, 1, t; "
                  "vote.sync.ballot.b32 u, p, t; add.u32 r, r, u;"),
           1, 32, [](u32 i) { return i < 16 ? 16 + 0xffff : 16; });
    // The mask names all lanes, which come from two places in the code.
    expect(kernel("setp.lt.u32 p, z, 16; @p bra A; add.u32 t, x, 100; shfl.sync.bfly.b32 r, t, 16, 31, -1; "
                  "bra END; A: add.u32 t, x, 200; shfl.sync.bfly.b32 r, t, 16, 31, -1; add.u32 r, r, 1;"),
           1, 32, [](u32 i) { return i < 16 ? i + 16 + 101 : i - 16 + 200; });
    expect(kernel("setp.lt.u32 p, z, 16; @p bra A; st.volatile.global.u32 [b], 4; bar.warp.sync -1; bra END; "
                  "A: bar.warp.sync -1; ld.volatile.global.u32 r, [b];"),
           1, 32, [](u32 i) { return i < 16 ? 4 : 0; });
    // A whole warp waits for lanes that loop first; lanes that have exited are not waited for.
    expect(kernel("setp.ge.u32 p, z, 24; @p bra END; and.b32 t, z, 7; L: setp.eq.u32 p, t, 0; @p bra M; "
                  "sub.u32 t, t, 1; bra L; M: setp.ne.u32 q, z, 0; vote.sync.ballot.b32 r, q, 0x00ffffff;"),
           1, 32, [](u32 i) { return i < 24 ? 0xfffffe : 0; });
    expect(kernel("elect.sync t|p, -1; selp.u32 r, 1, 0, p;"), 1, 32, [](u32 i) { return i == 0; });
}

BOOST_AUTO_TEST_CASE(special_registers) {
    expect(kernel("mov.u32 r, %laneid;"), 1, 64, [](u32 i) { return i % 32; });
    expect(kernel("mov.u32 r, %lanemask_lt; mov.u32 t, %lanemask_ge; xor.b32 r, r, t;"), 1, 32,
           [](u32) { return 0xffffffff; });
    expect(kernel("mov.u32 r, %warpid; mov.u32 t, %nctaid.x; mad.lo.u32 r, t, 100, r;"), 3, 64,
           [](u32 i) { return 300 + i % 64 / 32; });
    expect(kernel("mov.u64 j, %clock64; mov.u64 b, %clock64; setp.le.u64 p, j, b; mov.u32 t, %clock; mov.u64 "
                  "b, %globaltimer; setp.ne.and.u64 p, b, 0, p; selp.u32 r, 1, 0, p;"),
           1, 32, [](u32) { return 1; });
    expect(kernel("cvt.u64.u32 j, %tid.x; cvt.u32.u64 r, j;"), 1, 32, [](u32 i) { return i; });
}

BOOST_AUTO_TEST_CASE(blocks_that_wait_for_each_other) {
    // Each block waits for the one before (a look-back), more blocks than CPU threads.
    const std::string back =
        kernel(R"(mov.u32 t, %ctaid.x; setp.eq.u32 p, t, 0; @p bra GO; mul.wide.u32 j, t, 4; add.u64 j, j, b;
        W: ld.acquire.gpu.global.u32 u, [j-4]; setp.eq.u32 p, u, 0; @p bra W; mov.u32 r, u;
        GO: add.u32 r, r, 1; bar.sync 0; setp.eq.u32 p, z, 0; mul.wide.u32 j, t, 4; add.u64 j, j, b; @p st.release.gpu.global.u32 [j], r;)");
    expect(back, 40, 64, [](u32 i) { return i / 64 + 1; });
    // And for one that comes later.
    expect(kernel("mov.u32 t, %ctaid.x; setp.eq.u32 p, t, 7; @p st.volatile.global.u32 [b], 3; W: "
                  "ld.volatile.global.u32 r, [b]; setp.eq.u32 p, r, 0; @p bra W;"),
           8, 32, [](u32) { return 3; });
    // A cooperative launch: a barrier over the whole grid, ten times.
    LaunchOptions cooperative;
    cooperative.cooperative = true;
    const Run grid = run(kernel(R"(mov.u32 v, 0;
        L: bar.sync 0; setp.ne.u32 p, z, 0; @p bra J; atom.global.add.u32 t, [b], 1; add.u32 u, v, 1; mul.lo.u32 u, u, 24;
        W: ld.volatile.global.u32 t, [b]; setp.lt.u32 p, t, u; @p bra W;
        J: bar.sync 0; add.u32 v, v, 1; setp.lt.u32 p, v, 10; @p bra L; ld.volatile.global.u32 r, [b];)"),
                         24, 64, cooperative);
    BOOST_TEST(grid.result.message == "");
    BOOST_TEST(std::count(grid.r.begin(), grid.r.end(), 240U) == 24 * 64);
}

BOOST_AUTO_TEST_CASE(ending_from_outside_and_traps) {
    std::atomic<bool> stop{false};
    LaunchOptions options;
    options.stop = &stop;
    std::thread later([&] { stop = true; });
    const Run forever = run(kernel("L: bra L;"), 4, 64, options);
    later.join();
    BOOST_TEST(int(forever.result.status) == int(Status::stopped));
    const Run trap = run(kernel("setp.eq.u32 p, x, 40; @p trap;"), 2, 32);
    BOOST_TEST(int(trap.result.status) == int(Status::illegal_instruction));
    BOOST_TEST(trap.result.message.find("block (1,0,0), thread (8,0,0)") != std::string::npos,
               trap.result.message);
}

BOOST_AUTO_TEST_SUITE_END()
