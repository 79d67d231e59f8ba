// SPDX-License-Identifier: BSD-3-Clause
// Allocates until the device refuses, which must be by cudaErrorMemoryAllocation, near the size that the
// device says it has, and must leave the device usable. Build: nvcc oom_probe.cu -o oom_probe   Usage:
// oom_probe [EXPECTED MiB]
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "oom_probe: %s: %s (%s)\n", #call, cudaGetErrorString(error_),              \
                         cudaGetErrorName(error_));                                                          \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

int main(int argc, char** argv) {
    const size_t mebibyte = 1 << 20, chunk = 32 * mebibyte;
    size_t free_bytes = 0, total_bytes = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (argc > 1 && total_bytes != static_cast<size_t>(std::atoll(argv[1])) * mebibyte) {
        std::fprintf(stderr, "oom_probe: the device has %zu MiB, not %s\n", total_bytes / mebibyte, argv[1]);
        return 1;
    }
    std::vector<void*> held;
    cudaError_t error = cudaSuccess;
    while (held.size() * chunk <= total_bytes) {
        void* pointer = nullptr;
        error = cudaMalloc(&pointer, chunk);
        if (error != cudaSuccess)
            break;
        held.push_back(pointer);
    }
    const size_t got = held.size() * chunk;
    std::printf("oom_probe: %zu of %zu MiB (%zu free) allocated, then %s\n", got / mebibyte,
                total_bytes / mebibyte, free_bytes / mebibyte, cudaGetErrorName(error));
    if (error != cudaErrorMemoryAllocation || cudaGetLastError() != cudaErrorMemoryAllocation)
        return 1;
    if (got > free_bytes || free_bytes - got > free_bytes / 8 + chunk) {
        std::fprintf(stderr, "oom_probe: that is not what was free\n");
        return 1;
    }
    for (void* pointer : held)
        CHECK(cudaFree(pointer));
    void* pointer = nullptr;
    CHECK(cudaMalloc(&pointer, chunk));
    CHECK(cudaMemset(pointer, 1, chunk));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(pointer));
    return 0;
}
