// SPDX-License-Identifier: BSD-3-Clause
// nvcc: --expt-relaxed-constexpr
// libcu++: barriers, latches, atomics in shared memory, asynchronous copies, tuples, complex numbers.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>

#include "check.h"

__global__ void with_barrier(const int* in, int* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int staged[128];
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 3; ++round) {
        staged[threadIdx.x] = in[threadIdx.x] + round;
        auto token = barrier.arrive();
        barrier.wait(std::move(token));
        out[threadIdx.x] += staged[(threadIdx.x + 37) % 128];
        barrier.arrive_and_wait();
    }
}

__global__ void with_copy(const int* in, int* out) {
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ int staged[128];
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(staged + threadIdx.x, in + threadIdx.x, sizeof(int), barrier);
    barrier.arrive_and_wait();
    out[threadIdx.x] = staged[127 - threadIdx.x];
}

__device__ cuda::std::tuple<int, float> pair_of(int i) {
    return {i * 2, i * 0.5f};
}

__global__ void with_types(double* out) {
    using Complex = cuda::std::complex<double>;
    Complex z(1.0, 0.5);
    for (unsigned i = 0; i < threadIdx.x % 5; ++i)
        z = z * z + Complex(0.1, -0.2);
    cuda::std::array<int, 4> array = {1, 2, 3, 4};
    int sum = 0;
    for (int value : array)
        sum += value;
    const auto pair = pair_of(threadIdx.x);
    const auto doubled = cuda::std::get<0>(pair);
    const auto halved = cuda::std::get<1>(pair);
    out[threadIdx.x] = z.real() + z.imag() + sum + doubled + halved;
}

int main() {
    std::vector<int> in(128);
    for (int i = 0; i < 128; ++i)
        in[i] = i * i;
    Buffer<int> device_in(in), out(128);
    out.clear();
    with_barrier<<<1, 128>>>(device_in, out);
    LAUNCHED();
    const std::vector<int> sums = out.read();
    for (int i = 0; i < 128; ++i)
        EXPECT_EQ(sums[i], 3 * in[(i + 37) % 128] + 3);
    with_copy<<<1, 128>>>(device_in, out);
    LAUNCHED();
    const std::vector<int> reversed = out.read();
    for (int i = 0; i < 128; ++i)
        EXPECT_EQ(reversed[i], in[127 - i]);
    Buffer<double> doubles(40);
    with_types<<<1, 40>>>(doubles);
    LAUNCHED();
    const std::vector<double> values = doubles.read();
    for (int i = 0; i < 40; ++i) {
        double re = 1, im = 0.5;
        for (int k = 0; k < i % 5; ++k) {
            const double t = re * re - im * im + 0.1;
            im = 2 * re * im - 0.2;
            re = t;
        }
        EXPECT(std::fabs(values[i] - (re + im + 10 + i * 2 + i * 0.5)) < 1e-9);
    }
    return finish();
}
