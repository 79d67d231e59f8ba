// SPDX-License-Identifier: BSD-3-Clause
// The order of work: streams, the legacy default stream, events, host functions.
#include "tests/softgpu/driver.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

using namespace softgpu_test;

namespace {

// A host function that holds its stream up until it is opened.
class Gate {
public:
    void open() {
        const std::lock_guard guard(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    static void wait(void* self) {
        auto& gate = *static_cast<Gate*>(self);
        std::unique_lock guard(gate.mutex_);
        gate.changed_.wait(guard, [&] { return gate.open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

struct Stream {
    explicit Stream(unsigned flags = CU_STREAM_DEFAULT) { REQUIRE_CU(CU(cuStreamCreate)(&handle, flags)); }
    ~Stream() { (void)CU(cuStreamDestroy)(handle); }
    CUstream handle = nullptr;
};

struct Event {
    Event() { REQUIRE_CU(CU(cuEventCreate)(&handle, CU_EVENT_DEFAULT)); }
    ~Event() { (void)CU(cuEventDestroy)(handle); }
    CUevent handle = nullptr;
};

void count(void* counter) {
    ++*static_cast<std::atomic<int>*>(counter);
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(streams, PrimaryContext)

BOOST_AUTO_TEST_CASE(work_is_done_later_and_in_order) {
    const Stream stream;
    Gate gate;
    REQUIRE_CU(CU(cuLaunchHostFunc)(stream.handle, Gate::wait, &gate));
    std::vector<int> order;
    struct Step {
        std::vector<int>* order;
        int number;
    };
    std::vector<Step> steps;
    for (int i = 0; i < 10; ++i)
        steps.push_back({&order, i});
    for (auto& step : steps)
        REQUIRE_CU(CU(cuLaunchHostFunc)(
            stream.handle,
            [](void* data) {
                auto* mine = static_cast<Step*>(data);
                mine->order->push_back(mine->number);
            },
            &step));
    CHECK_CU(CU(cuStreamQuery)(stream.handle), CUDA_ERROR_NOT_READY);
    gate.open();
    REQUIRE_CU(CU(cuStreamSynchronize)(stream.handle));
    CHECK_CU(CU(cuStreamQuery)(stream.handle), CUDA_SUCCESS);
    BOOST_REQUIRE_EQUAL(order.size(), 10U);
    for (int i = 0; i < 10; ++i)
        BOOST_CHECK_EQUAL(order[static_cast<std::size_t>(i)], i);
}

BOOST_AUTO_TEST_CASE(events_mark_moments) {
    const Stream stream;
    const Event first;
    const Event second;
    float milliseconds = -1;
    CHECK_CU(CU(cuEventQuery)(first.handle), CUDA_SUCCESS); // never recorded
    CHECK_CU(CU(cuEventElapsedTime)(&milliseconds, first.handle, second.handle), CUDA_ERROR_INVALID_HANDLE);
    Gate gate;
    REQUIRE_CU(CU(cuEventRecord)(first.handle, stream.handle));
    REQUIRE_CU(CU(cuLaunchHostFunc)(stream.handle, Gate::wait, &gate));
    REQUIRE_CU(CU(cuEventRecord)(second.handle, stream.handle));
    REQUIRE_CU(CU(cuEventSynchronize)(first.handle));
    CHECK_CU(CU(cuEventQuery)(second.handle), CUDA_ERROR_NOT_READY);
    CHECK_CU(CU(cuEventElapsedTime)(&milliseconds, first.handle, second.handle), CUDA_ERROR_NOT_READY);
    gate.open();
    REQUIRE_CU(CU(cuEventSynchronize)(second.handle));
    REQUIRE_CU(CU(cuEventElapsedTime)(&milliseconds, first.handle, second.handle));
    BOOST_CHECK_GE(milliseconds, 0);
}

BOOST_AUTO_TEST_CASE(a_stream_waits_for_an_event_of_another) {
    const Stream one(CU_STREAM_NON_BLOCKING);
    const Stream two(CU_STREAM_NON_BLOCKING);
    const Event event;
    Gate gate;
    std::atomic<int> counter = 0;
    REQUIRE_CU(CU(cuLaunchHostFunc)(one.handle, Gate::wait, &gate));
    REQUIRE_CU(CU(cuEventRecord)(event.handle, one.handle));
    REQUIRE_CU(CU(cuStreamWaitEvent)(two.handle, event.handle, 0));
    REQUIRE_CU(CU(cuLaunchHostFunc)(two.handle, count, &counter));
    CHECK_CU(CU(cuStreamQuery)(two.handle), CUDA_ERROR_NOT_READY);
    BOOST_CHECK_EQUAL(counter, 0);
    gate.open();
    REQUIRE_CU(CU(cuStreamSynchronize)(two.handle));
    BOOST_CHECK_EQUAL(counter, 1);
}

BOOST_AUTO_TEST_CASE(the_legacy_stream_waits_for_blocking_streams_only) {
    const Stream blocking;
    const Stream free(CU_STREAM_NON_BLOCKING);
    Gate gate;
    Gate free_gate;
    std::atomic<int> counter = 0;
    REQUIRE_CU(CU(cuLaunchHostFunc)(free.handle, Gate::wait, &free_gate));
    REQUIRE_CU(CU(cuLaunchHostFunc)(blocking.handle, Gate::wait, &gate));
    REQUIRE_CU(CU(cuLaunchHostFunc)(nullptr, count, &counter));
    const Stream later;
    REQUIRE_CU(CU(cuLaunchHostFunc)(later.handle, count, &counter)); // behind the legacy stream's
    CHECK_CU(CU(cuStreamQuery)(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    CHECK_CU(CU(cuStreamQuery)(later.handle), CUDA_ERROR_NOT_READY);
    BOOST_CHECK_EQUAL(counter, 0);
    gate.open();
    REQUIRE_CU(CU(cuStreamSynchronize)(later.handle));
    BOOST_CHECK_EQUAL(counter, 2);
    CHECK_CU(CU(cuStreamQuery)(free.handle), CUDA_ERROR_NOT_READY);
    free_gate.open();
    REQUIRE_CU(CU(cuCtxSynchronize)());
}

BOOST_AUTO_TEST_CASE(each_thread_has_its_own_default_stream) {
    const auto query = reinterpret_cast<CUresult (*)(CUstream)>(symbol("cuStreamQuery_ptsz"));
    Gate gate;
    REQUIRE_CU(CU(cuLaunchHostFunc)(CU_STREAM_PER_THREAD, Gate::wait, &gate));
    BOOST_CHECK_EQUAL(query(nullptr), CUDA_ERROR_NOT_READY);
    std::thread([&] {
        REQUIRE_CU(CU(cuCtxSetCurrent)(handle));
        BOOST_CHECK_EQUAL(query(nullptr), CUDA_SUCCESS);
    }).join();
    gate.open();
    REQUIRE_CU(CU(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
}

BOOST_AUTO_TEST_CASE(asynchronous_copies) {
    const Stream stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuMemAlloc)(&pointer, 4096));
    Gate gate;
    REQUIRE_CU(CU(cuLaunchHostFunc)(stream.handle, Gate::wait, &gate));
    std::vector<int> values(1024, 3);
    // Pageable memory is the program's again at once.
    REQUIRE_CU(CU(cuMemcpyHtoDAsync)(pointer, values.data(), 4096, stream.handle));
    std::fill(values.begin(), values.end(), 0);
    void* pinned = nullptr;
    REQUIRE_CU(CU(cuMemHostAlloc)(&pinned, 4096, 0));
    REQUIRE_CU(CU(cuMemcpyDtoHAsync)(pinned, pointer, 4096, stream.handle));
    CHECK_CU(CU(cuStreamQuery)(stream.handle), CUDA_ERROR_NOT_READY);
    gate.open();
    REQUIRE_CU(CU(cuStreamSynchronize)(stream.handle));
    BOOST_CHECK_EQUAL(static_cast<int*>(pinned)[1023], 3);
    REQUIRE_CU(CU(cuMemFreeHost)(pinned));
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(callbacks_may_not_call_the_driver) {
    const Stream stream;
    struct Results {
        int status = -1;
        int synchronize = -1;
    } results;
    REQUIRE_CU(CU(cuStreamAddCallback)(
        stream.handle,
        [](CUstream, CUresult status, void* data) {
            auto& results = *static_cast<Results*>(data);
            results.status = status;
            results.synchronize = CU(cuCtxSynchronize)();
        },
        &results, 0));
    REQUIRE_CU(CU(cuStreamSynchronize)(stream.handle));
    BOOST_CHECK_EQUAL(results.status, CUDA_SUCCESS);
    BOOST_CHECK_EQUAL(results.synchronize, CUDA_ERROR_NOT_PERMITTED);
}

BOOST_AUTO_TEST_CASE(a_stream_waits_for_a_value) {
    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuMemAlloc)(&pointer, 4096));
    REQUIRE_CU(CU(cuMemsetD32)(pointer, 0, 1024));
    const Stream one(CU_STREAM_NON_BLOCKING);
    const Stream two(CU_STREAM_NON_BLOCKING);
    std::atomic<int> counter = 0;
    REQUIRE_CU(CU(cuStreamWaitValue32)(one.handle, pointer, 7, CU_STREAM_WAIT_VALUE_GEQ));
    REQUIRE_CU(CU(cuLaunchHostFunc)(one.handle, count, &counter));
    CHECK_CU(CU(cuStreamQuery)(one.handle), CUDA_ERROR_NOT_READY);
    REQUIRE_CU(CU(cuStreamWriteValue32)(two.handle, pointer, 8, CU_STREAM_WRITE_VALUE_DEFAULT));
    REQUIRE_CU(CU(cuStreamSynchronize)(one.handle));
    BOOST_CHECK_EQUAL(counter, 1);
    CHECK_CU(CU(cuStreamWaitValue32)(one.handle, pointer + 2, 7, CU_STREAM_WAIT_VALUE_EQ),
             CUDA_ERROR_INVALID_VALUE);
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(properties_and_stale_handles) {
    CUstream stream = nullptr;
    REQUIRE_CU(CU(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, -100));
    int priority = 0;
    int greatest = 0;
    REQUIRE_CU(CU(cuStreamGetPriority)(stream, &priority));
    REQUIRE_CU(CU(cuCtxGetStreamPriorityRange)(nullptr, &greatest));
    BOOST_CHECK_EQUAL(priority, greatest);
    unsigned flags = 0;
    REQUIRE_CU(CU(cuStreamGetFlags)(stream, &flags));
    BOOST_CHECK_EQUAL(flags, CU_STREAM_NON_BLOCKING);
    CUcontext context = nullptr;
    REQUIRE_CU(CU(cuStreamGetCtx)(stream, &context));
    BOOST_CHECK(context == handle);
    REQUIRE_CU(CU(cuStreamDestroy)(stream));
    CHECK_CU(CU(cuStreamSynchronize)(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK_CU(CU(cuStreamDestroy)(stream), CUDA_ERROR_INVALID_HANDLE);
    CHECK_CU(CU(cuEventRecord)(reinterpret_cast<CUevent>(&flags), nullptr), CUDA_ERROR_INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(a_destroyed_stream_finishes_its_work) {
    std::atomic<int> counter = 0;
    Gate gate;
    CUstream stream = nullptr;
    REQUIRE_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    REQUIRE_CU(CU(cuLaunchHostFunc)(stream, Gate::wait, &gate));
    REQUIRE_CU(CU(cuLaunchHostFunc)(stream, count, &counter));
    REQUIRE_CU(CU(cuStreamDestroy)(stream));
    gate.open();
    REQUIRE_CU(CU(cuCtxSynchronize)());
    BOOST_CHECK_EQUAL(counter, 1);
}

BOOST_AUTO_TEST_CASE(many_threads_many_streams) {
    std::atomic<int> counter = 0;
    Failures check;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            check(CU(cuCtxSetCurrent)(handle));
            CUstream stream = nullptr;
            check(CU(cuStreamCreate)(&stream, CU_STREAM_DEFAULT));
            for (int i = 0; i < 50; ++i) {
                check(CU(cuLaunchHostFunc)(stream, count, &counter));
                check(CU(cuLaunchHostFunc)(nullptr, count, &counter));
            }
            check(CU(cuCtxSynchronize)());
            check(CU(cuStreamDestroy)(stream));
        });
    for (auto& thread : threads)
        thread.join();
    BOOST_CHECK_EQUAL(check.count(), 0);
    BOOST_CHECK_EQUAL(counter, 400);
}

BOOST_AUTO_TEST_SUITE_END()
