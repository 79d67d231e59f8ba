// SPDX-License-Identifier: BSD-3-Clause
// Holds memory and launches kernels for some seconds: something to watch, or to kill.
// Build: nvcc spinner.cu -o spinner   Usage: spinner [SECONDS [MiB]]
#include <chrono>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "spinner: %s: %s (%s)\n", #call, cudaGetErrorString(error_),                \
                         cudaGetErrorName(error_));                                                          \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

__global__ void step(unsigned* values, unsigned rounds) {
    unsigned* value = values + blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = *value;
    for (unsigned i = 0; i < rounds; ++i)
        x = x * 1664525u + 1013904223u;
    *value = x;
}

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const size_t mebibytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 16;
    constexpr unsigned kThreads = 256, kRounds = 2000;
    unsigned host[kThreads] = {}, *values = nullptr;
    void* ballast = nullptr;
    CHECK(cudaMalloc(&values, sizeof host));
    CHECK(cudaMalloc(&ballast, mebibytes << 20));
    CHECK(cudaMemset(values, 0, sizeof host));
    CHECK(cudaDeviceSynchronize());
    std::printf("spinner: running for %g s with %zu MiB\n", seconds, mebibytes);
    std::fflush(stdout);
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    unsigned launches = 0;
    do {
        step<<<kThreads / 64, 64>>>(values, kRounds);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        ++launches;
    } while (std::chrono::steady_clock::now() < end);
    CHECK(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(ballast));
    CHECK(cudaFree(values));
    unsigned expected = 0;
    for (unsigned long long i = 0; i < 1ull * launches * kRounds; ++i)
        expected = expected * 1664525u + 1013904223u;
    unsigned wrong = 0;
    for (unsigned value : host)
        wrong += value != expected;
    std::printf("spinner: %u launches, %u wrong\n", launches, wrong);
    return wrong == 0 ? 0 : 1;
}
