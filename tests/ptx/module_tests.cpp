// SPDX-License-Identifier: BSD-3-Clause
// What the parser meets in compilers' output; variables; printf, assert, malloc; refusals.
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE ptx
#include "tests/ptx/operations.h"

#include <boost/test/unit_test.hpp>

using namespace softgpu::ptx;
using namespace softgpu::ptx::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

BOOST_AUTO_TEST_SUITE(modules)

BOOST_AUTO_TEST_CASE(what_compilers_write) {
    Device device;
    const auto module = device.load(R"(
//
// Compiler output
//
.version 8.4
.target sm_80, debug
.address_size 64
	.file	1 "/a b/x.cu"
/* a comment
   of two lines */
.extern .shared .align 16 .b8 dynamic[];
.weak .shared .align 4 .u32 first;
.global .attribute(.managed) .align 4 .u32 managed = 7;
.visible .global .align 8 .u64 pointers[3] = {0, generic(numbers)+4, target};
.const .align 4 .b8 numbers[12] = {1, 0, 0, 0, 2, 0, 0, 0, 0xFF, 255};
.global .align 8 .b8 bytes[16] = {0xFF(numbers), 0xFF00(numbers), 0xFF0000(numbers), 0xFF000000(numbers), 0xFF00000000(numbers), 0xFF0000000000(numbers), 0xFF000000000000(numbers), 0xFF00000000000000(numbers), 1};
.global .align 4 .f32 reals[3] = {0f3F800000, -2.5, 0d4008000000000000};
.global .v2 .f32 pair = {0f00000000, 0f3F800000};
.func  (.param .b32 func_retval0) target
(
	.param .b32 target_param_0
)
;
.func  (.param .b32 func_retval0) target(
	.param .b32 target_param_0
)
.noreturn
{
	.reg .b32 	%r<2>;
	ret;
}
	// .globl	kernel
.visible .entry kernel(
	.param .u8 kernel_param_0,
	.param .u64 .ptr .global .align 8 kernel_param_1,
	.param .align 16 .b8 kernel_param_2[20],
	.param .u16 kernel_param_3
)
.maxntid 128, 2, 1
.minnctapersm 3
{
	.pragma "nounroll";
	.reg.b16 	%rs<3>;
	.reg .b32 	%r<12>, %r1<4>, %odd;
	.reg .pred 	%p<2>;
	.reg .b64 	%rd<9>;
	.shared .align 8 .b8 mine[40];
	.loc	1 12 3
$L__func_begin0:
	.loc 1 12 3, function_name $L__info_string0, inlined_at 1 30 2
	ld.param.u64 	%rd1, [kernel_param_1];
	ld.param.u8 	%rs1, [kernel_param_0];
	{ // callseq
	.reg .b32 %r1;
	mov.u32 %r1, 5;
	cvt.u32.u16 %r2, %rs1;
	add.s32 %r2, %r2, %r1;
	}
	mov.u32 %r11, 100;          // of %r<12>, not of %r1<4>
	add.s32 	%r2, %r2, %r11;
	ld.param.u32 	%r3, [kernel_param_2+16];
	add.s32 	%r2, %r2, %r3;
	mov.u64 	%rd2, kernel_param_2;
	ld.param.u32 	%r3, [%rd2+4];
	add.s32 	%r2, %r2, %r3;
	ld.const.u32 	%r3, [numbers+4];
	add.s32 	%r2, %r2, %r3;
	ld.global.u64 	%rd3, [pointers+8];
	ld.u32 	%r3, [%rd3];
	add.s32 	%r2, %r2, %r3;
	ld.global.u64 	%rd3, [bytes];
	ld.u8 	%r3, [%rd3+8];
	add.s32 	%r2, %r2, %r3;
	mov.u32 %r3, mine; mov.u32 %r4, dynamic; sub.u32 %r3, %r4, %r3;
	st.global.u32 	[%rd1], %r2;
	st.global.u32 	[%rd1+4], %r3;
	ld.global.v2.u32 {%r5, %r6}, [pair]; st.global.u32 [%rd1+8], %r6;
	bra.uni 	$L__tmp0;
$L__tmp0:
	ret;
$L__func_end0:
}
	.section	.debug_info
	{
.b32 2107
.b32 .debug_abbrev
.b8 108,103
	}
)");
    const Kernel* kernel = module->find_kernel("kernel");
    BOOST_TEST_REQUIRE(kernel != nullptr);
    BOOST_TEST(kernel->parameters.size() == 4U);
    BOOST_TEST(kernel->parameters[1].offset == 8U);
    BOOST_TEST(kernel->parameters[2].offset == 16U);
    BOOST_TEST(kernel->parameters[3].offset == 36U);
    BOOST_TEST(kernel->parameter_bytes == 38U);
    BOOST_TEST(kernel->max_threads == 256U);
    BOOST_TEST(kernel->min_blocks_per_sm == 3U);
    BOOST_TEST(kernel->static_shared_bytes == 40U);
    BOOST_TEST(kernel->target == 80);
    BOOST_TEST(kernel->ptx_version == 84);
    BOOST_TEST(kernel->unsupported == "");
    const Global* numbers = module->find_global("numbers");
    BOOST_TEST_REQUIRE(numbers != nullptr);
    BOOST_TEST(numbers->size == 12U);
    BOOST_TEST(numbers->constant);
    BOOST_TEST(module->find_global("managed")->managed);
    BOOST_TEST(*reinterpret_cast<const u32*>(module->find_global("managed")->address) == 7U);
    const auto* reals = reinterpret_cast<const float*>(module->find_global("reals")->address);
    BOOST_TEST(reals[0] == 1.0F);
    BOOST_TEST(reals[1] == -2.5F);
    BOOST_TEST(reals[2] == 3.0F);
    const auto* pointers = reinterpret_cast<const u64*>(module->find_global("pointers")->address);
    BOOST_TEST(pointers[1] == numbers->address + 4);
    BOOST_TEST(pointers[2] >= kCodeWindow);

    const u64 out = device.allocate(4096);
    struct {
        std::uint8_t a = 3;
        std::uint64_t out;
        u32 s[5] = {0, 10, 0, 0, 1000};
        std::uint16_t last = 1;
    } parameters;
    parameters.out = out;
    static_assert(sizeof parameters >= 38);
    LaunchOptions options;
    const LaunchResult r = device.engine().launch(*kernel, {1, 1, 1}, {1, 1, 1}, 16,
                                                  std::as_bytes(std::span(&parameters, 1)), options);
    BOOST_TEST(r.message == "");
    const auto words = device.download<u32>(out, 3);
    BOOST_TEST(words[0] == 3U + 5 + 100 + 1000 + 10 + 2 + 2 + 255);
    BOOST_TEST(words[1] == 48U); // dynamic shared memory begins behind the static one, aligned
    BOOST_TEST(words[2] == f32(1.0F));
}

