// SPDX-License-Identifier: BSD-3-Clause
// Cooperative groups: tiles, coalesced groups, block and grid synchronisation.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void tiles(const int* in, int* sums, int* ranks) {
    const cg::thread_block block = cg::this_thread_block();
    const auto tile = cg::tiled_partition<8>(block);
    int value = in[block.thread_rank()];
    for (int offset = tile.size() / 2; offset > 0; offset /= 2)
        value += tile.shfl_down(value, offset);
    if (tile.thread_rank() == 0)
        sums[block.thread_rank() / 8] = value;
    block.sync();
    if (block.thread_rank() % 3 == 0) {
        const cg::coalesced_group active = cg::coalesced_threads();
        ranks[block.thread_rank()] = active.thread_rank() * 100 + active.size();
    }
}

__global__ void reduced(const int* in, int* out) {
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    const int value = in[threadIdx.x];
    const int sum = cg::reduce(warp, value, cg::plus<int>());
    const int top = cg::reduce(warp, value, cg::greater<int>());
    if (warp.thread_rank() == 5) {
        out[2 * (threadIdx.x / 32)] = sum;
        out[2 * (threadIdx.x / 32) + 1] = top;
    }
}

// Each round reads what all other blocks wrote in the round before.
__global__ void rounds(unsigned* a, unsigned* b, int n, int count) {
    const cg::grid_group grid = cg::this_grid();
    const int i = grid.thread_rank();
    for (int r = 0; r < count; ++r) {
        b[i] = a[(i + n / 2 + 1) % n] * 3 + a[(i + 1) % n] + 1;
        grid.sync();
        unsigned* const t = a;
        a = b;
        b = t;
    }
}

int main() {
    std::vector<int> in(128);
    Random random(23);
    for (int& value : in)
        value = random.next() % 1000;
    Buffer<int> device_in(in), sums(16), ranks(128), warps(8);
    tiles<<<1, 128>>>(device_in, sums, ranks);
    reduced<<<1, 128>>>(device_in, warps);
    LAUNCHED();
    const std::vector<int> tile_sums = sums.read(), rank = ranks.read(), reductions = warps.read();
    for (int t = 0; t < 16; ++t) {
        int sum = 0;
        for (int i = 0; i < 8; ++i)
            sum += in[8 * t + i];
        EXPECT_EQ(tile_sums[t], sum);
    }
    for (int w = 0; w < 4; ++w) {
        int sum = 0, top = 0, members = 0, position = 0;
        for (int i = 0; i < 32; ++i) {
            sum += in[32 * w + i];
            top = in[32 * w + i] > top ? in[32 * w + i] : top;
            members += (32 * w + i) % 3 == 0;
        }
        EXPECT_EQ(reductions[2 * w], sum);
        EXPECT_EQ(reductions[2 * w + 1], top);
        for (int i = 0; i < 32; ++i)
            if ((32 * w + i) % 3 == 0)
                EXPECT_EQ(rank[32 * w + i], 100 * position++ + members);
    }

    int cooperative = 0;
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    EXPECT_EQ(cooperative, 1);
    int n = 4 * 64, count = 5;
    std::vector<unsigned> a(n), b(n);
    for (unsigned& value : a)
        value = random.next();
    Buffer<unsigned> device_a(a), device_b(n);
    unsigned *pa = device_a, *pb = device_b;
    void* arguments[] = {&pa, &pb, &n, &count};
    const auto* kernel = reinterpret_cast<const void*>(rounds);
    CHECK(cudaLaunchCooperativeKernel(kernel, dim3(4), dim3(64), arguments, 0, nullptr));
    for (int r = 0; r < count; ++r) {
        for (int i = 0; i < n; ++i)
            b[i] = a[(i + n / 2 + 1) % n] * 3 + a[(i + 1) % n] + 1;
        a.swap(b);
    }
    const std::vector<unsigned> out = device_b.read();
    for (int i = 0; i < n; ++i)
        EXPECT_EQ(out[i], a[i]);
    // More blocks than fit at once can never meet.
    EXPECT(cudaLaunchCooperativeKernel(kernel, dim3(1 << 20), dim3(64), arguments, 0, nullptr) ==
           cudaErrorCooperativeLaunchTooLarge);
    (void)cudaGetLastError();
    return finish();
}
