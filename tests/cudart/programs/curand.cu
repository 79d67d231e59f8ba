// SPDX-License-Identifier: BSD-3-Clause
// The device side of cuRAND, which is all in headers: the same generators give the same numbers on the CPU.
#include <curand_kernel.h>

#include "check.h"

__global__ void throw_darts(unsigned long long seed, int rounds, unsigned* hits, unsigned* first) {
    curandStatePhilox4_32_10_t state;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    curand_init(seed, i, 0, &state);
    first[i] = curand(&state);
    unsigned inside = 0;
    for (int r = 0; r < rounds; ++r) {
        const float4 p = curand_uniform4(&state);
        inside += p.x * p.x + p.y * p.y <= 1.0f;
        inside += p.z * p.z + p.w * p.w <= 1.0f;
    }
    atomicAdd(hits, inside);
}

__global__ void normals(double* sums) {
    curandState state;
    curand_init(7, threadIdx.x, 0, &state);
    double sum = 0, squares = 0;
    for (int i = 0; i < 50; ++i) {
        const float x = curand_normal(&state);
        sum += x;
        squares += static_cast<double>(x) * x;
    }
    atomicAdd(&sums[0], sum);
    atomicAdd(&sums[1], squares);
}

int main() {
    const int threads = 256, rounds = 40;
    Buffer<unsigned> hits(1), first(threads);
    hits.clear();
    throw_darts<<<4, 64>>>(1234, rounds, hits, first);
    LAUNCHED();
    const double pi = 4.0 * hits.read()[0] / (threads * rounds * 2);
    EXPECT(std::fabs(pi - 3.14159) < 0.05);
    const std::vector<unsigned> got = first.read();
    for (int i = 0; i < threads; ++i)
        for (int j = 0; j < i; ++j)
            EXPECT(got[i] != got[j]);
    Buffer<double> sums(2);
    sums.clear();
    normals<<<1, 128>>>(sums);
    LAUNCHED();
    const std::vector<double> moments = sums.read();
    EXPECT(std::fabs(moments[0] / 6400) < 0.05);
    EXPECT(std::fabs(moments[1] / 6400 - 1) < 0.08);
    return finish();
}
