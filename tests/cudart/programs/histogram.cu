// SPDX-License-Identifier: BSD-3-Clause
// A histogram with a private copy in shared memory for each block, fed from bytes read as 32-bit words.
#include "check.h"

__global__ void histogram(const uint32_t* words, int count, unsigned* bins) {
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const uint32_t word = words[i];
        atomicAdd(&local[word & 0xff], 1u);
        atomicAdd(&local[(word >> 8) & 0xff], 1u);
        atomicAdd(&local[(word >> 16) & 0xff], 1u);
        atomicAdd(&local[word >> 24], 1u);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&bins[i], local[i]);
}

int main() {
    Random random(11);
    std::vector<uint32_t> words(25000);
    std::vector<unsigned> expected(256);
    for (uint32_t& word : words) {
        word = random.next() ^ (random.next() << 16);
        if (random.next() % 3 == 0)
            word &= 0x0f0f0f0f; // some bins are hot
        for (int shift = 0; shift < 32; shift += 8)
            ++expected[(word >> shift) & 0xff];
    }
    Buffer<uint32_t> in(words);
    Buffer<unsigned> bins(256);
    bins.clear();
    histogram<<<6, 128>>>(in, static_cast<int>(words.size()), bins);
    LAUNCHED();
    const std::vector<unsigned> out = bins.read();
    for (int i = 0; i < 256; ++i)
        EXPECT_EQ(out[i], expected[i]);
    return finish();
}
