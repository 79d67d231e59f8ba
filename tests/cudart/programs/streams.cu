// SPDX-License-Identifier: BSD-3-Clause
// Order within and between streams, events, host functions and callbacks, priorities, the two default
// streams.
#include <atomic>
#include <thread>

#include "check.h"

__global__ void append(int* log, int* length, int what) {
    log[atomicAdd(length, 1)] = what;
}

__global__ void slow_set(int* value, int to, int rounds) {
    unsigned x = 1;
    for (int i = 0; i < rounds; ++i)
        x = x * 1664525u + 1013904223u;
    *value = x == 0 ? -1 : to;
}

struct Note {
    std::atomic<int> calls{0};
    int seen = -1;
    int* pinned = nullptr;
};

void CUDART_CB on_host(void* data) {
    Note* note = static_cast<Note*>(data);
    note->seen = *note->pinned;
    ++note->calls;
}

void CUDART_CB on_callback(cudaStream_t, cudaError_t status, void* data) {
    if (status == cudaSuccess)
        ++static_cast<Note*>(data)->calls;
}

int main() {
    int *log = nullptr, *length = nullptr, *value = nullptr, *pinned = nullptr;
    CHECK(cudaMalloc(&log, 64 * sizeof(int)));
    CHECK(cudaMalloc(&length, sizeof(int)));
    CHECK(cudaMalloc(&value, sizeof(int)));
    CHECK(cudaMallocHost(&pinned, sizeof(int)));
    CHECK(cudaMemset(length, 0, sizeof(int)));

    int least = 0, greatest = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least >= greatest);
    cudaStream_t a, b, plain;
    CHECK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&plain));
    int priority = 99;
    unsigned flags = 99;
    CHECK(cudaStreamGetPriority(a, &priority));
    CHECK(cudaStreamGetFlags(b, &flags));
    EXPECT_EQ(priority, greatest);
    EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));

    // b waits for a.
    cudaEvent_t event, start, stop;
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start, a));
    append<<<1, 1, 0, a>>>(log, length, 1);
    slow_set<<<1, 1, 0, a>>>(value, 7, 2000);
    CHECK(cudaEventRecord(event, a));
    CHECK(cudaStreamWaitEvent(b, event, 0));
    append<<<1, 1, 0, b>>>(log, length, 2);
    CHECK(cudaMemcpyAsync(pinned, value, sizeof(int), cudaMemcpyDeviceToHost, b));
    Note note;
    note.pinned = pinned;
    CHECK(cudaLaunchHostFunc(b, on_host, &note));
    CHECK(cudaStreamAddCallback(b, on_callback, &note, 0));
    CHECK(cudaEventRecord(stop, b));
    CHECK(cudaStreamSynchronize(b));
    EXPECT_EQ(note.seen, 7);
    EXPECT_EQ(note.calls.load(), 2);
    EXPECT(cudaEventQuery(event) == cudaSuccess);
    EXPECT(cudaStreamQuery(a) == cudaSuccess);
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    EXPECT(milliseconds >= 0);
    EXPECT(cudaEventElapsedTime(&milliseconds, event, stop) == cudaErrorInvalidResourceHandle);
    (void)cudaGetLastError();

    // The legacy default stream waits for blocking streams and they for it.
    slow_set<<<1, 1, 0, plain>>>(value, 21, 5000);
    append<<<1, 1>>>(log, length, 3);
    slow_set<<<1, 1>>>(value, 22, 10);
    append<<<1, 1, 0, plain>>>(log, length, 4);
    LAUNCHED();
    CHECK(cudaDeviceSynchronize());
    int order[4], last = 0;
    CHECK(cudaMemcpy(order, log, sizeof order, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&last, value, sizeof last, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(order[i], i + 1);
    EXPECT_EQ(last, 22);

    // Host threads, each with a stream of its own and with the per-thread default stream.
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            int* mine = nullptr;
            int result = 0;
            if (cudaMalloc(&mine, sizeof(int)) != cudaSuccess)
                return;
            slow_set<<<1, 1, 0, cudaStreamPerThread>>>(mine, 100 + t, 500);
            if (cudaMemcpyAsync(&result, mine, sizeof result, cudaMemcpyDeviceToHost, cudaStreamPerThread) !=
                cudaSuccess)
                return;
            if (cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess)
                return;
            right += result == 100 + t && cudaFree(mine) == cudaSuccess;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(right.load(), 4);

    CHECK(cudaEventDestroy(event));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaStreamDestroy(a));
    CHECK(cudaStreamDestroy(b));
    CHECK(cudaStreamDestroy(plain));
    CHECK(cudaFree(log));
    CHECK(cudaFree(length));
    CHECK(cudaFree(value));
    CHECK(cudaFreeHost(pinned));
    return finish();
}
