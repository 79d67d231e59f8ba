// SPDX-License-Identifier: BSD-3-Clause
// Shows the size of the GPU and takes memory in pieces of 64 MiB until it is refused.
#include <cstdio>
#include <vector>

int main() {
    std::size_t free_bytes = 0, total = 0;
    cudaDeviceProp properties{};
    if (cudaMemGetInfo(&free_bytes, &total) != cudaSuccess || cudaGetDeviceProperties(&properties, 0) != cudaSuccess)
        return 3;
    const std::size_t piece = 64u << 20;
    std::printf("total %zu MiB, free %zu MiB, properties %zu MiB\n", total >> 20, free_bytes >> 20,
                properties.totalGlobalMem >> 20);
    std::vector<void*> pieces;
    void* memory = nullptr;
    cudaError_t error;
    while ((error = cudaMalloc(&memory, piece)) == cudaSuccess && pieces.size() < 1024)
        pieces.push_back(memory);
    std::printf("%zu pieces, then %s\n", pieces.size(), cudaGetErrorName(error));
    if (pieces.empty())
        return 3;
    // What is given back can be taken again.
    if (cudaFree(pieces.back()) != cudaSuccess || cudaMalloc(&memory, piece) != cudaSuccess)
        return 4;
    std::puts("taken again");
    return 0;
}
