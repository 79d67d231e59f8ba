// SPDX-License-Identifier: BSD-3-Clause
// Managed memory where the driver has it, as softgpu does: allocated, and as variables of the program.
#include "check.h"

__managed__ int shared_counter = 5;
__managed__ float table[32];

__global__ void work(int* data, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] = data[i] * 2 + 1;
    if (i < 32)
        table[i] += static_cast<float>(i);
    if (i == 0)
        atomicAdd(&shared_counter, 37);
}

int main() {
    const int n = 500;
    int* data = nullptr;
    CHECK(cudaMallocManaged(&data, n * sizeof(int)));
    for (int i = 0; i < n; ++i)
        data[i] = i;
    for (int i = 0; i < 32; ++i)
        table[i] = 0.5f;
    work<<<4, 128>>>(data, n);
    LAUNCHED();
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; ++i)
        EXPECT_EQ(data[i], 2 * i + 1);
    for (int i = 0; i < 32; ++i)
        EXPECT_EQ(table[i], i + 0.5f);
    EXPECT_EQ(shared_counter, 42);
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, data));
    EXPECT(attributes.type == cudaMemoryTypeManaged);
    CHECK(cudaFree(data));
    return finish();
}
