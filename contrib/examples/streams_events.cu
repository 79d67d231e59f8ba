// SPDX-License-Identifier: BSD-3-Clause
// Four streams with pinned memory, an event that one waits for, timing, and a host function.
// Build: nvcc streams_events.cu -o streams_events
#include <atomic>
#include <cstdio>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const cudaError_t error_ = (call);                                                                   \
        if (error_ != cudaSuccess) {                                                                         \
            std::fprintf(stderr, "streams_events: %s: %s (%s)\n", #call, cudaGetErrorString(error_),         \
                         cudaGetErrorName(error_));                                                          \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

constexpr int kStreams = 4, kCount = 1 << 14;

__global__ void scale(int n, int factor, const int* in, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = factor * in[i];
}

__global__ void sum(int n, int parts, const int* in, int* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int total = 0;
    for (int p = 0; p < parts; ++p)
        total += in[p * n + i];
    out[i] = total;
}

static void count_up(void* counter) {
    ++*static_cast<std::atomic<int>*>(counter);
}

int main() {
    const size_t bytes = kCount * sizeof(int);
    int *host_in = nullptr, *host_out = nullptr, *in = nullptr, *scaled = nullptr, *total = nullptr;
    CHECK(cudaMallocHost(&host_in, kStreams * bytes));
    CHECK(cudaMallocHost(&host_out, bytes));
    CHECK(cudaMalloc(&in, kStreams * bytes));
    CHECK(cudaMalloc(&scaled, kStreams * bytes));
    CHECK(cudaMalloc(&total, bytes));
    for (int i = 0; i < kStreams * kCount; ++i)
        host_in[i] = i % 101;
    for (int i = 0; i < kCount; ++i)
        host_out[i] = -1;

    cudaStream_t streams[kStreams];
    cudaEvent_t done[kStreams], start, stop;
    std::atomic<int> called{0};
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int s = 0; s < kStreams; ++s) {
        CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
    }
    CHECK(cudaEventRecord(start, streams[0]));
    for (int s = 0; s < kStreams; ++s) {
        const int at = s * kCount;
        CHECK(cudaMemcpyAsync(in + at, host_in + at, bytes, cudaMemcpyHostToDevice, streams[s]));
        scale<<<kCount / 128, 128, 0, streams[s]>>>(kCount, s + 1, in + at, scaled + at);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(done[s], streams[s]));
        CHECK(cudaLaunchHostFunc(streams[s], count_up, &called));
    }
    for (int s = 1; s < kStreams; ++s)
        CHECK(cudaStreamWaitEvent(streams[0], done[s], 0));
    sum<<<kCount / 128, 128, 0, streams[0]>>>(kCount, kStreams, scaled, total);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(host_out, total, bytes, cudaMemcpyDeviceToHost, streams[0]));
    CHECK(cudaEventRecord(stop, streams[0]));
    CHECK(cudaEventSynchronize(stop));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    for (int s = 0; s < kStreams; ++s) {
        CHECK(cudaStreamSynchronize(streams[s]));
        CHECK(cudaStreamQuery(streams[s]));
        CHECK(cudaStreamDestroy(streams[s]));
        CHECK(cudaEventDestroy(done[s]));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));

    int wrong = 0;
    for (int i = 0; i < kCount; ++i) {
        int expected = 0;
        for (int s = 0; s < kStreams; ++s)
            expected += (s + 1) * host_in[s * kCount + i];
        wrong += host_out[i] != expected;
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(scaled));
    CHECK(cudaFree(total));
    CHECK(cudaFreeHost(host_in));
    CHECK(cudaFreeHost(host_out));
    std::printf("streams_events: %d streams, %d wrong, %d host functions, %.3f ms\n", kStreams, wrong,
                called.load(), milliseconds);
    return wrong == 0 && called == kStreams && milliseconds >= 0 ? 0 : 1;
}
