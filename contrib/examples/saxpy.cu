// SPDX-License-Identifier: BSD-3-Clause
// y = a x + y on 2^20 elements: the smallest whole CUDA program. Build: nvcc saxpy.cu -o saxpy
#include <cmath>
#include <cstdio>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "saxpy: %s: %s (%s)\n", #call, cudaGetErrorString(error_),                  \
                         cudaGetErrorName(error_));                                                          \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

__global__ void saxpy(int n, float a, const float* x, float* y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

int main() {
    const int n = 1 << 20;
    const float a = 2.5f;
    std::vector<float> x(n), y(n), result(n);
    for (int i = 0; i < n; ++i) {
        x[i] = static_cast<float>(i % 1000);
        y[i] = static_cast<float>(i % 77) - 38.0f;
    }

    float *device_x = nullptr, *device_y = nullptr;
    const size_t bytes = n * sizeof(float);
    CHECK(cudaMalloc(&device_x, bytes));
    CHECK(cudaMalloc(&device_y, bytes));
    CHECK(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_y, y.data(), bytes, cudaMemcpyHostToDevice));
    saxpy<<<(n + 255) / 256, 256>>>(n, a, device_x, device_y);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result.data(), device_y, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_y));

    // All values are small multiples of 1/2, so the right answer is exact.
    double worst = 0;
    for (int i = 0; i < n; ++i) {
        const double error =
            std::fabs(static_cast<double>(result[i]) - (static_cast<double>(a) * x[i] + y[i]));
        if (!(error <= worst))
            worst = error;
    }
    cudaDeviceProp properties;
    char pci[32] = "";
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaDeviceGetPCIBusId(pci, sizeof pci, 0));
    std::printf("saxpy: %d elements, max error %g, on GPU %s (%s)\n", n, worst, properties.name, pci);
    return worst == 0 ? 0 : 1;
}