BOOST_AUTO_TEST_CASE(errors_say_where_and_what) {
    Device device;
    const auto error = [&](const std::string& body) -> std::string {
        try {
            (void)device.load(std::string(kHeader) + ".entry k() {\n.reg .b32 r;\n" + body + "\nret;\n}\n");
        } catch (const ParseError& e) {
            return e.what();
        }
        return "";
    };
    BOOST_TEST(error("add.s32 r, r, q;").find("line 6: 'q' is not declared") != std::string::npos,
               error("add.s32 r, r, q;"));
    BOOST_TEST(error("bra nowhere;").find("no label 'nowhere'") != std::string::npos);
    BOOST_TEST(error("add.s64 r, r, r;").find("32 bits where 64") != std::string::npos);
    BOOST_TEST(error("add.s32 r, r").find("expected") != std::string::npos);
    BOOST_TEST(error("mov.b32 r, 0f3F80;").find("floating-point constant") != std::string::npos);
    BOOST_TEST(error("{ mov.u32 r, 1;").find("not closed") != std::string::npos);
    BOOST_CHECK_THROW((void)device.load("hello"), ParseError);
    BOOST_CHECK_THROW((void)device.load(""), ParseError);
    // Cut anywhere, a text is refused or taken, and never harms.
    const std::string whole =
        std::string(kHeader) + ".global .u32 g[2] = {1, 2};\n.entry k(.param .u64 a) { .reg .b32 r<3>; L: "
                               "mov.b32 r1, {r2, 0d3FF0000000000000}; @!p bra L; }";
    for (std::size_t n = 0; n < whole.size(); ++n)
        try {
            (void)device.load(whole.substr(0, n));
        } catch (const ParseError&) {
        }
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_named) {
    Device device;
    const auto module = device.load(std::string(kHeader) + R"(
.entry tensor() { .reg .b32 a<9>; .reg .f32 d<9>;
  mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {d0,d1,d2,d3}, {a0,a1,a2,a3}, {a4,a5}, {d4,d5,d6,d7}; ret; }
.entry plain() { ret; })");
    const LaunchResult r = device.launch(*module->find_kernel("tensor"), {1, 1, 1}, {32, 1, 1}, {});
    BOOST_TEST(int(r.status) == int(Status::not_supported));
    BOOST_TEST(r.message.find("not supported by softgpu: mma.sync.aligned.m16n8k8") != std::string::npos,
               r.message);
    BOOST_TEST(int(device.launch(*module->find_kernel("plain"), {1, 1, 1}, {32, 1, 1}, {}).status) ==
               int(Status::ok));
    const LaunchResult big = device.launch(*module->find_kernel("plain"), {1, 1, 1}, {2048, 1, 1}, {});
    BOOST_TEST(int(big.status) == int(Status::invalid_launch));
}

