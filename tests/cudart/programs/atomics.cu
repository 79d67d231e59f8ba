// SPDX-License-Identifier: BSD-3-Clause
// Every atomic, on global and shared memory, with and without the old value, all blocks at once.
#include <cuda/atomic>

#include "check.h"

constexpr int kBlocks = 8, kThreads = 96, kTotal = kBlocks * kThreads;

struct Cells {
    int add, sub, low, high, bits_and, bits_or, bits_xor, exchanged, compared;
    unsigned inc, dec, unsigned_low, unsigned_high, shared_sum;
    unsigned long long add64, max64, or64, compare64;
    float add_float;
    double add_double;
    int old_values[kTotal];
};

__global__ void run(Cells* c) {
    __shared__ unsigned block_sum;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        block_sum = 0;
    __syncthreads();
    c->old_values[i] = atomicAdd(&c->add, 1);
    atomicSub(&c->sub, i);
    atomicMin(&c->low, -i);
    atomicMax(&c->high, i);
    atomicAnd(&c->bits_and, ~(1 << (i % 31)));
    atomicOr(&c->bits_or, 1 << (i % 31));
    atomicXor(&c->bits_xor, i);
    atomicExch(&c->exchanged, i);
    atomicInc(&c->inc, 99);
    atomicDec(&c->dec, 99);
    atomicMin(&c->unsigned_low, 0x80000000u + i);
    atomicMax(&c->unsigned_high, 0x80000000u + i);
    atomicAdd(&c->add64, 1ull << 33);
    atomicMax(&c->max64, (1ull << 40) + i);
    atomicOr(&c->or64, 1ull << (i % 64));
    atomicAdd(&c->add_float, 0.5f);
    atomicAdd(&c->add_double, 0.25);
    int seen = c->compared, assumed;
    do {
        assumed = seen;
        seen = atomicCAS(&c->compared, assumed, assumed + 3);
    } while (seen != assumed);
    unsigned long long seen64 = c->compare64, assumed64;
    do {
        assumed64 = seen64;
        seen64 = atomicCAS(&c->compare64, assumed64, assumed64 + (1ull << 35));
    } while (seen64 != assumed64);
    atomicAdd(&block_sum, i);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&c->shared_sum, block_sum);
}

__global__ void scoped(int* counter, int* order) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ref(*counter);
    order[blockIdx.x * blockDim.x + threadIdx.x] = ref.fetch_add(1, cuda::memory_order_acq_rel);
}

int main() {
    Cells start = {};
    start.bits_and = -1;
    start.unsigned_low = ~0u;
    start.dec = 5;
    Buffer<Cells> cells(std::vector<Cells>{start});
    run<<<kBlocks, kThreads>>>(cells);
    LAUNCHED();
    const std::vector<Cells> all = cells.read();
    const Cells& c = all[0];
    const int triangle = kTotal * (kTotal - 1) / 2;
    int bits_xor = 0;
    unsigned inc = 0, dec = 5;
    unsigned long long or64 = 0;
    int bits = 0;
    std::vector<int> seen(kTotal);
    for (int i = 0; i < kTotal; ++i) {
        bits_xor ^= i;
        inc = inc >= 99 ? 0 : inc + 1;
        dec = dec == 0 || dec > 99 ? 99 : dec - 1;
        or64 |= 1ull << (i % 64);
        bits |= 1 << (i % 31);
        if (c.old_values[i] >= 0 && c.old_values[i] < kTotal)
            ++seen[c.old_values[i]];
    }
    for (int count : seen)
        EXPECT_EQ(count, 1);
    EXPECT_EQ(c.add, kTotal);
    EXPECT_EQ(c.sub, -triangle);
    EXPECT_EQ(c.low, -(kTotal - 1));
    EXPECT_EQ(c.high, kTotal - 1);
    EXPECT_EQ(c.bits_and, ~bits);
    EXPECT_EQ(c.bits_or, bits);
    EXPECT_EQ(c.bits_xor, bits_xor);
    EXPECT(c.exchanged >= 0 && c.exchanged < kTotal);
    EXPECT_EQ(c.compared, 3 * kTotal);
    EXPECT_EQ(c.inc, inc);
    EXPECT_EQ(c.dec, dec);
    EXPECT_EQ(c.unsigned_low, 0x80000000u);
    EXPECT_EQ(c.unsigned_high, 0x80000000u + kTotal - 1);
    EXPECT_EQ(c.shared_sum, static_cast<unsigned>(triangle));
    EXPECT_EQ(c.add64, static_cast<unsigned long long>(kTotal) << 33);
    EXPECT_EQ(c.max64, (1ull << 40) + kTotal - 1);
    EXPECT_EQ(c.or64, or64);
    EXPECT_EQ(c.compare64, static_cast<unsigned long long>(kTotal) << 35);
    EXPECT_EQ(c.add_float, kTotal * 0.5f);
    EXPECT_EQ(c.add_double, kTotal * 0.25);

    Buffer<int> counter(1), order(128);
    counter.clear();
    scoped<<<2, 64>>>(counter, order);
    LAUNCHED();
    std::vector<int> places(128);
    for (int place : order.read())
        ++places.at(place);
    for (int count : places)
        EXPECT_EQ(count, 1);
    return finish();
}
