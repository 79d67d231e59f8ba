// SPDX-License-Identifier: BSD-3-Clause
// fp16 and bf16: conversions against a rounding written here, arithmetic on one and on pairs.
// nvcc: -arch=compute_80
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "check.h"

__global__ void to_half(const float* in, uint16_t* half_bits, uint16_t* bf16_bits, float* back, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const __half h = __float2half(in[i]);
    half_bits[i] = __half_as_ushort(h);
    bf16_bits[i] = __bfloat16_as_ushort(__float2bfloat16(in[i]));
    back[i] = __half2float(h);
}

__global__ void arithmetic(const __half* a, const __half* b, __half* sum, __half* fused, __half2* pairs,
                           int* less) {
    const int i = threadIdx.x;
    sum[i] = a[i] + b[i];
    fused[i] = __hfma(a[i], b[i], a[i]);
    const __half2 pair = __halves2half2(a[i], b[i]);
    pairs[i] = __hmul2(pair, __half2half2(__float2half(0.5f)));
    less[i] = __hlt(a[i], b[i]) + 2 * (__hgt(a[i], b[i]) ? 1 : 0);
}

/// Round to nearest even, by bits; subnormals included.
static uint16_t half_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint16_t sign = (bits >> 16) & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return 0x7fff;
    if (magnitude >= 0x477ff000)
        return sign | 0x7c00;
    if (magnitude < 0x33000001)
        return sign;
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    const int shift = exponent < -14 ? 13 + (-14 - exponent) : 13;
    const uint32_t half_way = 1u << (shift - 1), rest = mantissa & ((1u << shift) - 1);
    mantissa >>= shift;
    if (rest > half_way || (rest == half_way && (mantissa & 1)))
        ++mantissa;
    const uint32_t result = exponent < -14 ? mantissa : mantissa + ((exponent + 14) << 10);
    return static_cast<uint16_t>(sign | result);
}

static uint16_t bf16_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

int main() {
    Random random(5);
    std::vector<float> in = {0.0f,  -0.0f, 1.0f,     65504.0f, 65519.0f, 65520.0f, 1e-8f,
                             6e-8f, 3e-5f, -6.1e-5f, INFINITY, 2049.0f,  2051.0f};
    while (in.size() < 1000)
        in.push_back(static_cast<float>((random.uniform() - 0.5) *
                                        std::pow(2.0, static_cast<int>(random.next() % 44) - 26)));
    const int n = static_cast<int>(in.size());
    Buffer<float> device_in(in), back(n);
    Buffer<uint16_t> halves(n), bf16s(n);
    to_half<<<(n + 127) / 128, 128>>>(device_in, halves, bf16s, back, n);
    LAUNCHED();
    const std::vector<uint16_t> half_bits = halves.read(), bf16_bits = bf16s.read();
    const std::vector<float> floats = back.read();
    for (int i = 0; i < n; ++i) {
        EXPECT_EQ(half_bits[i], half_of(in[i]));
        EXPECT_EQ(bf16_bits[i], bf16_of(in[i]));
        EXPECT_EQ(half_of(floats[i]), half_bits[i]);
    }

    std::vector<__half> a(64), b(64);
    for (int i = 0; i < 64; ++i) {
        a[i] = __float2half(static_cast<float>(i) / 8);
        b[i] = __float2half(static_cast<float>(40 - i) / 4);
    }
    Buffer<__half> device_a(a), device_b(b), sum(64), fused(64);
    Buffer<__half2> pairs(64);
    Buffer<int> less(64);
    arithmetic<<<1, 64>>>(device_a, device_b, sum, fused, pairs, less);
    LAUNCHED();
    const auto sums = sum.read(), products = fused.read();
    const auto halved = pairs.read();
    const auto order = less.read();
    for (int i = 0; i < 64; ++i) {
        const float x = i / 8.0f, y = (40 - i) / 4.0f;
        EXPECT_EQ(__half2float(sums[i]), x + y);
        uint16_t product = 0;
        std::memcpy(&product, &products[i], sizeof product);
        EXPECT_EQ(product, half_of(x * y + x));
        EXPECT_EQ(__half2float(halved[i].x), x / 2);
        EXPECT_EQ(__half2float(halved[i].y), y / 2);
        EXPECT_EQ(order[i], x < y ? 1 : x > y ? 2 : 0);
    }
    return finish();
}
