// SPDX-License-Identifier: BSD-3-Clause
// Variables of the program: constant and global memory, initial values, copies to, from and within,
// addresses, sizes.
#include <string>

#include "check.h"

struct Settings {
    int scale;
    double offset;
    char name[8];
};

__constant__ Settings settings = {3, 0.5, "first"};
__constant__ float table[64];
__device__ int counter = 40;
__device__ float grid[16][8];
__device__ int* pointer_to_counter = &counter;
static __device__ unsigned long long hidden = 0x0123456789abcdefull;

__global__ void use(double* out, char* name) {
    const int i = threadIdx.x;
    out[i] = settings.scale * table[i] + settings.offset + grid[i / 8 % 16][i % 8];
    if (i < 8)
        name[i] = settings.name[i];
    if (i == 0) {
        *pointer_to_counter += 2;
        ++hidden;
    }
}

int main() {
    std::vector<float> values(64), cells(128);
    for (int i = 0; i < 64; ++i)
        values[i] = i * 0.25f;
    for (int i = 0; i < 128; ++i)
        cells[i] = static_cast<float>(i);
    CHECK(cudaMemcpyToSymbol(table, values.data(), 64 * sizeof(float)));
    CHECK(cudaMemcpyToSymbol(grid, cells.data(), 64 * sizeof(float)));
    CHECK(cudaMemcpyToSymbol(grid, cells.data() + 64, 64 * sizeof(float), 64 * sizeof(float)));
    Buffer<double> out(64);
    Buffer<char> name(8);
    use<<<1, 64>>>(out, name);
    LAUNCHED();
    const std::vector<double> first = out.read();
    for (int i = 0; i < 64; ++i)
        EXPECT_EQ(first[i], 3 * (i * 0.25) + 0.5 + i);
    EXPECT(std::string(name.read().data()) == "first");

    int count = 0;
    unsigned long long secret = 0;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    CHECK(cudaMemcpyFromSymbol(&secret, hidden, sizeof secret));
    EXPECT_EQ(count, 42);
    EXPECT(secret == 0x0123456789abcdf0ull);

    const Settings second = {5, -1, "second"};
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemcpyToSymbolAsync(settings, &second, sizeof second, 0, cudaMemcpyHostToDevice, stream));
    use<<<1, 64, 0, stream>>>(out, name);
    LAUNCHED();
    CHECK(cudaMemcpyFromSymbolAsync(&count, counter, sizeof count, 0, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    EXPECT_EQ(count, 44);
    EXPECT_EQ(out.read()[63], 5 * 63 * 0.25 - 1 + 63);

    void* address = nullptr;
    size_t size = 0;
    CHECK(cudaGetSymbolAddress(&address, grid));
    CHECK(cudaGetSymbolSize(&size, grid));
    EXPECT_EQ(size, 128 * sizeof(float));
    float cell = 0;
    CHECK(cudaMemcpy(&cell, static_cast<float*>(address) + 77, sizeof cell, cudaMemcpyDeviceToHost));
    EXPECT_EQ(cell, 77.0f);
    CHECK(cudaMemcpyToSymbol(grid, address, 32, 64, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpyFromSymbol(&cell, grid, sizeof cell, 68));
    EXPECT_EQ(cell, 1.0f);

    int ordinary = 0;
    EXPECT(cudaMemcpyToSymbol(ordinary, &count, sizeof count) == cudaErrorInvalidSymbol);
    EXPECT(cudaMemcpyToSymbol(counter, values.data(), 8) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    return finish();
}
