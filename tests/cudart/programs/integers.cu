// SPDX-License-Identifier: BSD-3-Clause
// Integer arithmetic and bit operations of all widths against the CPU's.
#include <cstring>

#include "check.h"

struct Row {
    int32_t a, b;
    uint32_t u, v;
    int64_t p, q;
    uint64_t x, y;
};

constexpr int kResults = 40;

__device__ __host__ inline int clz32(uint32_t x) {
#ifdef __CUDA_ARCH__
    return __clz(x);
#else
    return x ? __builtin_clz(x) : 32;
#endif
}

__device__ __host__ void compute(const Row& r, uint64_t* out) {
    int n = 0;
    out[n++] = static_cast<uint32_t>(r.a + r.b);
    out[n++] = static_cast<uint32_t>(static_cast<uint32_t>(r.a) * static_cast<uint32_t>(r.b));
    out[n++] = static_cast<uint32_t>(r.b ? (r.b == -1 ? 0 : r.a / r.b) : 0);
    out[n++] = static_cast<uint32_t>(r.b ? (r.b == -1 ? 0 : r.a % r.b) : 0);
    out[n++] = r.v ? r.u / r.v : 0;
    out[n++] = r.v ? r.u % r.v : 0;
    out[n++] = static_cast<uint64_t>(r.p) * static_cast<uint64_t>(r.q);
    out[n++] = r.q && r.q != -1 ? static_cast<uint64_t>(r.p / r.q) : 0;
    out[n++] = r.q && r.q != -1 ? static_cast<uint64_t>(r.p % r.q) : 0;
    out[n++] = r.y ? r.x / r.y : 0;
    out[n++] = r.y ? r.x % r.y : 0;
    out[n++] = static_cast<uint32_t>(r.a >> (r.u & 31));
    out[n++] = r.u >> (r.v & 31);
    out[n++] = r.u << (r.v & 31);
    out[n++] = static_cast<uint64_t>(r.p >> (r.u & 63));
    out[n++] = r.x << (r.u & 63);
    out[n++] = (r.u & r.v) ^ (r.u | ~r.v);
    out[n++] = static_cast<uint64_t>(clz32(r.u));
    out[n++] = r.a < r.b ? r.u : r.v;
    out[n++] = r.x < r.y;
    out[n++] = r.p <= r.q;
    out[n++] = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(r.u)));
    out[n++] = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(r.v)));
    out[n++] = static_cast<uint8_t>(r.x);
    out[n++] = static_cast<uint64_t>(static_cast<int64_t>(r.a) * r.b);
    out[n++] = static_cast<uint64_t>(r.u) * r.v;
    out[n++] = static_cast<uint32_t>(r.a < 0 ? -static_cast<uint32_t>(r.a) : r.a);
    out[n++] = static_cast<uint64_t>(static_cast<float>(r.u));
    out[n++] = static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(r.p) / 3));
    out[n++] = static_cast<uint32_t>(r.a < r.b ? r.a : r.b);
#ifdef __CUDA_ARCH__
    out[n++] = __popc(r.u);
    out[n++] = __popcll(r.x);
    out[n++] = __brev(r.u);
    out[n++] = __ffs(r.a);
    out[n++] = __umulhi(r.u, r.v);
    out[n++] = static_cast<uint32_t>(__mulhi(r.a, r.b));
    out[n++] = __umul64hi(r.x, r.y);
    out[n++] = __byte_perm(r.u, r.v, 0x3715);
    out[n++] = __funnelshift_l(r.u, r.v, 11);
    out[n++] = __usad(r.u, r.v, 9);
#else
    out[n++] = static_cast<uint64_t>(__builtin_popcount(r.u));
    out[n++] = static_cast<uint64_t>(__builtin_popcountll(r.x));
    uint32_t reversed = 0;
    for (int i = 0; i < 32; ++i)
        reversed |= ((r.u >> i) & 1) << (31 - i);
    out[n++] = reversed;
    out[n++] = static_cast<uint64_t>(__builtin_ffs(r.a));
    out[n++] = static_cast<uint32_t>((static_cast<uint64_t>(r.u) * r.v) >> 32);
    out[n++] = static_cast<uint32_t>((static_cast<int64_t>(r.a) * r.b) >> 32);
    out[n++] = static_cast<uint64_t>((static_cast<unsigned __int128>(r.x) * r.y) >> 64);
    const uint64_t bytes = (static_cast<uint64_t>(r.v) << 32) | r.u;
    uint32_t permuted = 0;
    const int selector[] = {5, 1, 7, 3};
    for (int i = 0; i < 4; ++i)
        permuted |= static_cast<uint32_t>((bytes >> (8 * selector[i])) & 0xff) << (8 * i);
    out[n++] = permuted;
    out[n++] = static_cast<uint32_t>((r.v << 11) | (r.u >> 21));
    out[n++] = static_cast<uint32_t>((r.u > r.v ? r.u - r.v : r.v - r.u) + 9);
#endif
}

__global__ void run(const Row* rows, uint64_t* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        compute(rows[i], out + i * kResults);
}

int main() {
    Random random(37);
    const int n = 600;
    std::vector<Row> rows(n);
    for (int i = 0; i < n; ++i) {
        Row& r = rows[i];
        r.x = random.next64();
        r.y = random.next64() >> (random.next() % 64);
        r.p = static_cast<int64_t>(random.next64());
        r.q = static_cast<int64_t>(random.next64()) >> (random.next() % 64);
        r.u = static_cast<uint32_t>(random.next64());
        r.v = static_cast<uint32_t>(random.next64()) >> (random.next() % 32);
        r.a = static_cast<int32_t>(random.next64()) / 2;
        r.b = (static_cast<int32_t>(random.next64()) / 2) >> (random.next() % 31);
        if (i % 50 == 0)
            r.u = 0;
        if (i % 60 == 0)
            r.a = r.b;
    }
    Buffer<Row> device(rows);
    Buffer<uint64_t> out(n * kResults);
    run<<<(n + 63) / 64, 64>>>(device, out, n);
    LAUNCHED();
    const std::vector<uint64_t> results = out.read();
    for (int i = 0; i < n; ++i) {
        uint64_t expected[kResults];
        compute(rows[i], expected);
        for (int f = 0; f < kResults; ++f)
            if (results[i * kResults + f] != expected[f] && failures()++ < 10)
                std::fprintf(stderr, "result %d of row %d: %016llx, not %016llx\n", f, i,
                             static_cast<unsigned long long>(results[i * kResults + f]),
                             static_cast<unsigned long long>(expected[f]));
    }
    return finish();
}
