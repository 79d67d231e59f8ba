// SPDX-License-Identifier: BSD-3-Clause
// nvcc: --default-stream per-thread
// Compiled for a default stream per thread: every call goes by its variant of another name.
#include <atomic>
#include <thread>

#include "check.h"

__constant__ int addend;
__global__ void add(int* data, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] += addend;
}

int main() {
    const int n = 500, value = 9;
    CHECK(cudaMemcpyToSymbol(addend, &value, sizeof value));
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            std::vector<int> host(n, t), back(n);
            int* device = nullptr;
            if (cudaMallocAsync(&device, n * sizeof(int), 0) != cudaSuccess)
                return;
            if (cudaMemcpyAsync(device, host.data(), n * sizeof(int), cudaMemcpyHostToDevice) != cudaSuccess)
                return;
            add<<<4, 128>>>(device, n);
            if (cudaMemset(device, 0, 4) != cudaSuccess)
                return;
            if (cudaMemcpy(back.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess)
                return;
            bool good = back[0] == 0 && cudaStreamQuery(0) == cudaSuccess;
            for (int i = 1; i < n; ++i)
                good = good && back[i] == t + value;
            right +=
                good && cudaFreeAsync(device, 0) == cudaSuccess && cudaStreamSynchronize(0) == cudaSuccess;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(right.load(), 3);
    return finish();
}
