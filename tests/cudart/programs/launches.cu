// SPDX-License-Identifier: BSD-3-Clause
// Ways to launch, what is known of a kernel, occupancy, grids of three dimensions, special registers.
#include <string>

#include "check.h"

__global__ void coordinates(int* out, dim3 whole) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
              z = blockIdx.z * blockDim.z + threadIdx.z;
    out[(z * whole.y + y) * whole.x + x] = x + 100 * y + 10000 * z;
}

__global__ void __launch_bounds__(256) named(float* out, float factor) {
    __shared__ float staged[100];
    staged[threadIdx.x % 100] = factor;
    __syncthreads();
    out[threadIdx.x] = staged[(threadIdx.x * 7) % 100];
}

__global__ void registers(unsigned* out, long long* clocks) {
    unsigned lane, warp, sm;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    const long long before = clock64();
    __nanosleep(10);
    const long long after = clock64();
    out[threadIdx.x] = warp < 64 && sm < 1024 ? lane : ~0u;
    out[64 + threadIdx.x] = warpSize + (gridDim.x == 2) * 100;
    if (blockIdx.x == 1)
        clocks[threadIdx.x] = after - before;
}

template <int N>
__global__ void count_down(int* out) {
    out[N] = N;
}

int main() {
    const dim3 block(4, 3, 2), grid(3, 2, 4), whole(12, 6, 8);
    Buffer<int> cells(12 * 6 * 8);
    coordinates<<<grid, block>>>(cells, whole);
    LAUNCHED();
    const std::vector<int> c = cells.read();
    for (int i = 0; i < 12 * 6 * 8; ++i)
        EXPECT_EQ(c[i], i % 12 + 100 * (i / 12 % 6) + 10000 * (i / 72));

    Buffer<float> floats(256);
    float* out = floats;
    float factor = 2.5f;
    void* arguments[] = {&out, &factor};
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(named), dim3(1), dim3(256), arguments, 0, nullptr));
    EXPECT_EQ(floats.read()[255], 2.5f);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(256);
    CHECK(cudaLaunchKernelEx(&config, named, out, 3.5f));
    EXPECT_EQ(floats.read()[255], 3.5f);

    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, named));
    EXPECT_EQ(attributes.sharedSizeBytes, 400u);
    EXPECT(attributes.maxThreadsPerBlock >= 256 && attributes.ptxVersion >= 75 && attributes.numRegs > 0);
#if CUDART_VERSION >= 12040
    const char* name = nullptr;
    CHECK(cudaFuncGetName(&name, reinterpret_cast<const void*>(named)));
    EXPECT(std::string(name).find("named") != std::string::npos);
    size_t offset = 0, size = 0;
    CHECK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(named), 1, &offset, &size));
    EXPECT(offset == 8 && size == 4);
#endif
    EXPECT(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&finish)) ==
           cudaErrorInvalidDeviceFunction);
    (void)cudaGetLastError();

    int blocks = 0, least_grid = 0, best_block = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, named, 256, 0));
    EXPECT(blocks >= 1);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&least_grid, &best_block, coordinates, 0, 0));
    EXPECT(best_block >= 32 && best_block <= 1024 && least_grid >= 1);

    cudaFunction_t function = nullptr;
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(named)));
    EXPECT(function != nullptr);
#if CUDART_VERSION >= 12050
    cudaKernel_t kernel = nullptr;
    CHECK(cudaGetKernel(&kernel, reinterpret_cast<const void*>(named)));
    factor = 4.5f;
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(256), arguments, 0, nullptr));
    EXPECT_EQ(floats.read()[0], 4.5f);
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &found));
    EXPECT(entry != nullptr && found == cudaDriverEntryPointSuccess);
#else
    void* entry = nullptr;
    CHECK(cudaGetDriverEntryPoint("cuMemAlloc", &entry, cudaEnableDefault));
    EXPECT(entry != nullptr);
#endif

    Buffer<unsigned> special(128);
    Buffer<long long> clocks(64);
    registers<<<2, 64>>>(special, clocks);
    LAUNCHED();
    const std::vector<unsigned> s = special.read();
    const std::vector<long long> elapsed = clocks.read();
    for (int i = 0; i < 64; ++i) {
        EXPECT_EQ(s[i], static_cast<unsigned>(i % 32));
        EXPECT_EQ(s[64 + i], 132u);
        EXPECT(elapsed[i] >= 0);
    }

    count_down<3><<<1, 1>>>(cells);
    count_down<7><<<1, 1>>>(cells);
    LAUNCHED();
    EXPECT_EQ(cells.read()[7] + cells.read()[3], 10);

    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, 0));
    EXPECT(p.warpSize == 32 && p.maxThreadsPerBlock >= 1024 && p.multiProcessorCount > 0 &&
           p.totalGlobalMem > 0 && p.major >= 7);
    char pci[32] = "";
    int device = -1;
    CHECK(cudaDeviceGetPCIBusId(pci, sizeof pci, 0));
    CHECK(cudaDeviceGetByPCIBusId(&device, pci));
    EXPECT_EQ(device, 0);
    int driver = 0, runtime = 0;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    EXPECT(driver >= CUDART_VERSION / 1000 * 1000 && runtime == CUDART_VERSION);
    size_t stack = 0;
    CHECK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    EXPECT(stack > 0);
    return finish();
}
