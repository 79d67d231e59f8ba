// SPDX-License-Identifier: BSD-3-Clause
// Pitched and three-dimensional memory: all directions, offsets, sets; copies that find out the direction.
#include <cstring>

#include "check.h"

__global__ void transpose(const char* in, size_t in_pitch, char* out, size_t out_pitch, int width,
                          int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        reinterpret_cast<int*>(out + x * out_pitch)[y] = reinterpret_cast<const int*>(in + y * in_pitch)[x];
}

void planes() {
    const int width = 37, height = 21;
    std::vector<int> in(width * height), out(width * height, -1);
    for (int i = 0; i < width * height; ++i)
        in[i] = i * 31 + 7;
    char *a = nullptr, *b = nullptr;
    size_t pitch_a = 0, pitch_b = 0;
    CHECK(cudaMallocPitch(&a, &pitch_a, width * sizeof(int), height));
    CHECK(cudaMallocPitch(&b, &pitch_b, height * sizeof(int), width));
    EXPECT(pitch_a >= width * sizeof(int) && pitch_b >= height * sizeof(int));
    CHECK(cudaMemcpy2D(a, pitch_a, in.data(), width * sizeof(int), width * sizeof(int), height,
                       cudaMemcpyHostToDevice));
    transpose<<<dim3(5, 6), dim3(8, 4)>>>(a, pitch_a, b, pitch_b, width, height);
    LAUNCHED();
    CHECK(cudaMemcpy2D(out.data(), height * sizeof(int), b, pitch_b, height * sizeof(int), width,
                       cudaMemcpyDefault));
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            EXPECT_EQ(out[x * height + y], in[y * width + x]);
    // A window of the middle, device to device and back.
    CHECK(cudaMemset2D(b, pitch_b, 0x11, height * sizeof(int), width));
    CHECK(cudaMemcpy2D(b + 4, pitch_b, a + 3 * pitch_a + 8, pitch_a, 5 * sizeof(int), 6,
                       cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy2DAsync(out.data(), height * sizeof(int), b, pitch_b, height * sizeof(int), width,
                            cudaMemcpyDeviceToHost, nullptr));
    CHECK(cudaDeviceSynchronize());
    for (int y = 0; y < width; ++y)
        for (int x = 0; x < height; ++x) {
            const bool inside = y < 6 && x >= 1 && x < 6;
            EXPECT_EQ(out[y * height + x], inside ? in[(3 + y) * width + 2 + x - 1] : 0x11111111);
        }
    EXPECT(cudaMemcpy2D(a, 4, in.data(), 4, 8, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
    (void)cudaGetLastError();
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
}

void volumes() {
    const size_t w = 12, h = 5, d = 4;
    std::vector<char> in(w * h * d), out(w * h * d, 0);
    for (size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<char>(i * 7 + 1);
    cudaPitchedPtr device;
    CHECK(cudaMalloc3D(&device, make_cudaExtent(w, h, d)));
    CHECK(cudaMemset3D(device, 0x22, make_cudaExtent(w, h, d)));
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(in.data(), w, w, h);
    p.dstPtr = device;
    p.srcPos = make_cudaPos(2, 1, 1);
    p.dstPos = make_cudaPos(1, 2, 0);
    p.extent = make_cudaExtent(7, 3, 2);
    p.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&p));
    cudaMemcpy3DParms q = {};
    q.srcPtr = device;
    q.dstPtr = make_cudaPitchedPtr(out.data(), w, w, h);
    q.extent = make_cudaExtent(w, h, d);
    q.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&q));
    for (size_t z = 0; z < d; ++z)
        for (size_t y = 0; y < h; ++y)
            for (size_t x = 0; x < w; ++x) {
                const bool inside = x >= 1 && x < 8 && y >= 2 && y < 5 && z < 2;
                const char expected = inside ? in[((z + 1) * h + y - 2 + 1) * w + x - 1 + 2] : 0x22;
                EXPECT_EQ(out[(z * h + y) * w + x], expected);
            }
    CHECK(cudaFree(device.ptr));
}

void directions() {
    const int n = 1000;
    std::vector<int> in(n), out(n);
    for (int i = 0; i < n; ++i)
        in[i] = i ^ 0x55;
    int *pinned = nullptr, *device = nullptr;
    CHECK(cudaHostAlloc(&pinned, n * sizeof(int), cudaHostAllocDefault));
    CHECK(cudaMalloc(&device, 2 * n * sizeof(int)));
    CHECK(cudaMemcpy(pinned, in.data(), n * sizeof(int), cudaMemcpyHostToHost));
    CHECK(cudaMemcpy(device, pinned, n * sizeof(int), cudaMemcpyDefault));
    CHECK(cudaMemcpy(device + n, device, n * sizeof(int), cudaMemcpyDefault));
    CHECK(cudaMemcpy(out.data(), device + n, n * sizeof(int), cudaMemcpyDefault));
    EXPECT(in == out);
    // Offsets that no alignment helps with.
    CHECK(cudaMemcpy(reinterpret_cast<char*>(device) + 3, in.data(), 101, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(reinterpret_cast<char*>(device) + 10, 0xee, 5));
    char back[101];
    CHECK(cudaMemcpy(back, reinterpret_cast<char*>(device) + 3, 101, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 101; ++i) {
        const char expected =
            i >= 7 && i < 12 ? static_cast<char>(0xee) : reinterpret_cast<char*>(in.data())[i];
        EXPECT_EQ(back[i], expected);
    }
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, device + 5));
    EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 &&
           attributes.devicePointer == device + 5);
    CHECK(cudaPointerGetAttributes(&attributes, pinned + 5));
    EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned + 5);
    CHECK(cudaPointerGetAttributes(&attributes, in.data()));
    EXPECT(attributes.type == cudaMemoryTypeUnregistered);
    EXPECT(cudaMemcpy(device, in.data(), 4, static_cast<cudaMemcpyKind>(9)) ==
           cudaErrorInvalidMemcpyDirection);
    (void)cudaGetLastError();
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(nullptr));
    CHECK(cudaFreeHost(nullptr));
}

int main() {
    planes();
    volumes();
    directions();
    return finish();
}
