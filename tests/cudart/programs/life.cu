// SPDX-License-Identifier: BSD-3-Clause
// Small whole programs: the game of life, an n-body step, a Mandelbrot set, matrix products in double and
// int8.
#include "check.h"

struct alignas(16) Body {
    double x, y, z, w;
};

__global__ void life(const unsigned char* in, unsigned char* out, int width, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int alive = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy)
                alive += in[(y + dy + height) % height * width + (x + dx + width) % width];
    out[y * width + x] = alive == 3 || (alive == 2 && in[y * width + x]);
}

__global__ void accelerate(const Body* bodies, double3* out, int n) {
    __shared__ Body tile[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    const Body me = bodies[i];
    double3 sum = make_double3(0, 0, 0);
    for (int first = 0; first < n; first += 64) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 64; ++j) {
            const double dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            const double square = dx * dx + dy * dy + dz * dz + 0.01,
                         factor = tile[j].w / (square * sqrt(square));
            sum.x += dx * factor;
            sum.y += dy * factor;
            sum.z += dz * factor;
        }
        __syncthreads();
    }
    out[i] = sum;
}

__device__ __host__ int escape(double cx, double cy) {
    double x = 0, y = 0;
    int i = 0;
    for (; i < 60 && x * x + y * y <= 4; ++i) {
        const double t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
    }
    return i;
}

__global__ void mandelbrot(int* out, int width, int height) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < width * height)
        out[i] = escape(-2 + 3.0 * (i % width) / width, -1.2 + 2.4 * (i / width) / height);
}

__global__ void dot4(const int* a, const int* b, int* out, int words) {
    int sum = 0;
    for (int i = 0; i < words; ++i)
        sum = __dp4a(a[threadIdx.x * words + i], b[i], sum);
    out[threadIdx.x] = sum;
}

int main() {
    const int width = 50, height = 30;
    Random random(43);
    std::vector<unsigned char> board(width * height), next(width * height);
    for (unsigned char& cell : board)
        cell = random.next() % 3 == 0;
    Buffer<unsigned char> a(board), b(width * height);
    for (int step = 0; step < 4; ++step) {
        life<<<dim3(4, 4), dim3(16, 8)>>>(step % 2 ? b : a, step % 2 ? a : b, width, height);
        for (int y = 0; y < height; ++y)
            for (int x = 0; x < width; ++x) {
                int alive = 0;
                for (int dy = -1; dy <= 1; ++dy)
                    for (int dx = -1; dx <= 1; ++dx)
                        if (dx || dy)
                            alive += board[(y + dy + height) % height * width + (x + dx + width) % width];
                next[y * width + x] = alive == 3 || (alive == 2 && board[y * width + x]);
            }
        board.swap(next);
    }
    LAUNCHED();
    EXPECT(a.read() == board);

    const int n = 192;
    std::vector<Body> bodies(n);
    for (Body& body : bodies)
        body = {random.uniform(), random.uniform(), random.uniform(), 1 + random.uniform()};
    Buffer<Body> device_bodies(bodies);
    Buffer<double3> forces(n);
    accelerate<<<n / 64, 64>>>(device_bodies, forces, n);
    LAUNCHED();
    const std::vector<double3> got = forces.read();
    for (int i = 0; i < n; i += 17) {
        double x = 0;
        for (int j = 0; j < n; ++j) {
            const double dx = bodies[j].x - bodies[i].x, dy = bodies[j].y - bodies[i].y,
                         dz = bodies[j].z - bodies[i].z;
            const double square = dx * dx + dy * dy + dz * dz + 0.01;
            x += dx * bodies[j].w / (square * std::sqrt(square));
        }
        EXPECT(std::fabs(got[i].x - x) < 1e-9 * (1 + std::fabs(x)));
    }

    const int w = 48, h = 32;
    Buffer<int> image(w * h);
    mandelbrot<<<(w * h + 127) / 128, 128>>>(image, w, h);
    LAUNCHED();
    const std::vector<int> pixels = image.read();
    int different = 0; // fused multiply-add may move a pixel on the border
    for (int i = 0; i < w * h; ++i)
        different += pixels[i] != escape(-2 + 3.0 * (i % w) / w, -1.2 + 2.4 * (i / w) / h);
    EXPECT(different <= 5);

    std::vector<int> rows(32 * 8), column(8);
    for (int& word : rows)
        word = static_cast<int>(random.next64());
    for (int& word : column)
        word = static_cast<int>(random.next64());
    Buffer<int> device_rows(rows), device_column(column), sums(32);
    dot4<<<1, 32>>>(device_rows, device_column, sums, 8);
    LAUNCHED();
    const std::vector<int> dots = sums.read();
    for (int r = 0; r < 32; ++r) {
        int sum = 0;
        for (int i = 0; i < 8; ++i)
            for (int shift = 0; shift < 32; shift += 8)
                sum += static_cast<signed char>(rows[r * 8 + i] >> shift) *
                       static_cast<signed char>(column[i] >> shift);
        EXPECT_EQ(dots[r], sum);
    }
    return finish();
}
