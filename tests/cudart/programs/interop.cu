// SPDX-License-Identifier: BSD-3-Clause
// nvcc: -lcuda
// Both APIs in one program: contexts, memory, streams and modules made by one and used by the other.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define DRIVER(call)                                                                                         \
    do {                                                                                                     \
        const CUresult result_ = (call);                                                                     \
        if (result_ != CUDA_SUCCESS) {                                                                       \
            std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, result_);               \
            std::exit(1);                                                                                    \
        }                                                                                                    \
    } while (0)

__device__ int counter = 7;
__global__ void bump(int* out, int by) {
    counter += by;
    *out = counter;
}

int read(CUdeviceptr pointer) {
    int value = 0;
    DRIVER(cuMemcpyDtoH(&value, pointer, sizeof value));
    return value;
}

int main() {
    DRIVER(cuInit(0));
    // The runtime works in the context that is current.
    CUdevice device;
    CUcontext own, primary, current;
    DRIVER(cuDeviceGet(&device, 0));
#if CUDA_VERSION >= 13000
    DRIVER(cuCtxCreate(&own, nullptr, 0, device));
#else
    DRIVER(cuCtxCreate(&own, 0, device));
#endif
    int* out = nullptr;
    CHECK(cudaMalloc(&out, sizeof(int)));
    bump<<<1, 1>>>(out, 3);
    LAUNCHED();
    EXPECT_EQ(read(reinterpret_cast<CUdeviceptr>(out)), 10);
    int value = 0, id = -1;
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT_EQ(value, 10);
    DRIVER(cuCtxGetCurrent(&current));
    EXPECT(current == own);
    CHECK(cudaFree(out));

    // cudaSetDevice changes to the primary context, which has its own variables.
    CHECK(cudaSetDevice(0));
    CHECK(cudaGetDevice(&id));
    EXPECT_EQ(id, 0);
    DRIVER(cuDevicePrimaryCtxRetain(&primary, device));
    DRIVER(cuCtxGetCurrent(&current));
    EXPECT(current == primary);
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT_EQ(value, 7);

    // Handles are the same in both.
    CUstream stream;
    DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr memory;
    DRIVER(cuMemAlloc(&memory, sizeof(int)));
    bump<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(memory), 1);
    LAUNCHED();
    CHECK(cudaStreamSynchronize(stream));
    EXPECT_EQ(read(memory), 8);
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(bump)));
    int by = 12;
    void* arguments[] = {&memory, &by};
    DRIVER(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
    CHECK(cudaStreamSynchronize(stream));
    EXPECT_EQ(read(memory), 20);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(reinterpret_cast<void*>(memory)));

    // Back in the other context: its variables again.
    DRIVER(cuCtxSetCurrent(own));
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT_EQ(value, 10);
    DRIVER(cuCtxDestroy(own));
    CHECK(cudaSetDevice(0));
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT_EQ(value, 20);
    // A reset gives the initial values back.
    CHECK(cudaDeviceReset());
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    EXPECT_EQ(value, 7);

    // A child of a process that has used CUDA cannot; it is told so, and does not hang.
    const pid_t child = fork();
    if (child == 0) {
        void* pointer = nullptr;
        _exit(cudaMalloc(&pointer, 64) == cudaErrorInitializationError ? 0 : 1);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(cudaDeviceSynchronize());
    return finish();
}
