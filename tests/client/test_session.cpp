// SPDX-License-Identifier: BSD-3-Clause
// The client's session against the worker's executor, over the real transport, with softgpu as the driver.
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE session
#include "tests/client/worker_process.h"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <numeric>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace vgpu;
using client::no_context;
using protocol::Call;
using protocol::WireId;
using test::Fixture;

namespace {

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = static_cast<std::byte>((i * 2654435761U + seed) >> 7);
    }
    return bytes;
}

} // namespace

BOOST_AUTO_TEST_CASE(hello_shows_the_vgpus) {
    test::WorkerSettings settings;
    settings.memory = {64U << 20, 32U << 20};
    Fixture fixture(settings);
    const auto& devices = fixture.session->devices();
    BOOST_REQUIRE(devices.size() == 2U);
    BOOST_TEST(!devices[0].name.empty());
    BOOST_TEST(devices[0].total_memory == 64U << 20);
    BOOST_TEST(devices[1].total_memory == 32U << 20);
    int value = 0;
    BOOST_TEST(devices[0].attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, value) == CUDA_SUCCESS);
    BOOST_TEST(value == 32);
    BOOST_TEST(devices[0].attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, value) == CUDA_SUCCESS);
    BOOST_TEST(value == 0);
    BOOST_TEST(fixture.awaited() == 0U);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(without_a_driver_the_session_says_so) {
    test::WorkerSettings settings;
    settings.cuda_library = "/nowhere/libcuda.so.1";
    test::WorkerProcess worker(settings);
    BOOST_CHECK_EXCEPTION(client::Session("testnode", worker.connect()), client::SessionError,
                          [](const client::SessionError& error) {
                              const std::string text = error.what();
                              return text.find("testnode") != std::string::npos &&
                                     text.find("CudaLibrary") != std::string::npos;
                          });
}

