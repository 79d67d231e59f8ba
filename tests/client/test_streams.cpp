// SPDX-License-Identifier: BSD-3-Clause
// Streams, events, host functions, and several threads at once.
#include "tests/client/driver.h"

#include <atomic>
#include <cstdint>
#include <thread>

using driver::Buffer;
using driver::download;
using driver::Kernels;
using driver::Primary;

BOOST_FIXTURE_TEST_SUITE(streams, Primary)

BOOST_AUTO_TEST_CASE(life) {
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    unsigned flags = 0;
    OK(CU(cuStreamGetFlags)(stream, &flags));
    BOOST_CHECK_EQUAL(flags, unsigned(CU_STREAM_NON_BLOCKING));
    CUcontext of = nullptr;
    OK(CU(cuStreamGetCtx)(stream, &of));
    BOOST_CHECK(of == context);
    OK(CU(cuStreamQuery)(stream));
    OK(CU(cuStreamSynchronize)(stream));
    OK(CU(cuStreamDestroy)(stream));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuStreamCreate)(&stream, 99));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuStreamCreate)(nullptr, 0));
    OK(CU(cuStreamSynchronize)(nullptr));
    OK(CU(cuStreamSynchronize)(CU_STREAM_LEGACY));
    OK(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
}

BOOST_AUTO_TEST_CASE(priorities) {
    int least = 0, greatest = 0, priority = 0;
    OK(CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
    CUstream stream = nullptr;
    OK(CU(cuStreamCreateWithPriority)(&stream, 0, greatest - 100));
    OK(CU(cuStreamGetPriority)(stream, &priority));
    BOOST_CHECK_EQUAL(priority, greatest);
    OK(CU(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(order_within_a_stream) {
    Kernels kernels;
    CUfunction scale = kernels["scale"];
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, 0));
    const unsigned n = 1000;
    Buffer a(n * 4);
    OK(CU(cuMemsetD32Async)(a, 1, n, stream));
    CUdeviceptr pointer = a;
    unsigned count = n, factor = 3;
    void* parameters[] = {&pointer, &count, &factor};
    for (int i = 0; i < 5; ++i)
        OK(CU(cuLaunchKernel)(scale, 8, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
    std::vector<unsigned> back(n);
    OK(CU(cuMemcpyDtoHAsync)(back.data(), a, n * 4, stream));
    OK(CU(cuStreamSynchronize)(stream));
    BOOST_CHECK(back == std::vector<unsigned>(n, 243));
    OK(CU(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(events) {
    CUevent start = nullptr, end = nullptr, untimed = nullptr;
    OK(CU(cuEventCreate)(&start, 0));
    OK(CU(cuEventCreate)(&end, 0));
    OK(CU(cuEventCreate)(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(CU(cuEventRecord)(start, nullptr));
    Buffer a(1 << 20);
    OK(CU(cuMemsetD8)(a, 0, 1 << 20));
    OK(CU(cuEventRecord)(end, nullptr));
    OK(CU(cuEventSynchronize)(end));
    OK(CU(cuEventQuery)(end));
    float milliseconds = -1;
    OK(CU(cuEventElapsedTime)(&milliseconds, start, end));
    BOOST_CHECK_GE(milliseconds, 0);
    OK(CU(cuEventRecord)(untimed, nullptr));
    OK(CU(cuEventSynchronize)(untimed));
    FAILS(CUDA_ERROR_INVALID_HANDLE, CU(cuEventElapsedTime)(&milliseconds, start, untimed));
    OK(CU(cuEventDestroy)(start));
    OK(CU(cuEventDestroy)(end));
    OK(CU(cuEventDestroy)(untimed));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuEventCreate)(&start, 1000));
}

BOOST_AUTO_TEST_CASE(streams_wait_for_events) {
    Kernels kernels;
    CUfunction scale = kernels["scale"];
    CUstream one = nullptr, two = nullptr;
    OK(CU(cuStreamCreate)(&one, CU_STREAM_NON_BLOCKING));
    OK(CU(cuStreamCreate)(&two, CU_STREAM_NON_BLOCKING));
    CUevent event = nullptr;
    OK(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    const unsigned n = 100'000;
    Buffer a(n * 4);
    CUdeviceptr pointer = a;
    unsigned count = n, factor = 2;
    void* parameters[] = {&pointer, &count, &factor};
    OK(CU(cuMemsetD32Async)(a, 1, n, one));
    OK(CU(cuLaunchKernel)(scale, (n + 255) / 256, 1, 1, 256, 1, 1, 0, one, parameters, nullptr));
    OK(CU(cuEventRecord)(event, one));
    OK(CU(cuStreamWaitEvent)(two, event, 0));
    factor = 5;
    OK(CU(cuLaunchKernel)(scale, (n + 255) / 256, 1, 1, 256, 1, 1, 0, two, parameters, nullptr));
    OK(CU(cuStreamSynchronize)(two));
    BOOST_CHECK(download<unsigned>(a, n) == std::vector<unsigned>(n, 10));
    OK(CU(cuStreamDestroy)(one));
    OK(CU(cuStreamDestroy)(two));
    OK(CU(cuEventDestroy)(event));
}

BOOST_AUTO_TEST_CASE(host_functions) {
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    static std::vector<int> order;
    order.clear();
    static int numbers[] = {1, 2, 3, 4, 5};
    for (int& number : numbers)
        OK(CU(cuLaunchHostFunc)(
            stream, [](void* data) { order.push_back(*static_cast<int*>(data)); }, &number));
    OK(CU(cuStreamAddCallback)(
        stream, [](CUstream, CUresult status, void*) { order.push_back(status == CUDA_SUCCESS ? 6 : -1); },
        nullptr, 0));
    OK(CU(cuStreamSynchronize)(stream));
    BOOST_CHECK((order == std::vector<int>{1, 2, 3, 4, 5, 6}));
    OK(CU(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(host_function_fills_what_a_copy_reads) {
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    void* pinned = nullptr;
    OK(CU(cuMemHostAlloc)(&pinned, 4, 0));
    *static_cast<int*>(pinned) = 1;
    Buffer a(4);
    OK(CU(cuLaunchHostFunc)(
        stream, [](void* data) { *static_cast<int*>(data) = 42; }, pinned));
    OK(CU(cuMemcpyHtoDAsync)(a, pinned, 4, stream));
    OK(CU(cuStreamSynchronize)(stream));
    BOOST_CHECK_EQUAL(download<int>(a, 1)[0], 42);
    OK(CU(cuMemFreeHost)(pinned));
    OK(CU(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(host_functions_must_not_call) {
    static CUresult result;
    result = CUDA_SUCCESS;
    OK(CU(cuLaunchHostFunc)(
        nullptr,
        [](void*) {
            CUdeviceptr memory = 0;
            result = CU(cuMemAlloc)(&memory, 100);
        },
        nullptr));
    OK(CU(cuStreamSynchronize)(nullptr));
    FAILS(CUDA_ERROR_NOT_PERMITTED, result);
}

BOOST_AUTO_TEST_CASE(many_threads) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            const unsigned n = 5000;
            if (CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
                ++wrong;
            for (unsigned round = 0; round < 20; ++round) {
                CUdeviceptr a = 0;
                CUstream stream = nullptr;
                std::vector<unsigned> back(n);
                unsigned value = t * 1000 + round;
                if (CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
                    CU(cuMemAlloc)(&a, n * 4) != CUDA_SUCCESS ||
                    CU(cuMemsetD32Async)(a, value, n, stream) != CUDA_SUCCESS ||
                    CU(cuMemcpyDtoHAsync)(back.data(), a, n * 4, stream) != CUDA_SUCCESS ||
                    CU(cuStreamSynchronize)(stream) != CUDA_SUCCESS || CU(cuMemFree)(a) != CUDA_SUCCESS ||
                    CU(cuStreamDestroy)(stream) != CUDA_SUCCESS || back != std::vector<unsigned>(n, value))
                    ++wrong;
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    BOOST_CHECK_EQUAL(wrong.load(), 0);
}

BOOST_AUTO_TEST_CASE(per_thread_default_stream) {
    using Launch = CUresult (*)(CUdeviceptr, unsigned, size_t, CUstream);
    auto memset_per_thread = reinterpret_cast<Launch>(driver::symbol("cuMemsetD32Async_ptsz"));
    using Sync = CUresult (*)(CUstream);
    auto synchronize_per_thread = reinterpret_cast<Sync>(driver::symbol("cuStreamSynchronize_ptsz"));
    Buffer a(4000);
    std::thread([&] {
        FAILS(CUDA_SUCCESS, CU(cuCtxSetCurrent)(context));
        FAILS(CUDA_SUCCESS, memset_per_thread(a, 11, 1000, nullptr));
        FAILS(CUDA_SUCCESS, synchronize_per_thread(nullptr));
    }).join();
    BOOST_CHECK(download<unsigned>(a, 1000) == std::vector<unsigned>(1000, 11));
}

BOOST_AUTO_TEST_SUITE_END()
