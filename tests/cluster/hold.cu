// SPDX-License-Identifier: BSD-3-Clause
// hold SECONDS: holds 8 MiB of a GPU and works on them until the time is over. Says "holding" when it has them, and the
// first error.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

__global__ void increment(unsigned* values, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        ++values[i];
}

static void check(cudaError_t error, const char* what) {
    if (error == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorName(error));
    std::exit(3);
}

int main(int argc, char** argv) {
    const unsigned count = 2 << 20;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 5);
    unsigned* values = nullptr;
    check(cudaMalloc(&values, count * sizeof *values), "cudaMalloc");
    check(cudaMemset(values, 0, count * sizeof *values), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::puts("holding");
    std::fflush(stdout);
    unsigned rounds = 0, last = 0;
    while (std::chrono::steady_clock::now() < end) {
        increment<<<1, 256>>>(values, count);
        check(cudaMemcpy(&last, values + 255, sizeof last, cudaMemcpyDeviceToHost), "cudaMemcpy");
        ++rounds;
        if (last != rounds) {
            std::printf("wrong: %u after %u rounds\n", last, rounds);
            return 4;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    check(cudaFree(values), "cudaFree");
    std::printf("held\n");
    return 0;
}