BOOST_AUTO_TEST_CASE(copies_of_all_sizes) {
    Fixture fixture;
    for (const std::size_t size : {1U, 3000U, 5000U, 70'000U, 1'000'000U, 20'000'001U}) {
        for (const bool async : {false, true}) {
            const auto from = pattern(size, static_cast<unsigned>(size));
            const CUdeviceptr memory = fixture.allocate(size);
            const WireId stream = fixture.session->new_id();
            BOOST_TEST(fixture.call<Call::cuStreamCreate>(stream, unsigned{CU_STREAM_NON_BLOCKING}) ==
                       CUDA_SUCCESS);
            BOOST_TEST(fixture.session->copy_to_device(fixture.context, memory, from, stream, async) ==
                       CUDA_SUCCESS);
            std::vector<std::byte> to(size);
            BOOST_TEST(fixture.session->copy_to_host(fixture.context, to, memory, stream, async) ==
                       CUDA_SUCCESS);
            BOOST_TEST((from == to), size << " bytes, async " << async);
            BOOST_TEST(fixture.call<Call::cuStreamDestroy_v2>(stream) == CUDA_SUCCESS);
            BOOST_TEST(fixture.call<Call::cuMemFree_v2>(memory) == CUDA_SUCCESS);
        }
    }
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(a_sent_call_takes_no_round_trip) {
    Fixture fixture;
    const CUdeviceptr memory = fixture.allocate(4096);
    const auto before = fixture.awaited();
    for (int i = 0; i < 1000; ++i) {
        BOOST_TEST(fixture.call<Call::cuMemsetD8_v2>(memory, static_cast<unsigned char>(i),
                                                     std::size_t{4096}) == CUDA_SUCCESS);
    }
    BOOST_TEST(fixture.awaited() == before);
    std::byte last{};
    BOOST_TEST(fixture.session->copy_to_host(fixture.context, {&last, 1}, memory + 4095, {}, false) ==
               CUDA_SUCCESS);
    BOOST_TEST(static_cast<int>(last) == 999 % 256);
    BOOST_TEST(fixture.awaited() == before + 1);
}

BOOST_AUTO_TEST_CASE(memory_counts_against_the_lease) {
    Fixture fixture; // 64 MiB
    std::size_t free = 0;
    std::size_t total = 0;
    BOOST_TEST(fixture.call<Call::cuMemGetInfo_v2>(&free, &total) == CUDA_SUCCESS);
    BOOST_TEST(total == 64U << 20);
    BOOST_TEST(free == total);
    const CUdeviceptr first = fixture.allocate(48U << 20);
    BOOST_TEST(fixture.worker.used() == 48U << 20);
    CUdeviceptr second = 0;
    BOOST_TEST(fixture.call<Call::cuMemAlloc_v2>(&second, std::size_t{17U << 20}) ==
               CUDA_ERROR_OUT_OF_MEMORY);
    BOOST_TEST(fixture.call<Call::cuMemGetInfo_v2>(&free, &total) == CUDA_SUCCESS);
    BOOST_TEST(free == 16U << 20);
    BOOST_TEST(fixture.call<Call::cuMemFree_v2>(first) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuMemAlloc_v2>(&second, std::size_t{17U << 20}) == CUDA_SUCCESS);

    std::size_t pitch = 0;
    CUdeviceptr pitched = 0;
    BOOST_TEST(fixture.call<Call::cuMemAllocPitch_v2>(&pitched, &pitch, std::size_t{1000}, std::size_t{100},
                                                      4U) == CUDA_SUCCESS);
    BOOST_TEST(pitch >= 1000U);
    BOOST_TEST(fixture.worker.used() == (17U << 20) + pitch * 100);
    // More than the lease even though the driver might have it; and so much that the product overflows.
    BOOST_TEST(fixture.call<Call::cuMemAllocPitch_v2>(&pitched, &pitch, std::size_t{1} << 40,
                                                      std::size_t{1} << 30, 4U) == CUDA_ERROR_OUT_OF_MEMORY);
    BOOST_TEST(fixture.end() == 0);
    BOOST_TEST(fixture.worker.used() == 0U); // what the program did not free
}

BOOST_AUTO_TEST_CASE(a_context_takes_its_memory_with_it) {
    Fixture fixture;
    const WireId other = fixture.session->new_id();
    BOOST_TEST(fixture.session->call<Call::cuCtxCreate_v2>(no_context, other, 0U, 0) == CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    BOOST_TEST(fixture.session->call<Call::cuMemAlloc_v2>(other, &memory, std::size_t{1} << 20) ==
               CUDA_SUCCESS);
    (void)fixture.allocate(1U << 20);
    BOOST_TEST(fixture.worker.used() == 2U << 20);
    BOOST_TEST(fixture.session->call<Call::cuCtxDestroy_v2>(no_context, other) == CUDA_SUCCESS);
    BOOST_TEST(fixture.worker.used() == 1U << 20);
    BOOST_TEST(fixture.session->call<Call::cuMemAlloc_v2>(other, &memory, std::size_t{1}) ==
               CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(fixture.session->call<Call::cuDevicePrimaryCtxReset_v2>(no_context, 0) == CUDA_SUCCESS);
    BOOST_TEST(fixture.worker.used() == 0U);
    (void)fixture.allocate(1U << 20); // a primary context that was reset works again
    BOOST_TEST(fixture.session->call<Call::cuDevicePrimaryCtxRelease_v2>(no_context, 0) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuMemAlloc_v2>(&memory, std::size_t{1}) == CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(fixture.worker.used() == 0U);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(errors_of_sent_calls_come_with_the_next_awaited_one) {
    Fixture fixture;
    const CUdeviceptr memory = fixture.allocate(16);
    BOOST_TEST(fixture.call<Call::cuMemFree_v2>(CUdeviceptr{12345}) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuMemsetD8_v2>(memory, static_cast<unsigned char>(1), std::size_t{16}) ==
               CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_ERROR_INVALID_VALUE);
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_SUCCESS); // told once
    // A stream that was never made.
    BOOST_TEST(fixture.call<Call::cuStreamSynchronize>(WireId{4711}) == CUDA_ERROR_INVALID_HANDLE);
    BOOST_TEST(fixture.call<Call::cuStreamSynchronize>(WireId{0x4142434445464748}) ==
               CUDA_ERROR_INVALID_HANDLE);
    // A context that was never made.
    std::size_t free = 0;
    std::size_t total = 0;
    BOOST_TEST(fixture.session->call<Call::cuMemGetInfo_v2>(WireId{4711}, &free, &total) ==
               CUDA_ERROR_INVALID_CONTEXT);
    BOOST_TEST(fixture.session->call<Call::cuMemGetInfo_v2>(no_context, &free, &total) ==
               CUDA_ERROR_INVALID_CONTEXT);
    // A context that could not be made gives the reason.
    const WireId never = fixture.session->new_id();
    BOOST_TEST(fixture.session->call<Call::cuDevicePrimaryCtxRetain>(no_context, never, 5) == CUDA_SUCCESS);
    BOOST_TEST(fixture.session->call<Call::cuCtxSynchronize>(never) == CUDA_ERROR_INVALID_DEVICE);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(streams_and_events) {
    Fixture fixture;
    const CUdeviceptr memory = fixture.allocate(1 << 20);
    const auto before = fixture.awaited();
    const WireId stream = fixture.session->new_id();
    const WireId start = fixture.session->new_id();
    const WireId end = fixture.session->new_id();
    BOOST_TEST(fixture.call<Call::cuStreamCreate>(stream, 0U) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuEventCreate>(start, 0U) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuEventCreate>(end, 0U) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuEventRecord>(start, stream) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuMemsetD32Async>(memory, 7U, std::size_t{1 << 18}, stream) ==
               CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuEventRecord>(end, stream) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuStreamWaitEvent>(protocol::legacy_stream, end, 0U) == CUDA_SUCCESS);
    BOOST_TEST(fixture.awaited() == before);
    BOOST_TEST(fixture.call<Call::cuEventSynchronize>(end) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuEventQuery>(end) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuStreamQuery>(stream) == CUDA_SUCCESS);
    float milliseconds = -1;
    BOOST_TEST(fixture.call<Call::cuEventElapsedTime>(&milliseconds, start, end) == CUDA_SUCCESS);
    BOOST_TEST(milliseconds >= 0.0F);
    BOOST_TEST(fixture.call<Call::cuEventDestroy_v2>(end) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuEventSynchronize>(end) == CUDA_ERROR_INVALID_HANDLE);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(boxes_of_memory) {
    Fixture fixture;
    constexpr std::size_t width = 37, height = 11, depth = 3, host_pitch = 50, device_pitch = 64;
    const CUdeviceptr memory = fixture.allocate(device_pitch * height * depth);
    const auto from = pattern(host_pitch * height * depth, 5);
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = width;
    copy.Height = height;
    copy.Depth = depth;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from.data();
    copy.srcPitch = host_pitch;
    copy.srcHeight = height;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.dstPitch = device_pitch;
    copy.dstHeight = height;
    BOOST_TEST(fixture.session->copy_3d(fixture.context, copy, {}, false) == CUDA_SUCCESS);
    std::vector<std::byte> to(width * (height - 2) * depth);
    CUDA_MEMCPY3D back{};
    back.WidthInBytes = width - 4; // a part of the box, to another place
    back.Height = height - 2;
    back.Depth = depth;
    back.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    back.srcDevice = memory;
    back.srcXInBytes = 4;
    back.srcY = 2;
    back.srcPitch = device_pitch;
    back.srcHeight = height;
    back.dstMemoryType = CU_MEMORYTYPE_HOST;
    back.dstHost = to.data();
    back.dstXInBytes = 1;
    back.dstPitch = width;
    back.dstHeight = height - 2;
    BOOST_TEST(fixture.session->copy_3d(fixture.context, back, {}, true) == CUDA_SUCCESS);
    bool same = true;
    for (std::size_t z = 0; z < depth; ++z) {
        for (std::size_t y = 0; y < height - 2; ++y) {
            for (std::size_t x = 0; x < width - 4; ++x) {
                same = same && to[(z * (height - 2) + y) * width + x + 1] ==
                                   from[(z * height + y + 2) * host_pitch + x + 4];
            }
        }
    }
    BOOST_TEST(same);
    BOOST_TEST(static_cast<int>(to[0]) == 0);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(a_box_larger_than_a_record) {
    Fixture fixture;
    constexpr std::size_t width = 3000, pitch = 3072, height = 6000; // 18 MB
    const CUdeviceptr memory = fixture.allocate(pitch * height);
    const auto from = pattern(width * height, 3);
    CUDA_MEMCPY3D copy{};
    copy.WidthInBytes = width;
    copy.Height = height;
    copy.Depth = 1;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = from.data();
    copy.srcPitch = width;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.dstPitch = pitch;
    BOOST_TEST(fixture.session->copy_3d(fixture.context, copy, {}, false) == CUDA_SUCCESS);
    std::vector<std::byte> to(width * height);
    std::swap(copy.srcMemoryType, copy.dstMemoryType);
    copy.dstHost = to.data();
    copy.srcDevice = memory;
    std::swap(copy.srcPitch, copy.dstPitch);
    BOOST_TEST(fixture.session->copy_3d(fixture.context, copy, {}, false) == CUDA_SUCCESS);
    BOOST_TEST((from == to));
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(host_functions_run_in_order) {
    Fixture fixture;
    std::vector<int> order;
    for (int i = 0; i < 20; ++i) {
        BOOST_TEST(fixture.session->host_function(fixture.context, {}, [&order, i] { order.push_back(i); }) ==
                   CUDA_SUCCESS);
    }
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_SUCCESS);
    std::vector<int> expected(20);
    std::iota(expected.begin(), expected.end(), 0);
    BOOST_TEST(order == expected, boost::test_tools::per_element());
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(a_waiting_thread_does_not_stop_others) {
    Fixture fixture;
    const CUdeviceptr memory = fixture.allocate(16);
    std::promise<void> go_on;
    const auto gate = go_on.get_future().share();
    const WireId slow = fixture.session->new_id();
    const WireId fast = fixture.session->new_id();
    BOOST_TEST(fixture.call<Call::cuStreamCreate>(slow, unsigned{CU_STREAM_NON_BLOCKING}) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuStreamCreate>(fast, unsigned{CU_STREAM_NON_BLOCKING}) == CUDA_SUCCESS);
    BOOST_TEST(fixture.session->host_function(fixture.context, slow, [gate] { gate.wait(); }) ==
               CUDA_SUCCESS);
    std::thread waiter([&] { BOOST_TEST(fixture.call<Call::cuStreamSynchronize>(slow) == CUDA_SUCCESS); });
    // Only when all of this has worked may the waiting thread's stream go on.
    for (int i = 0; i < 10; ++i) {
        BOOST_TEST(fixture.call<Call::cuMemsetD8Async>(memory, static_cast<unsigned char>(i), std::size_t{16},
                                                       fast) == CUDA_SUCCESS);
        BOOST_TEST(fixture.call<Call::cuStreamSynchronize>(fast) == CUDA_SUCCESS);
    }
    BOOST_TEST(fixture.call<Call::cuStreamQuery>(slow) == CUDA_ERROR_NOT_READY);
    go_on.set_value();
    waiter.join();
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(many_threads) {
    Fixture fixture;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; ++t) {
        threads.emplace_back([&fixture, t] {
            const std::size_t size = 1000 + t * 3000;
            for (unsigned i = 0; i < 30; ++i) {
                const auto from = pattern(size, t * 100 + i);
                CUdeviceptr memory = 0;
                BOOST_TEST(fixture.call<Call::cuMemAlloc_v2>(&memory, size) == CUDA_SUCCESS);
                BOOST_TEST(fixture.session->copy_to_device(fixture.context, memory, from, {}, false) ==
                           CUDA_SUCCESS);
                std::vector<std::byte> to(size);
                BOOST_TEST(fixture.session->copy_to_host(fixture.context, to, memory, {}, false) ==
                           CUDA_SUCCESS);
                BOOST_TEST((from == to));
                BOOST_TEST(fixture.call<Call::cuMemFree_v2>(memory) == CUDA_SUCCESS);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_SUCCESS);
    BOOST_TEST(fixture.worker.used() == 0U);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(a_lost_worker_is_an_error_and_not_a_hang) {
    Fixture fixture;
    (void)fixture.allocate(16);
    fixture.worker.process().kill(SIGKILL);
    std::size_t free = 0;
    std::size_t total = 0;
    BOOST_TEST(fixture.call<Call::cuMemGetInfo_v2>(&free, &total) == CUDA_ERROR_DEVICE_UNAVAILABLE);
    BOOST_TEST(fixture.session->lost());
    BOOST_TEST(fixture.call<Call::cuMemFree_v2>(CUdeviceptr{1}) == CUDA_ERROR_DEVICE_UNAVAILABLE);
    const auto large = pattern(20'000'000, 1);
    BOOST_TEST(fixture.session->copy_to_device(fixture.context, 1, large, {}, false) ==
               CUDA_ERROR_DEVICE_UNAVAILABLE);
}

BOOST_AUTO_TEST_CASE(after_shutdown_the_driver_is_gone) {
    Fixture fixture;
    fixture.session->shutdown();
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_ERROR_DEINITIALIZED);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(a_program_that_asks_gets_its_counts) {
    // Printed when a process exits, so there must be one that does.
    std::fflush(nullptr);
    FILE* err = std::tmpfile();
    BOOST_REQUIRE(err != nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::setenv("VGPU_STATS", "1", 1);
        ::dup2(::fileno(err), STDERR_FILENO);
        Fixture fixture;
        (void)fixture.allocate(16);
        (void)fixture.call<Call::cuCtxSynchronize>();
        std::exit(0); // with the session still open, as programs do
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(pid, &status, 0) == pid);
    std::string text(1 << 16, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, ::pread(::fileno(err), text.data(), text.size(), 0))));
    std::fclose(err);
    BOOST_TEST(text.find("\nvgpu: round trips awaited: 2, calls sent: 1\n") != std::string::npos, text);
    BOOST_TEST(text.find("cuMemAlloc_v2") != std::string::npos);
    BOOST_TEST(text.find("hello") == std::string::npos);
}
