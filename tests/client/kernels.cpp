// SPDX-License-Identifier: BSD-3-Clause
#include "tests/client/driver.h"

// add(out, a, b, n): out[i] = a[i] + b[i].   scale(out, n, factor): out[i] *= factor.
// mixed(out, byte, word, wide, real): one of each size, to see that parameters are packed as the kernel reads
// them. bad(p): stores to *p.   spin(ns): waits.   shared(out): returns what it finds of dynamic shared
// memory. `table` and `counter` are global variables.
const char driver::kernels[] = R"(
.version 7.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};
.visible .global .align 8 .u64 counter;
.extern .shared .align 16 .b8 dynamic[];

.visible .entry add(.param .u64 out, .param .u64 a, .param .u64 b, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<11>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [a];
    ld.param.u64 %rd3, [b];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd4, %rd1;
    cvta.to.global.u64 %rd5, %rd2;
    cvta.to.global.u64 %rd6, %rd3;
    mul.wide.u32 %rd7, %r5, 4;
    add.s64 %rd8, %rd5, %rd7;
    add.s64 %rd9, %rd6, %rd7;
    add.s64 %rd10, %rd4, %rd7;
    ld.global.f32 %f1, [%rd8];
    ld.global.f32 %f2, [%rd9];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd10], %f3;
DONE:
    ret;
}

.visible .entry scale(.param .u64 out, .param .u32 n, .param .u32 factor)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r6, [factor];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r7, [%rd4];
    mul.lo.u32 %r8, %r7, %r6;
    st.global.u32 [%rd4], %r8;
DONE:
    ret;
}

.visible .entry mixed(.param .u64 out, .param .u8 byte, .param .u16 word, .param .u64 wide, .param .f32 real)
{
    .reg .b16 %h<2>;
    .reg .b32 %r<3>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u8 %r1, [byte];
    st.global.u32 [%rd2], %r1;
    ld.param.u16 %h1, [word];
    cvt.u32.u16 %r2, %h1;
    st.global.u32 [%rd2+4], %r2;
    ld.param.u64 %rd3, [wide];
    st.global.u64 [%rd2+8], %rd3;
    ld.param.f32 %f1, [real];
    st.global.f32 [%rd2+16], %f1;
    ret;
}

.visible .entry bad(.param .u64 p)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 1;
    st.global.u32 [%rd2], %r1;
    ret;
}

.visible .entry shared(.param .u64 out, .param .u32 bytes)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [bytes];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r2, dynamic;
    add.u32 %r3, %r2, %r1;
    mov.u32 %r4, 77;
    st.shared.u32 [%r3+-4], %r4;
    ld.shared.u32 %r5, [%r3+-4];
    st.global.u32 [%rd2], %r5;
    ret;
}

.visible .entry count()
{
    .reg .b64 %rd<3>;
    mov.u64 %rd1, counter;
    atom.global.add.u64 %rd2, [%rd1], 1;
    ret;
}

.visible .entry bounded(.param .u64 out)
.maxntid 64, 1, 1
{
    ret;
}
)";
