// SPDX-License-Identifier: BSD-3-Clause
// Classical kernels: bitonic sort, stencil, sparse product, breadth-first search, convolution, Fourier
// transform, queens.
#include <algorithm>
#include <complex>
#include <queue>

#include "check.h"

__global__ void bitonic(int* data) {
    extern __shared__ int s[];
    const int i = threadIdx.x;
    s[i] = data[blockIdx.x * blockDim.x + i];
    __syncthreads();
    for (int k = 2; k <= blockDim.x; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            const int other = i ^ j;
            if (other > i && ((i & k) == 0) == (s[i] > s[other])) {
                const int t = s[i];
                s[i] = s[other];
                s[other] = t;
            }
            __syncthreads();
        }
    data[blockIdx.x * blockDim.x + i] = s[i];
}

__global__ void stencil(const float* in, float* out, int n) {
    __shared__ float tile[10][34];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const auto at = [&](int px, int py) {
        return px >= 0 && py >= 0 && px < n && py < n ? in[py * n + px] : 0.0f;
    };
    tile[threadIdx.y + 1][threadIdx.x + 1] = at(x, y);
    if (threadIdx.x == 0)
        tile[threadIdx.y + 1][0] = at(x - 1, y);
    if (threadIdx.x == 31)
        tile[threadIdx.y + 1][33] = at(x + 1, y);
    if (threadIdx.y == 0)
        tile[0][threadIdx.x + 1] = at(x, y - 1);
    if (threadIdx.y == 7)
        tile[9][threadIdx.x + 1] = at(x, y + 1);
    __syncthreads();
    if (x < n && y < n)
        out[y * n + x] =
            0.25f * (tile[threadIdx.y][threadIdx.x + 1] + tile[threadIdx.y + 2][threadIdx.x + 1] +
                     tile[threadIdx.y + 1][threadIdx.x] + tile[threadIdx.y + 1][threadIdx.x + 2]);
}

// A warp a row.
__global__ void sparse_product(int rows, const int* begin, const int* column, const double* value,
                               const double* x, double* y) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    double sum = 0;
    for (int i = begin[row] + lane; i < begin[row + 1]; i += 32)
        sum += value[i] * x[column[i]];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(~0u, sum, offset);
    if (lane == 0)
        y[row] = sum;
}

__global__ void bfs_level(int nodes, const int* begin, const int* edge, int* distance, int level,
                          int* changed) {
    const int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || distance[node] != level)
        return;
    for (int i = begin[node]; i < begin[node + 1]; ++i)
        if (atomicCAS(&distance[edge[i]], -1, level + 1) == -1)
            *changed = 1;
}

__constant__ float mask[5];
__global__ void convolve(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
#pragma unroll
    for (int k = -2; k <= 2; ++k)
        sum += i + k >= 0 && i + k < n ? mask[k + 2] * in[i + k] : 0.0f;
    out[i] = sum;
}

__global__ void fourier(double2* data, int bits) {
    extern __shared__ double2 values[];
    const int i = threadIdx.x, n = 1 << bits;
    values[__brev(i) >> (32 - bits)] = data[i];
    values[__brev(i + n / 2) >> (32 - bits)] = data[i + n / 2];
    __syncthreads();
    for (int half = 1; half < n; half *= 2) {
        const int j = i % half, a = i / half * 2 * half + j, b = a + half;
        double s, c;
        sincospi(-static_cast<double>(j) / half, &s, &c);
        const double2 u = values[a], v = values[b];
        const double2 t = make_double2(v.x * c - v.y * s, v.x * s + v.y * c);
        values[a] = make_double2(u.x + t.x, u.y + t.y);
        values[b] = make_double2(u.x - t.x, u.y - t.y);
        __syncthreads();
    }
    data[i] = values[i];
    data[i + n / 2] = values[i + n / 2];
}

