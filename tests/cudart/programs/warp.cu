// SPDX-License-Identifier: BSD-3-Clause
// nvcc: -arch=compute_80
// What lanes of a warp do together and apart: shuffles, votes, match, divergence, masks, progress of single
// lanes.
#include "check.h"

__global__ void shuffles(int* out) {
    const int lane = threadIdx.x, value = lane * lane + 1;
    out[lane] = __shfl_sync(~0u, value, (lane + 5) % 32);
    out[32 + lane] = __shfl_up_sync(~0u, value, 3);
    out[64 + lane] = __shfl_down_sync(~0u, value, 3, 8);
    out[96 + lane] = __shfl_xor_sync(~0u, value, 10);
    out[128 + lane] = __shfl_sync(~0u, value, 2, 16);
    const double wide = lane * 1.5;
    out[160 + lane] = static_cast<int>(__shfl_sync(~0u, wide, 31 - lane) * 2);
}

__global__ void votes(unsigned* out) {
    const int lane = threadIdx.x;
    out[lane] = __ballot_sync(~0u, lane % 3 == 1);
    out[32 + lane] = __all_sync(~0u, lane < 32) + 2 * __all_sync(~0u, lane < 31) +
                     4 * __any_sync(~0u, lane == 7) + 8 * __any_sync(~0u, lane > 31);
    out[64 + lane] = __match_any_sync(~0u, lane / 5);
    int all = -1;
    out[96 + lane] = __match_all_sync(~0u, 42, &all) + all;
    out[128 + lane] = 0;
    if (lane & 1) {
        out[128 + lane] = __activemask();
        if (lane & 2)
            out[128 + lane] = __ballot_sync(0xccccccccu & 0xaaaaaaaau, lane > 10);
    }
    out[160 + lane] = __reduce_add_sync(~0u, lane);
}

__global__ void diverge(int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int steps = 0;
    unsigned long long x = i + 1;
    while (x != 1) {
        if (x % 2 == 0) {
            x /= 2;
        } else {
            x = 3 * x + 1;
            if (steps > 10000)
                break;
        }
        ++steps;
    }
    switch (i % 5) {
    case 0:
        steps += 1000;
        break;
    case 1:
        steps *= 2;
        [[fallthrough]];
    case 2:
        steps += 5;
        break;
    default:
        if (i % 7 == 0)
            return;
    }
    out[i] = steps;
}

// Each lane of a warp takes the lock in turn: lanes must make progress one without the others.
__global__ void lock_step(int* lock, int* counter, int rounds) {
    for (int r = 0; r < rounds; ++r) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        *reinterpret_cast<volatile int*>(counter) = *reinterpret_cast<volatile int*>(counter) + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

// Half of the warp waits for the other half.
__global__ void hand_over(volatile int* mailbox, int* out) {
    const int lane = threadIdx.x;
    if (lane < 16) {
        while (mailbox[lane] == 0) {
        }
        out[lane] = mailbox[lane] * 2;
    } else {
        __threadfence();
        mailbox[lane - 16] = lane;
    }
    __syncwarp();
    out[32 + lane] = 1;
}

int main() {
    Buffer<int> ints(192);
    shuffles<<<1, 32>>>(ints);
    LAUNCHED();
    const std::vector<int> s = ints.read();
    const auto value = [](int lane) { return lane * lane + 1; };
    for (int i = 0; i < 32; ++i) {
        EXPECT_EQ(s[i], value((i + 5) % 32));
        EXPECT_EQ(s[32 + i], value(i < 3 ? i : i - 3));
        EXPECT_EQ(s[64 + i], value(i % 8 < 5 ? i + 3 : i));
        EXPECT_EQ(s[96 + i], value(i ^ 10));
        EXPECT_EQ(s[128 + i], value(i / 16 * 16 + 2));
        EXPECT_EQ(s[160 + i], (31 - i) * 3);
    }
    Buffer<unsigned> masks(192);
    votes<<<1, 32>>>(masks);
    LAUNCHED();
    const std::vector<unsigned> v = masks.read();
    unsigned thirds = 0, high = 0;
    for (int i = 0; i < 32; ++i) {
        if (i % 3 == 1)
            thirds |= 1u << i;
        if (i > 10 && (i & 3) == 3)
            high |= 1u << i;
    }
    for (int i = 0; i < 32; ++i) {
        unsigned group = 0;
        for (int j = 0; j < 32; ++j)
            if (j / 5 == i / 5)
                group |= 1u << j;
        EXPECT_EQ(v[i], thirds);
        EXPECT_EQ(v[32 + i], 5u);
        EXPECT_EQ(v[64 + i], group);
        EXPECT_EQ(v[96 + i], 0u); // ~0 + 1
        if ((i & 3) == 3)
            EXPECT_EQ(v[128 + i], high);
        if ((i & 3) == 1)
            EXPECT((v[128 + i] & (1u << i)) != 0 && (v[128 + i] & 0x55555555u) == 0);
        EXPECT_EQ(v[160 + i], 496u);
    }
    const int n = 1000;
    Buffer<int> steps(n);
    steps.clear();
    diverge<<<5, 224>>>(steps, n);
    LAUNCHED();
    const std::vector<int> counted = steps.read();
    for (int i = 0; i < n; ++i) {
        int expected = 0;
        for (unsigned long long x = i + 1; x != 1; ++expected)
            x = x % 2 ? 3 * x + 1 : x / 2;
        if (i % 5 == 0)
            expected += 1000;
        if (i % 5 == 1)
            expected *= 2;
        if (i % 5 == 1 || i % 5 == 2)
            expected += 5;
        if (i % 5 > 2 && i % 7 == 0)
            expected = 0;
        EXPECT_EQ(counted[i], expected);
    }
    Buffer<int> lock(1), counter(1);
    lock.clear();
    counter.clear();
    lock_step<<<3, 32>>>(lock, counter, 3);
    LAUNCHED();
    EXPECT_EQ(counter.read()[0], 3 * 32 * 3);
    Buffer<int> mailbox(16), received(64);
    mailbox.clear();
    received.clear();
    hand_over<<<1, 32>>>(mailbox, received);
    LAUNCHED();
    const std::vector<int> got = received.read();
    for (int i = 0; i < 16; ++i)
        EXPECT_EQ(got[i], (i + 16) * 2);
    for (int i = 0; i < 32; ++i)
        EXPECT_EQ(got[32 + i], 1);
    return finish();
}
