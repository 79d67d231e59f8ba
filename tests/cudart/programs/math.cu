// SPDX-License-Identifier: BSD-3-Clause
// The mathematical library in float and double against the CPU's, within the errors the CUDA guide allows,
// and the exactly rounded operations.
#include "check.h"

constexpr int kFunctions = 22;

template <class T>
__device__ __host__ T evaluate(int f, T x) {
    switch (f) {
    case 0:
        return sin(x);
    case 1:
        return cos(x);
    case 2:
        return tan(x);
    case 3:
        return exp(x / 4);
    case 4:
        return log(x + T(21));
    case 5:
        return sqrt(x + T(20));
    case 6:
        return cbrt(x);
    case 7:
        return pow(x + T(20.5), T(1.3));
    case 8:
        return atan(x);
    case 9:
        return sinh(x / 8);
    case 10:
        return tanh(x);
    case 11:
        return erf(x / 8);
    case 12:
        return lgamma(x + T(20.5));
    case 13:
        return tgamma(x / 8 + T(3.5));
    case 14:
        return exp2(x / 3);
    case 15:
        return log2(x + T(20.25));
    case 16:
        return log1p(x + T(20.5));
    case 17:
        return expm1(x / 8);
    case 18:
        return hypot(x, T(3));
    case 19:
        return atan2(x, T(2));
    case 20:
        return asin(x / T(21));
    default:
        return acosh(x + T(21.5));
    }
}

template <class T>
__global__ void run(const T* in, T* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    for (int f = 0; f < kFunctions; ++f)
        out[f * n + i] = evaluate(f, in[i]);
}

/// Operations that are exactly rounded, thus equal on the CPU bit by bit.
template <class T>
__device__ __host__ T exact(int f, T x, T y) {
    switch (f) {
    case 0:
        return x / y;
    case 1:
        return sqrt(fabs(x));
    case 2:
        return fma(x, y, x);
    case 3:
        return floor(x);
    case 4:
        return ceil(y);
    case 5:
        return trunc(x * 3);
    case 6:
        return rint(x * 2);
    case 7:
        return fmod(x, y);
    case 8:
        return fmin(x, y);
    case 9:
        return fmax(x, y);
    case 10:
        return copysign(x, y);
    case 11:
        return round(x);
    case 12:
        return T(static_cast<long long>(x * 1000));
    default:
        return T(static_cast<int>(y) % 7);
    }
}

template <class T>
__global__ void run_exact(const T* in, T* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    for (int f = 0; f < 14; ++f)
        out[f * n + i] = exact(f, in[i], in[n - 1 - i]);
}

template <class T>
void test(double tolerance) {
    Random random(17);
    const int n = 300;
    std::vector<T> in(n);
    for (T& value : in)
        value = static_cast<T>((random.uniform() - 0.5) * 40);
    Buffer<T> device_in(in), out(n * kFunctions), exact_out(n * 14);
    run<<<3, 100>>>(device_in.get(), out.get(), n);
    run_exact<<<3, 100>>>(device_in.get(), exact_out.get(), n);
    LAUNCHED();
    const std::vector<T> results = out.read(), exacts = exact_out.read();
    for (int f = 0; f < kFunctions; ++f)
        for (int i = 0; i < n; ++i) {
            const double expected = evaluate<double>(f, static_cast<double>(in[i]));
            // Arguments computed in T differ from those in double; near zeros that is all of the result.
            const double error =
                std::fabs(results[f * n + i] - expected) / std::fmax(std::fabs(expected), 0.05);
            if (!(error <= tolerance) && failures()++ < 10)
                std::fprintf(stderr, "function %d of %.9g (%zu bytes): %.17g, not %.17g\n", f,
                             static_cast<double>(in[i]), sizeof(T), static_cast<double>(results[f * n + i]),
                             expected);
        }
    for (int f = 0; f < 14; ++f)
        for (int i = 0; i < n; ++i) {
            const T expected = exact(f, in[i], in[n - 1 - i]);
            if (!(exacts[f * n + i] == expected) && failures()++ < 10)
                std::fprintf(stderr, "exact function %d of %.9g: %.17g, not %.17g\n", f,
                             static_cast<double>(in[i]), static_cast<double>(exacts[f * n + i]),
                             static_cast<double>(expected));
        }
}

__global__ void fast(const float* in, float* out, int n) {
    const int i = threadIdx.x;
    out[i] = __sinf(in[i]);
    out[n + i] = __expf(in[i]);
    out[2 * n + i] = __fdividef(in[i], 3.0f);
    out[3 * n + i] = rsqrtf(in[i] + 4.0f);
    out[4 * n + i] = __logf(in[i] + 4.0f);
    out[5 * n + i] = __saturatef(in[i]);
}

int main() {
    test<float>(2e-5);
    test<double>(2e-14);
    std::vector<float> in(64);
    for (int i = 0; i < 64; ++i)
        in[i] = (i - 32) / 10.5f;
    Buffer<float> device_in(in), out(6 * 64);
    fast<<<1, 64>>>(device_in, out, 64);
    LAUNCHED();
    const std::vector<float> results = out.read();
    for (int i = 0; i < 64; ++i) {
        EXPECT(std::fabs(results[i] - std::sin(in[i])) < 1e-5);
        EXPECT_NEAR(results[64 + i], std::exp(in[i]), 1e-5);
        EXPECT_NEAR(results[128 + i], in[i] / 3, 1e-6);
        EXPECT_NEAR(results[192 + i], 1 / std::sqrt(in[i] + 4), 1e-6);
        EXPECT(std::fabs(results[256 + i] - std::log(in[i] + 4)) < 1e-5);
        EXPECT_EQ(results[320 + i], std::fmin(std::fmax(in[i], 0.0f), 1.0f));
    }
    return finish();
}
