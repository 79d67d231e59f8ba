// SPDX-License-Identifier: BSD-3-Clause
// What fails, how it is reported, and that a thread's last error is kept and cleared.
#include <string>
#include <thread>

#include "check.h"

__global__ void __launch_bounds__(128) touch(int* data) {
    data[threadIdx.x] = 1;
}
__global__ void stray(int* data) {
    data[1ull << 34] = 1;
}

int main() {
    Buffer<int> data(1024);
    EXPECT(cudaGetLastError() == cudaSuccess);
    touch<<<1, 2048>>>(data);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    EXPECT(cudaGetLastError() == cudaSuccess);
    touch<<<0, 32>>>(data);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    touch<<<1, dim3(1, 1, 65)>>>(data);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    touch<<<dim3(1, 70000), 1>>>(data);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    touch<<<1, 256>>>(data); // more than its launch bounds
    EXPECT(cudaGetLastError() != cudaSuccess);
    touch<<<1, 32, 1 << 20>>>(data);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaDeviceSynchronize());

    void* pointer = nullptr;
    EXPECT(cudaMalloc(&pointer, 1ull << 46) == cudaErrorMemoryAllocation);
    EXPECT(pointer == nullptr);
    std::thread([] { EXPECT(cudaGetLastError() == cudaSuccess); }).join();
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaMalloc(nullptr, 4) == cudaErrorInvalidValue);
    EXPECT(cudaSetDevice(1000) == cudaErrorInvalidDevice);
    EXPECT(cudaFree(reinterpret_cast<void*>(0x1234)) == cudaErrorInvalidValue);
    (void)cudaGetLastError();
    EXPECT(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
    EXPECT(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
    EXPECT(std::string(cudaGetErrorString(static_cast<cudaError_t>(12345))) == "unrecognized error code");

    // The last: from an illegal address the context does not come back.
    stray<<<1, 1>>>(data);
    LAUNCHED();
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaMalloc(&pointer, 4) == cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    // A new context works again.
    CHECK(cudaDeviceReset());
    int* again = nullptr;
    CHECK(cudaMalloc(&again, 128 * sizeof(int)));
    touch<<<1, 128>>>(again);
    LAUNCHED();
    int value = 0;
    CHECK(cudaMemcpy(&value, again + 127, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT_EQ(value, 1);
    return finish();
}
