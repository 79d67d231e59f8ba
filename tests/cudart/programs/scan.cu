// SPDX-License-Identifier: BSD-3-Clause
// Prefix sums: Blelloch's in shared memory, warp scans by shuffles, and three kernels for many blocks.
#include "check.h"

__global__ void blelloch(int* data) {
    extern __shared__ int tree[];
    const int n = 2 * blockDim.x, thread = threadIdx.x;
    tree[2 * thread] = data[2 * thread];
    tree[2 * thread + 1] = data[2 * thread + 1];
    int offset = 1;
    for (int d = n >> 1; d > 0; d >>= 1, offset *= 2) {
        __syncthreads();
        if (thread < d)
            tree[offset * (2 * thread + 2) - 1] += tree[offset * (2 * thread + 1) - 1];
    }
    if (thread == 0)
        tree[n - 1] = 0;
    for (int d = 1; d < n; d *= 2) {
        offset >>= 1;
        __syncthreads();
        if (thread < d) {
            const int a = offset * (2 * thread + 1) - 1, b = offset * (2 * thread + 2) - 1, t = tree[a];
            tree[a] = tree[b];
            tree[b] += t;
        }
    }
    __syncthreads();
    data[2 * thread] = tree[2 * thread];
    data[2 * thread + 1] = tree[2 * thread + 1];
}

__device__ unsigned warp_scan(unsigned value) {
    const int lane = threadIdx.x & 31;
    for (int offset = 1; offset < 32; offset *= 2) {
        const unsigned other = __shfl_up_sync(~0u, value, offset);
        if (lane >= offset)
            value += other;
    }
    return value;
}

__global__ void scan_blocks(const unsigned* in, unsigned* out, unsigned* totals, int n) {
    __shared__ unsigned warps[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    unsigned value = warp_scan(i < n ? in[i] : 0);
    if (lane == 31)
        warps[warp] = value;
    __syncthreads();
    if (warp == 0)
        warps[lane] = warp_scan(lane < blockDim.x / 32 ? warps[lane] : 0);
    __syncthreads();
    if (warp > 0)
        value += warps[warp - 1];
    if (i < n)
        out[i] = value;
    if (totals && threadIdx.x == blockDim.x - 1)
        totals[blockIdx.x] = value;
}

__global__ void add_totals(unsigned* out, const unsigned* totals, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x > 0 && i < n)
        out[i] += totals[blockIdx.x - 1];
}

int main() {
    Random random(3);
    std::vector<int> small(512);
    for (int& value : small)
        value = random.next() % 100;
    Buffer<int> device_small(small);
    blelloch<<<1, 256, 512 * sizeof(int)>>>(device_small);
    LAUNCHED();
    const std::vector<int> scanned = device_small.read();
    for (int i = 0, sum = 0; i < 512; sum += small[i++])
        EXPECT_EQ(scanned[i], sum);

    const int n = 20000, block = 256, blocks = (n + block - 1) / block;
    std::vector<unsigned> in(n);
    for (unsigned& value : in)
        value = random.next();
    Buffer<unsigned> device_in(in), device_out(n), totals(blocks);
    scan_blocks<<<blocks, block>>>(device_in, device_out, totals, n);
    scan_blocks<<<1, 96>>>(totals, totals, nullptr, blocks);
    add_totals<<<blocks, block>>>(device_out, totals, n);
    LAUNCHED();
    const std::vector<unsigned> out = device_out.read();
    unsigned sum = 0;
    for (int i = 0; i < n; ++i)
        EXPECT_EQ(out[i], sum += in[i]);
    return finish();
}
