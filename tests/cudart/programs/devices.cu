// SPDX-License-Identifier: BSD-3-Clause
// env: SOFTGPU_DEVICES=2
// Two devices: each with its own variables and memory; copies between them; a thread for each.
#include <thread>

#include "check.h"

__device__ int identity;
__global__ void set(int value) {
    identity = value;
}
__global__ void add(int* data, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] += identity;
}

int main() {
    int count = 0, device = -1, peer = -1;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT_EQ(count, 2);
    CHECK(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
    for (int d = 0; d < 2; ++d) {
        CHECK(cudaSetDevice(d));
        set<<<1, 1>>>(10 + d);
        LAUNCHED();
    }
    for (int d = 0; d < 2; ++d) {
        int value = 0;
        CHECK(cudaSetDevice(d));
        CHECK(cudaMemcpyFromSymbol(&value, identity, sizeof value));
        EXPECT_EQ(value, 10 + d);
    }
    cudaDeviceProp first, second;
    CHECK(cudaGetDeviceProperties(&first, 0));
    CHECK(cudaGetDeviceProperties(&second, 1));
    EXPECT(first.pciBusID != second.pciBusID || first.pciDeviceID != second.pciDeviceID ||
           first.pciDomainID != second.pciDomainID);
    CHECK(cudaDeviceCanAccessPeer(&peer, 0, 1));

    const int n = 300;
    std::vector<int> in(n), out(n);
    for (int i = 0; i < n; ++i)
        in[i] = i;
    int* memory[2];
    for (int d = 0; d < 2; ++d) {
        CHECK(cudaSetDevice(d));
        CHECK(cudaMalloc(&memory[d], n * sizeof(int)));
        cudaPointerAttributes attributes;
        CHECK(cudaPointerGetAttributes(&attributes, memory[d]));
        EXPECT_EQ(attributes.device, d);
    }
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemcpy(memory[0], in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    add<<<3, 128>>>(memory[0], n);
    LAUNCHED();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyPeer(memory[1], 1, memory[0], 0, n * sizeof(int)));
    CHECK(cudaSetDevice(1));
    add<<<3, 128>>>(memory[1], n);
    LAUNCHED();
    CHECK(cudaMemcpy(out.data(), memory[1], n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i)
        EXPECT_EQ(out[i], i + 21);

    bool right[2] = {};
    std::vector<std::thread> threads;
    for (int d = 0; d < 2; ++d)
        threads.emplace_back([&, d] {
            int mine = -1, value = 0;
            if (cudaSetDevice(d) != cudaSuccess)
                return;
            set<<<1, 1>>>(100 + d);
            right[d] = cudaMemcpyFromSymbol(&value, identity, sizeof value) == cudaSuccess &&
                       value == 100 + d && cudaGetDevice(&mine) == cudaSuccess && mine == d;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT(right[0] && right[1]);
    CHECK(cudaGetDevice(&device));
    EXPECT_EQ(device, 1);
    CHECK(cudaFree(memory[0]));
    CHECK(cudaFree(memory[1]));
    return finish();
}
