// SPDX-License-Identifier: BSD-3-Clause
// C = A B with tiles in shared memory. Build: nvcc -cudart shared matmul.cu -o matmul
// Usage: matmul [N], a multiple of 16.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "matmul: %s: %s (%s)\n", #call, cudaGetErrorString(error_),                 \
                         cudaGetErrorName(error_));                                                          \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

constexpr int kTile = 16;

__global__ void multiply(int n, const float* a, const float* b, float* c) {
    __shared__ float tile_a[kTile][kTile];
    __shared__ float tile_b[kTile][kTile];
    const int row = blockIdx.y * kTile + threadIdx.y;
    const int column = blockIdx.x * kTile + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += kTile) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
        __syncthreads();
        for (int i = 0; i < kTile; ++i)
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

int main(int argc, char** argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 256;
    if (n <= 0 || n % kTile != 0 || n > 8192) {
        std::fprintf(stderr, "matmul: the size must be a multiple of %d up to 8192, not %s\n", kTile,
                     argv[1]);
        return 2;
    }
    const size_t count = static_cast<size_t>(n) * n, bytes = count * sizeof(float);
    std::vector<float> a(count), b(count), c(count);
    // Small integers: sums stay below 2^24, so that float arithmetic is exact in any order.
    for (size_t i = 0; i < count; ++i) {
        a[i] = static_cast<float>(static_cast<int>(i * 7 % 13) - 6);
        b[i] = static_cast<float>(static_cast<int>(i * 5 % 11) - 5);
    }
    float *device_a = nullptr, *device_b = nullptr, *device_c = nullptr;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_c, bytes));
    CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    multiply<<<dim3(n / kTile, n / kTile), dim3(kTile, kTile)>>>(n, device_a, device_b, device_c);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(stop));
    CHECK(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));

    std::vector<float> expected(count, 0.0f);
    for (int row = 0; row < n; ++row)
        for (int k = 0; k < n; ++k)
            for (int column = 0; column < n; ++column)
                expected[static_cast<size_t>(row) * n + column] +=
                    a[static_cast<size_t>(row) * n + k] * b[static_cast<size_t>(k) * n + column];
    double worst = 0;
    for (size_t i = 0; i < count; ++i) {
        const double error = std::fabs(static_cast<double>(c[i]) - expected[i]);
        if (!(error <= worst))
            worst = error;
    }
    cudaDeviceProp properties;
    char pci[32] = "";
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaDeviceGetPCIBusId(pci, sizeof pci, 0));
    std::printf("matmul: %d x %d, max error %g, %.3f ms, on GPU %s (%s)\n", n, n, worst, milliseconds,
                properties.name, pci);
    return worst == 0 ? 0 : 1;
}