__device__ int place(int n, unsigned columns, unsigned left, unsigned right) {
    if (columns == (1u << n) - 1)
        return 1;
    int count = 0;
    for (unsigned free = ~(columns | left | right) & ((1u << n) - 1); free; free &= free - 1) {
        const unsigned bit = free & (0u - free);
        count += place(n, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}
__global__ void queens(int n, int* total) {
    const unsigned bit = 1u << threadIdx.x;
    if (threadIdx.x < n)
        atomicAdd(total, place(n, bit, bit << 1, bit >> 1));
}

__global__ void block_votes(const int* in, int* out) {
    out[threadIdx.x] = __syncthreads_count(in[threadIdx.x] > 50) +
                       1000 * (__syncthreads_and(in[threadIdx.x] >= 0) != 0) +
                       10000 * (__syncthreads_or(in[threadIdx.x] > 1000) != 0);
}

int main() {
    Random random(47);
    std::vector<int> in(512);
    for (int& value : in)
        value = random.next() % 100;
    Buffer<int> ints(in);
    Buffer<int> votes(256);
    block_votes<<<1, 256>>>(ints, votes);
    bitonic<<<2, 256, 256 * sizeof(int)>>>(ints);
    LAUNCHED();
    const long above = std::count_if(in.begin(), in.begin() + 256, [](int v) { return v > 50; });
    for (int vote : votes.read())
        EXPECT_EQ(vote, above + 1000);
    std::sort(in.begin(), in.begin() + 256);
    std::sort(in.begin() + 256, in.end());
    EXPECT(ints.read() == in);

    const int n = 50;
    std::vector<float> plane(n * n), next(n * n);
    for (float& value : plane)
        value = static_cast<float>(random.uniform());
    Buffer<float> a(plane), b(n * n);
    for (int step = 0; step < 3; ++step) {
        stencil<<<dim3(2, 7), dim3(32, 8)>>>(step % 2 ? b : a, step % 2 ? a : b, n);
        const auto at = [&](int x, int y) {
            return x >= 0 && y >= 0 && x < n && y < n ? plane[y * n + x] : 0.0f;
        };
        for (int y = 0; y < n; ++y)
            for (int x = 0; x < n; ++x)
                next[y * n + x] = 0.25f * (at(x, y - 1) + at(x, y + 1) + at(x - 1, y) + at(x + 1, y));
        plane.swap(next);
    }
    LAUNCHED();
    EXPECT(b.read() == plane);

    const int rows = 90;
    std::vector<int> begin(1, 0), column;
    std::vector<double> value, x(rows), y(rows, 0);
    for (double& v : x)
        v = random.uniform();
    for (int row = 0; row < rows; ++row) {
        for (int k = random.next() % 70; k > 0; --k) {
            column.push_back(random.next() % rows);
            value.push_back(random.uniform() - 0.5);
            y[row] += value.back() * x[column.back()];
        }
        begin.push_back(static_cast<int>(column.size()));
    }
    Buffer<int> device_begin(begin), device_column(column), distance(rows), changed(1);
    Buffer<double> device_value(value), device_x(x), device_y(rows);
    sparse_product<<<(rows * 32 + 127) / 128, 128>>>(rows, device_begin, device_column, device_value,
                                                     device_x, device_y);
    LAUNCHED();
    const std::vector<double> product = device_y.read();
    for (int row = 0; row < rows; ++row)
        EXPECT(std::fabs(product[row] - y[row]) < 1e-12);

    std::vector<int> expected(rows, -1);
    std::queue<int> queue;
    expected[3] = 0;
    queue.push(3);
    for (; !queue.empty(); queue.pop())
        for (int i = begin[queue.front()]; i < begin[queue.front() + 1]; ++i)
            if (expected[column[i]] < 0) {
                expected[column[i]] = expected[queue.front()] + 1;
                queue.push(column[i]);
            }
    CHECK(cudaMemset(distance, 0xff, rows * sizeof(int)));
    CHECK(cudaMemset(distance + 3, 0, sizeof(int)));
    for (int level = 0, more = 1; more; ++level) {
        changed.clear();
        bfs_level<<<2, 64>>>(rows, device_begin, device_column, distance, level, changed);
        more = changed.read()[0];
    }
    EXPECT(distance.read() == expected);

    const float weights[5] = {0.5f, -1, 2, 0.25f, 4};
    CHECK(cudaMemcpyToSymbol(mask, weights, sizeof weights));
    convolve<<<20, 128>>>(b, a, n * n);
    LAUNCHED();
    const std::vector<float> convolved = a.read();
    for (int i = 0; i < n * n; ++i) {
        double sum = 0;
        for (int k = -2; k <= 2; ++k)
            sum += i + k >= 0 && i + k < n * n ? weights[k + 2] * plane[i + k] : 0;
        EXPECT(std::fabs(convolved[i] - sum) < 1e-5);
    }

    const int bits = 8, size = 1 << bits;
    std::vector<double2> signal(size);
    for (double2& s : signal)
        s = make_double2(random.uniform(), random.uniform());
    Buffer<double2> device_signal(signal);
    fourier<<<1, size / 2, size * sizeof(double2)>>>(device_signal, bits);
    LAUNCHED();
    const std::vector<double2> spectrum = device_signal.read();
    for (int k = 0; k < size; k += 7) {
        std::complex<double> sum = 0;
        for (int i = 0; i < size; ++i)
            sum += std::complex<double>(signal[i].x, signal[i].y) *
                   std::polar(1.0, -2 * 3.14159265358979323846 * i * k / size);
        EXPECT(std::fabs(spectrum[k].x - sum.real()) < 1e-10 &&
               std::fabs(spectrum[k].y - sum.imag()) < 1e-10);
    }

    Buffer<int> total(1);
    total.clear();
    queens<<<1, 32>>>(8, total);
    LAUNCHED();
    EXPECT_EQ(total.read()[0], 92);
    return finish();
}