namespace {

const char* kPrintf = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
)";

std::string bytes_of(const std::string& name, const std::string& text) {
    std::string s = ".global .align 1 .b8 " + name + "[" + std::to_string(text.size() + 1) + "] = {";
    for (const char c : text)
        s += std::to_string(static_cast<unsigned char>(c)) + ", ";
    return s + "0};\n";
}

} // namespace

BOOST_AUTO_TEST_CASE(printf_formats) {
    Device device;
    const std::string format = "%d|%5u|%-6x|%#o|%lld|%c|%s|%.3f|%*d|%e|%%|%08.2f|%p|%hhd|%+i|%10.4s|%g\n";
    const auto module = device.load(std::string(kHeader) + kPrintf + bytes_of("format", format) +
                                    bytes_of("word", "deviceword") + R"(
.entry k() { .local .align 8 .b8 args[128]; .reg .b64 f, a, s; .reg .b32 n;
  mov.u64 a, args; cvta.local.u64 a, a; mov.u64 f, format; cvta.global.u64 f, f; mov.u64 s, word;
  st.u32 [a], -5; st.u32 [a+4], 77; st.u32 [a+8], 0xbeef; st.u32 [a+12], 8; st.u64 [a+16], -1234567890123; st.u32 [a+24], 65; st.u64 [a+32], s;
  st.f64 [a+40], 0d400921FB54442D18; st.u32 [a+48], 6; st.u32 [a+52], 42; st.f64 [a+56], 0d40C81C8000000000; st.f64 [a+64], 0dC0091EB851EB851F;
  st.u64 [a+72], 4096; st.u32 [a+80], 300; st.u32 [a+84], 9; st.u64 [a+88], s; st.f64 [a+96], 0d3FB999999999999A;
  { .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], f; st.param.b64 [p1], a; call.uni (r0), vprintf, (p0, p1); ld.param.b32 n, [r0]; }
  ret; })");
    const LaunchResult r = device.launch(*module->find_kernel("k"), {1, 1, 1}, {1, 1, 1}, {});
    BOOST_TEST(r.message == "");
    BOOST_TEST(device.output == "-5|   77|beef  |010|-1234567890123|A|deviceword|3.142|    "
                                "42|1.234500e+04|%|-0003.14|0x1000|44|+9|      devi|0.1\n");
}

BOOST_AUTO_TEST_CASE(printf_from_many_threads_and_a_callee) {
    Device device;
    const auto module = device.load(std::string(kHeader) + kPrintf + bytes_of("format", "%d.%d\n") + R"(
.func say(.param .b32 depth) { .local .align 8 .b8 args[8]; .reg .b64 f, a; .reg .b32 n, d; .reg .pred p;
  ld.param.b32 d, [depth]; setp.eq.u32 p, d, 0; @p bra PRINT;
  { .param .b32 x; sub.u32 d, d, 1; st.param.b32 [x], d; call.uni say, (x); } ret;
PRINT: mov.u64 a, args; cvta.local.u64 a, a; mov.u32 n, %tid.x; st.u32 [a], n; mov.u32 n, %ctaid.x; st.u32 [a+4], n; mov.u64 f, format;
  { .param .b64 p0; .param .b64 p1; .param .b32 r0; st.param.b64 [p0], f; st.param.b64 [p1], a; call.uni (r0), vprintf, (p0, p1); }
  ret; }
.entry k() { { .param .b32 x; .reg .b32 d; mov.u32 d, %tid.x; and.b32 d, d, 7; st.param.b32 [x], d; call say, (x); } ret; })");
    const LaunchResult r = device.launch(*module->find_kernel("k"), {3, 1, 1}, {40, 1, 1}, {});
    BOOST_TEST(r.message == "");
    BOOST_TEST(std::count(device.output.begin(), device.output.end(), '\n') == 120);
    for (int b = 0; b < 3; ++b)
        for (int t = 0; t < 40; ++t)
            BOOST_TEST(device.output.find(std::to_string(t) + "." + std::to_string(b) + "\n") !=
                       std::string::npos);
}

