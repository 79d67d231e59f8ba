// SPDX-License-Identifier: BSD-3-Clause
// Block reductions: a tree in shared memory, then shuffles in the last warp; sums, maxima, several types.
#include "check.h"

template <class T, class Op>
__device__ T warp_reduce(T value, Op op) {
    for (int offset = 16; offset > 0; offset >>= 1)
        value = op(value, __shfl_down_sync(0xffffffffu, value, offset));
    return value;
}

struct Sum {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return a + b;
    }
};
struct Max {
    template <class T>
    __device__ T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};

template <class T, int Threads, class Op>
__global__ void reduce(const T* in, T* out, int n, T neutral, Op op) {
    __shared__ T partial[Threads];
    T value = neutral;
    for (int i = blockIdx.x * Threads + threadIdx.x; i < n; i += gridDim.x * Threads)
        value = op(value, in[i]);
    partial[threadIdx.x] = value;
    __syncthreads();
    for (int half = Threads / 2; half >= 32; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] = op(partial[threadIdx.x], partial[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x < 32) {
        const T total = warp_reduce(partial[threadIdx.x], op);
        if (threadIdx.x == 0)
            out[blockIdx.x] = total;
    }
}

template <class T>
void test() {
    const int n = 30011, blocks = 7;
    Random random(sizeof(T));
    std::vector<T> in(n);
    for (T& value : in)
        value = static_cast<T>(static_cast<int>(random.next() % 2001) - 1000);
    Buffer<T> device_in(in), device_out(blocks);
    T sum = 0, top = in[0];
    for (T value : in) {
        sum += value;
        top = value > top ? value : top;
    }
    reduce<T, 256><<<blocks, 256>>>(device_in.get(), device_out.get(), n, T(0), Sum{});
    LAUNCHED();
    T result = 0;
    for (T value : device_out.read())
        result += value;
    EXPECT_EQ(result, sum);
    reduce<T, 64><<<blocks, 64>>>(device_in.get(), device_out.get(), n, T(-100000), Max{});
    LAUNCHED();
    result = T(-100000);
    for (T value : device_out.read())
        result = value > result ? value : result;
    EXPECT_EQ(result, top);
}

int main() {
    test<int>();
    test<long long>();
    test<float>();
    test<double>();
    return finish();
}
