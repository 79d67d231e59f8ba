// SPDX-License-Identifier: BSD-3-Clause
// A failed assert in a kernel is cudaErrorAssert, from then on for every call.
#include <cassert>

#include "check.h"

__global__ void claim(int* data, int bound) {
    assert(data[threadIdx.x] < bound);
    data[threadIdx.x] = bound;
}

int main() {
    std::vector<int> in(32);
    for (int i = 0; i < 32; ++i)
        in[i] = i;
    Buffer<int> data(in);
    claim<<<1, 32>>>(data, 32);
    LAUNCHED();
    CHECK(cudaDeviceSynchronize());
    EXPECT_EQ(data.read()[0], 32);
    claim<<<1, 32>>>(data, 5);
    LAUNCHED();
    EXPECT(cudaDeviceSynchronize() == cudaErrorAssert);
    int* more = nullptr;
    EXPECT(cudaMalloc(&more, 4) == cudaErrorAssert);
    EXPECT(cudaGetLastError() == cudaErrorAssert);
    return finish();
}
