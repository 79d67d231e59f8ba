// SPDX-License-Identifier: BSD-3-Clause
// A vector addition whose kernel also prints. Build: nvcc vector_add_printf.cu -o vector_add_printf
#include <cstdio>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "vector_add_printf: %s: %s (%s)\n", #call, cudaGetErrorString(error_),      \
                         cudaGetErrorName(error_));                                                          \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

__global__ void add(int n, const int* a, const int* b, int* c) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    c[i] = a[i] + b[i];
    if (i % 256 == 0)
        printf("block %d of %d: %d + %d = %d, %s %.2f\n", blockIdx.x, gridDim.x, a[i], b[i], c[i], "pi",
               3.14159);
}

int main() {
    constexpr int n = 1000;
    int a[n], b[n], c[n];
    for (int i = 0; i < n; ++i) {
        a[i] = i;
        b[i] = 2 * i;
        c[i] = 0;
    }
    int* device = nullptr;
    CHECK(cudaMalloc(&device, 3 * sizeof a));
    CHECK(cudaMemcpy(device, a, sizeof a, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device + n, b, sizeof b, cudaMemcpyHostToDevice));
    add<<<(n + 127) / 128, 128>>>(n, device, device + n, device + 2 * n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(c, device + 2 * n, sizeof c, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    for (int i = 0; i < n; ++i)
        if (c[i] != 3 * i) {
            std::fprintf(stderr, "vector_add_printf: element %d is %d, not %d\n", i, c[i], 3 * i);
            return 1;
        }
    std::printf("vector_add_printf: %d elements right\n", n);
    return 0;
}
