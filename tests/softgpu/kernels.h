// SPDX-License-Identifier: BSD-3-Clause
// The PTX that the tests run.
#pragma once

namespace softgpu_test {

// add(int* out, int value, unsigned n): out[i] += value, twice over a shared array; store(int* to, int
// value); forever(); scale, a variable that is 5; answer, a constant that is 42; unused(int*).
inline constexpr const char* kernels = R"(
.version 6.4
.target sm_75
.address_size 64

.visible .global .align 4 .u32 scale = 5;
.visible .const .align 4 .u32 answer = 42;
.extern .shared .align 4 .b8 room[];

.visible .entry add(.param .u64 out, .param .u32 value, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r2;
    @%p1 bra done;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r6, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.u32 %r7, [%rd4];
    add.s32 %r8, %r7, %r1;
    st.global.u32 [%rd4], %r8;
done:
    ret;
}

.visible .entry store(.param .u64 to, .param .u32 value)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [value];
    st.global.u32 [%rd1], %r1;
    ret;
}

.visible .entry scaled(.param .u64 to)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [to];
    ld.global.u32 %r1, [scale];
    ld.const.u32 %r2, [answer];
    mul.lo.s32 %r3, %r1, %r2;
    st.global.u32 [%rd1], %r3;
    ret;
}

.visible .entry reverse(.param .u64 data)
{
    .reg .b32 %r<10>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.u32 %r3, [%rd3];
    mov.u32 %r4, room;
    shl.b32 %r5, %r1, 2;
    add.s32 %r6, %r4, %r5;
    st.shared.u32 [%r6], %r3;
    bar.sync 0;
    sub.s32 %r7, %r2, %r1;
    add.s32 %r7, %r7, -1;
    shl.b32 %r8, %r7, 2;
    add.s32 %r9, %r4, %r8;
    ld.shared.u32 %r3, [%r9];
    st.global.u32 [%rd3], %r3;
    ret;
}

.visible .entry forever(.param .u64 flag)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [flag];
again:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.s32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}

.visible .entry stop()
{
    trap;
}
)";

} // namespace softgpu_test