BOOST_AUTO_TEST_CASE(assert_and_malloc) {
    Device device;
    const auto module = device.load(std::string(kHeader) + kPrintf + bytes_of("m", "n > 0") +
                                    bytes_of("f", "a.cu") + bytes_of("fn", "void k(int)") + R"(
.entry check() { .reg .b32 t; .reg .pred p; mov.u32 t, %tid.x; setp.ne.u32 p, t, 33; @p ret;
  { .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4; .reg .b64 a;
    mov.u64 a, m; st.param.b64 [p0], a; mov.u64 a, f; st.param.b64 [p1], a; st.param.b32 [p2], 17; mov.u64 a, fn; st.param.b64 [p3], a; st.param.b64 [p4], 1;
    call.uni __assertfail, (p0, p1, p2, p3, p4); }
  ret; }
.entry heap(.param .u64 out) { .reg .b64 a, o, i; .reg .b32 t; ld.param.u64 o, [out]; mov.u32 t, %tid.x; cvt.u64.u32 i, t; mad.lo.u64 o, i, 8, o;
  { .param .b64 p0; .param .b64 r0; st.param.b64 [p0], 100; call.uni (r0), malloc, (p0); ld.param.b64 a, [r0]; }
  st.u32 [a+96], t; ld.u32 t, [a+96]; st.global.u64 [o], a;
  { .param .b64 p0; st.param.b64 [p0], a; call.uni free, (p0); }
  ret; })");
    const LaunchResult r = device.launch(*module->find_kernel("check"), {1, 1, 1}, {64, 1, 1}, {});
    BOOST_TEST(int(r.status) == int(Status::assert_failed));
    BOOST_TEST(device.errors ==
               "a.cu:17: void k(int): block: [0,0,0], thread: [33,0,0] Assertion `n > 0` failed.\n");

    const u64 room = device.allocate(1 << 20), out = device.allocate(4096);
    DeviceHeap heap(room, 1 << 20);
    LaunchOptions options;
    options.heap = &heap;
    BOOST_TEST(device.launch(*module->find_kernel("heap"), {1, 1, 1}, {64, 1, 1}, {out}, options).message ==
               "");
    auto given = device.download<u64>(out, 64);
    std::sort(given.begin(), given.begin() + 32);
    for (std::size_t i = 1; i < 32; ++i)
        BOOST_TEST(given[i] - given[i - 1] >= 100U);
    BOOST_TEST(heap.allocate(1 << 20) == room); // all was given back
    BOOST_TEST(heap.allocate(16) == 0U);
    BOOST_TEST(!heap.release(room + 16));
}

BOOST_AUTO_TEST_CASE(shared_memory_of_functions) {
    // Variables a function uses lie apart from a kernel's own; each kernel counts what it reaches.
    Device device;
    const auto module = device.load(std::string(kHeader) + R"(
.shared .align 4 .b8 common[64];
.shared .align 4 .b8 only[128];
.func touch() { .shared .align 4 .b8 inner[16]; st.shared.u32 [common], 1; st.shared.u32 [inner], 2; ret; }
.entry with(.param .u64 out) { .shared .align 4 .b8 own[32]; .reg .b64 o; .reg .b32 t; ld.param.u64 o, [out]; st.shared.u32 [own], 5; call touch; ld.shared.u32 t, [own]; st.global.u32 [o], t; ret; }
.entry without() { st.shared.u32 [only], 1; ret; })");
    BOOST_TEST(module->find_kernel("with")->static_shared_bytes == 64U + 16 + 32);
    BOOST_TEST(module->find_kernel("without")->static_shared_bytes == 128U);
    const u64 out = device.allocate(4096);
    BOOST_TEST(device.launch(*module->find_kernel("with"), {1, 1, 1}, {1, 1, 1}, {out}).message == "");
    BOOST_TEST(device.download<u32>(out, 1)[0] == 5U);
}

BOOST_AUTO_TEST_SUITE_END()
