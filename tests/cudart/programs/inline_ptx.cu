// SPDX-License-Identifier: BSD-3-Clause
// PTX written by hand: carries, wide products, predicates, vector loads, bit fields, branches, shared
// addresses.
#include "check.h"

struct Wide {
    uint64_t low, high;
};

__global__ void add128(const Wide* a, const Wide* b, Wide* sum, Wide* difference, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Wide s, d;
    asm("add.cc.u64 %0, %2, %4; addc.u64 %1, %3, %5;"
        : "=l"(s.low), "=l"(s.high)
        : "l"(a[i].low), "l"(a[i].high), "l"(b[i].low), "l"(b[i].high));
    asm("sub.cc.u64 %0, %2, %4; subc.u64 %1, %3, %5;"
        : "=l"(d.low), "=l"(d.high)
        : "l"(a[i].low), "l"(a[i].high), "l"(b[i].low), "l"(b[i].high));
    sum[i] = s;
    difference[i] = d;
}

__global__ void pieces(const uint32_t* in, uint32_t* out) {
    __shared__ uint32_t box[64];
    const uint32_t x = in[threadIdx.x];
    uint32_t field, inserted, chosen, first, second, high;
    asm("bfe.u32 %0, %1, 5, 11;" : "=r"(field) : "r"(x));
    asm("bfi.b32 %0, %1, %2, 8, 12;" : "=r"(inserted) : "r"(x), "r"(~x));
    asm("{ .reg .pred p; setp.gt.and.u32 p, %1, 1000, 1; @p mov.u32 %0, 7; @!p add.u32 %0, %1, 1; }"
        : "=r"(chosen)
        : "r"(x));
    asm("{ .reg .u64 t; mul.wide.u32 t, %1, %1; shr.u64 t, t, 32; cvt.u32.u64 %0, t; }"
        : "=r"(high)
        : "r"(x));
    box[threadIdx.x] = x;
    __syncthreads();
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(&box[threadIdx.x & ~1]));
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(first), "=r"(second) : "r"(address));
    uint32_t* const row = out + threadIdx.x * 6;
    row[0] = field;
    row[1] = inserted;
    row[2] = chosen;
    row[3] = first ^ (second << 1);
    row[4] = high;
    uint32_t count = 0;
    asm volatile("{\n .reg .pred q;\n .reg .u32 r;\n mov.u32 r, %1;\n"
                 "again:\n and.b32 r, r, 0xffff;\n shr.u32 r, r, 1;\n add.u32 %0, %0, 1;\n setp.ne.u32 q, r, "
                 "0;\n @q bra again;\n}\n"
                 : "+r"(count)
                 : "r"(x));
    row[5] = count;
}

int main() {
    Random random(53);
    const int n = 200;
    std::vector<Wide> a(n), b(n);
    for (int i = 0; i < n; ++i) {
        a[i] = {random.next64(), random.next64()};
        b[i] = {random.next64(), random.next64()};
    }
    Buffer<Wide> device_a(a), device_b(b), sum(n), difference(n);
    add128<<<2, 128>>>(device_a, device_b, sum, difference, n);
    LAUNCHED();
    const std::vector<Wide> s = sum.read(), d = difference.read();
    for (int i = 0; i < n; ++i) {
        const unsigned __int128 x = (static_cast<unsigned __int128>(a[i].high) << 64) | a[i].low;
        const unsigned __int128 y = (static_cast<unsigned __int128>(b[i].high) << 64) | b[i].low;
        EXPECT(s[i].low == static_cast<uint64_t>(x + y) && s[i].high == static_cast<uint64_t>((x + y) >> 64));
        EXPECT(d[i].low == static_cast<uint64_t>(x - y) && d[i].high == static_cast<uint64_t>((x - y) >> 64));
    }
    std::vector<uint32_t> in(64);
    for (int i = 0; i < 64; ++i)
        in[i] = i % 3 ? random.next() * 2 : random.next() % 2000;
    Buffer<uint32_t> device_in(in), out(64 * 6);
    pieces<<<1, 64>>>(device_in, out);
    LAUNCHED();
    const std::vector<uint32_t> rows = out.read();
    for (int i = 0; i < 64; ++i) {
        const uint32_t x = in[i];
        EXPECT_EQ(rows[i * 6], (x >> 5) & 0x7ff);
        EXPECT_EQ(rows[i * 6 + 1], (~x & ~0xfff00u) | ((x & 0xfff) << 8));
        EXPECT_EQ(rows[i * 6 + 2], x > 1000 ? 7 : x + 1);
        EXPECT_EQ(rows[i * 6 + 3], in[i & ~1] ^ (in[i | 1] << 1));
        EXPECT_EQ(rows[i * 6 + 4], static_cast<uint32_t>((static_cast<uint64_t>(x) * x) >> 32));
        uint32_t count = 0, r = x;
        do {
            r = (r & 0xffff) >> 1;
            ++count;
        } while (r);
        EXPECT_EQ(rows[i * 6 + 5], count);
    }
    return finish();
}
