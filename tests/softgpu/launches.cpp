// SPDX-License-Identifier: BSD-3-Clause
// Kernels run, wrong launches are refused, and a kernel's error stays with its context.
#include "tests/softgpu/driver.h"
#include "tests/softgpu/kernels.h"

#include <numeric>
#include <thread>
#include <vector>

using namespace softgpu_test;

namespace {

struct Kernels : OwnContext {
    Kernels() { REQUIRE_CU(CU(cuModuleLoadData)(&module, kernels)); }
    [[nodiscard]] CUfunction function(const char* name) const {
        CUfunction found = nullptr;
        REQUIRE_CU(CU(cuModuleGetFunction)(&found, module, name));
        return found;
    }
    template <class... Values>
    CUresult launch(const char* name, unsigned grid, unsigned block, unsigned shared,
                    Values... values) const {
        void* parameters[] = {&values..., nullptr};
        return CU(cuLaunchKernel)(function(name), grid, 1, 1, block, 1, 1, shared, nullptr, parameters,
                                  nullptr);
    }
    CUmodule module = nullptr;
};

CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuMemAlloc)(&pointer, bytes));
    return pointer;
}

int read(CUdeviceptr pointer) {
    int value = 0;
    REQUIRE_CU(CU(cuMemcpyDtoH)(&value, pointer, sizeof value));
    return value;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(launches, Kernels)

BOOST_AUTO_TEST_CASE(a_kernel_adds) {
    std::vector<int> values(1000);
    std::iota(values.begin(), values.end(), 0);
    const auto pointer = allocate(4000);
    REQUIRE_CU(CU(cuMemcpyHtoD)(pointer, values.data(), 4000));
    REQUIRE_CU(launch("add", 4, 256, 0, pointer, 100, 999));
    std::vector<int> back(1000);
    REQUIRE_CU(CU(cuMemcpyDtoH)(back.data(), pointer, 4000));
    for (int i = 0; i < 999; ++i)
        BOOST_CHECK_EQUAL(back[static_cast<std::size_t>(i)], i + 100);
    BOOST_CHECK_EQUAL(back[999], 999);
}

BOOST_AUTO_TEST_CASE(parameters_in_one_buffer) {
    const auto pointer = allocate(16);
    struct {
        CUdeviceptr to;
        int value;
    } buffer{pointer + 4, 11};
    std::size_t size = sizeof buffer;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    REQUIRE_CU(CU(cuLaunchKernel)(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    BOOST_CHECK_EQUAL(read(pointer + 4), 11);
    size = 8;
    CHECK_CU(CU(cuLaunchKernel)(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra),
             CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(variables_and_constants) {
    const auto pointer = allocate(16);
    REQUIRE_CU(launch("scaled", 1, 1, 0, pointer));
    BOOST_CHECK_EQUAL(read(pointer), 210);
    CUdeviceptr variable = 0;
    REQUIRE_CU(CU(cuModuleGetGlobal)(&variable, nullptr, module, "answer"));
    REQUIRE_CU(CU(cuMemsetD32)(variable, 7, 1));
    REQUIRE_CU(launch("scaled", 1, 1, 0, pointer));
    BOOST_CHECK_EQUAL(read(pointer), 35);
    // The host may write a constant, a kernel may not.
    REQUIRE_CU(launch("store", 1, 1, 0, variable, 1));
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

BOOST_AUTO_TEST_CASE(dynamic_shared_memory) {
    std::vector<int> values(256);
    std::iota(values.begin(), values.end(), 0);
    const auto pointer = allocate(1024);
    REQUIRE_CU(CU(cuMemcpyHtoD)(pointer, values.data(), 1024));
    REQUIRE_CU(launch("reverse", 1, 256, 1024, pointer));
    std::vector<int> back(256);
    REQUIRE_CU(CU(cuMemcpyDtoH)(back.data(), pointer, 1024));
    for (int i = 0; i < 256; ++i)
        BOOST_CHECK_EQUAL(back[static_cast<std::size_t>(i)], 255 - i);
    CHECK_CU(launch("reverse", 1, 256, 49 * 1024, pointer), CUDA_ERROR_INVALID_VALUE);
    REQUIRE_CU(CU(cuFuncSetAttribute)(function("reverse"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                      99 * 1024));
    CHECK_CU(launch("reverse", 1, 256, 99 * 1024, pointer), CUDA_SUCCESS);
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(impossible_shapes_fail_at_once) {
    const auto pointer = allocate(16);
    CHECK_CU(launch("store", 0, 1, 0, pointer, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(launch("store", 1, 0, 0, pointer, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(launch("store", 1, 1025, 0, pointer, 1), CUDA_ERROR_INVALID_VALUE);
    const auto shape = [&](unsigned gy, unsigned bx, unsigned by, unsigned bz) {
        int value = 1;
        CUdeviceptr to = pointer;
        void* parameters[] = {&to, &value};
        return CU(cuLaunchKernel)(function("store"), 1, gy, 1, bx, by, bz, 0, nullptr, parameters, nullptr);
    };
    CHECK_CU(shape(65536, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(shape(1, 32, 32, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(shape(1, 1, 1, 65), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(shape(1, 4, 4, 64), CUDA_SUCCESS);
    CHECK_CU(CU(cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
             CUDA_ERROR_INVALID_HANDLE);
    CHECK_CU(CU(cuLaunchKernel)(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(cooperative_grids_must_be_resident) {
    int value = 1;
    CUdeviceptr to = allocate(16);
    void* parameters[] = {&to, &value};
    CHECK_CU(CU(cuLaunchCooperativeKernel)(function("store"), 6, 1, 1, 1024, 1, 1, 0, nullptr, parameters),
             CUDA_SUCCESS);
    CHECK_CU(CU(cuLaunchCooperativeKernel)(function("store"), 7, 1, 1, 1024, 1, 1, 0, nullptr, parameters),
             CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(an_illegal_address_stays_with_the_context) {
    const auto pointer = allocate(4096);
    REQUIRE_CU(launch("store", 1, 1, 0, CUdeviceptr{0}, 1));
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    int value = 0;
    CHECK_CU(CU(cuMemcpyDtoH)(&value, pointer, sizeof value), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr another = 0;
    CHECK_CU(CU(cuMemAlloc)(&another, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    // Another context does not care.
    {
        const Kernels fresh;
        const auto there = allocate(16);
        REQUIRE_CU(fresh.launch("store", 1, 1, 0, there, 3));
        BOOST_CHECK_EQUAL(read(there), 3);
    }
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

BOOST_AUTO_TEST_CASE(freed_memory_is_illegal) {
    const auto pointer = allocate(4096);
    REQUIRE_CU(launch("store", 1, 1, 0, pointer, 1));
    REQUIRE_CU(CU(cuMemFree)(pointer));
    REQUIRE_CU(launch("store", 1, 1, 0, pointer, 1));
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

BOOST_AUTO_TEST_CASE(the_hosts_own_memory_is_illegal) {
    int mine = 0;
    REQUIRE_CU(launch("store", 1, 1, 0, reinterpret_cast<CUdeviceptr>(&mine), 1));
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
    BOOST_CHECK_EQUAL(mine, 0);
}

BOOST_AUTO_TEST_CASE(misaligned_addresses_and_traps) {
    const auto pointer = allocate(4096);
    REQUIRE_CU(launch("store", 1, 1, 0, pointer + 2, 1));
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_ERROR_MISALIGNED_ADDRESS);
    const Kernels fresh;
    REQUIRE_CU(fresh.launch("stop", 1, 1, 0));
    const auto result = CU(cuCtxSynchronize)();
    BOOST_CHECK(result == CUDA_ERROR_ILLEGAL_INSTRUCTION || result == CUDA_ERROR_LAUNCH_FAILED);
}

BOOST_AUTO_TEST_CASE(page_locked_and_registered_memory_is_reachable) {
    void* pinned = nullptr;
    REQUIRE_CU(CU(cuMemHostAlloc)(&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    std::vector<int> mine(4096);
    REQUIRE_CU(
        CU(cuMemHostRegister)(mine.data(), mine.size() * sizeof mine[0], CU_MEMHOSTREGISTER_DEVICEMAP));
    REQUIRE_CU(launch("store", 1, 1, 0, reinterpret_cast<CUdeviceptr>(pinned), 21));
    REQUIRE_CU(launch("store", 1, 1, 0, reinterpret_cast<CUdeviceptr>(&mine[1000]), 22));
    REQUIRE_CU(CU(cuCtxSynchronize)());
    BOOST_CHECK_EQUAL(*static_cast<int*>(pinned), 21);
    BOOST_CHECK_EQUAL(mine[1000], 22);
    REQUIRE_CU(CU(cuMemHostUnregister)(mine.data()));
    REQUIRE_CU(CU(cuMemFreeHost)(pinned));
}

BOOST_AUTO_TEST_CASE(a_launch_returns_before_the_kernel_ends) {
    void* flag = nullptr;
    REQUIRE_CU(CU(cuMemHostAlloc)(&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    REQUIRE_CU(launch("forever", 1, 1, 0, reinterpret_cast<CUdeviceptr>(flag)));
    CHECK_CU(CU(cuStreamQuery)(nullptr), CUDA_ERROR_NOT_READY);
    __atomic_store_n(static_cast<int*>(flag), 1, __ATOMIC_SEQ_CST);
    CHECK_CU(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    REQUIRE_CU(CU(cuMemFreeHost)(flag));
}

BOOST_AUTO_TEST_CASE(kernels_of_libraries_are_launched_as_functions) {
    CUlibrary library = nullptr;
    REQUIRE_CU(CU(cuLibraryLoadData)(&library, kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel kernel = nullptr;
    REQUIRE_CU(CU(cuLibraryGetKernel)(&kernel, library, "store"));
    CUdeviceptr to = allocate(16);
    int value = 9;
    void* parameters[] = {&to, &value};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    REQUIRE_CU(CU(cuLaunchKernelEx)(&config, reinterpret_cast<CUfunction>(kernel), parameters, nullptr));
    BOOST_CHECK_EQUAL(read(to), 9);
    REQUIRE_CU(CU(cuLibraryUnload)(library));
}

BOOST_AUTO_TEST_CASE(two_devices) {
    const auto here = allocate(4096);
    REQUIRE_CU(CU(cuMemsetD32)(here, 40, 1024));
    CUcontext other = nullptr;
    REQUIRE_CU(CU(cuDevicePrimaryCtxRetain)(&other, 1));
    REQUIRE_CU(CU(cuCtxPushCurrent)(other));
    int can = 0;
    REQUIRE_CU(CU(cuDeviceCanAccessPeer)(&can, 1, 0));
    BOOST_CHECK_EQUAL(can, 1);
    CHECK_CU(CU(cuCtxEnablePeerAccess)(handle, 0), CUDA_SUCCESS);
    CHECK_CU(CU(cuCtxEnablePeerAccess)(handle, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE_CU(CU(cuMemGetInfo)(&free, &total));
    BOOST_CHECK_EQUAL(free, total); // the other device's memory is its own
    const auto there = allocate(4096);
    REQUIRE_CU(CU(cuMemcpyPeer)(there, other, here, handle, 4096));
    CUmodule there_module = nullptr;
    CUfunction add = nullptr;
    REQUIRE_CU(CU(cuModuleLoadData)(&there_module, kernels));
    REQUIRE_CU(CU(cuModuleGetFunction)(&add, there_module, "add"));
    int value = 2;
    unsigned count = 1024;
    CUdeviceptr to = there;
    void* parameters[] = {&to, &value, &count};
    REQUIRE_CU(CU(cuLaunchKernel)(add, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
    BOOST_CHECK_EQUAL(read(there + 4092), 42);
    // A function is launched in its own context.
    CHECK_CU(CU(cuLaunchKernel)(function("add"), 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr),
             CUDA_ERROR_INVALID_HANDLE);
    REQUIRE_CU(CU(cuDevicePrimaryCtxRelease)(1));
    REQUIRE_CU(CU(cuCtxPopCurrent)(nullptr));
    BOOST_CHECK_EQUAL(read(here), 40);
}

BOOST_AUTO_TEST_CASE(threads_launch_at_the_same_time) {
    const auto pointer = allocate(4096);
    REQUIRE_CU(CU(cuMemsetD32)(pointer, 0, 1024));
    CUfunction add = function("add");
    Failures check;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            check(CU(cuCtxSetCurrent)(handle));
            CUstream stream = nullptr;
            check(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
            int value = 1;
            unsigned count = 256;
            CUdeviceptr to = pointer + t * 1024;
            void* parameters[] = {&to, &value, &count};
            for (int i = 0; i < 20; ++i)
                check(CU(cuLaunchKernel)(add, 1, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr));
            check(CU(cuStreamSynchronize)(stream));
            check(CU(cuStreamDestroy)(stream));
        });
    for (auto& thread : threads)
        thread.join();
    BOOST_CHECK_EQUAL(check.count(), 0);
    std::vector<int> back(1024);
    REQUIRE_CU(CU(cuMemcpyDtoH)(back.data(), pointer, 4096));
    for (const int value : back)
        BOOST_CHECK_EQUAL(value, 20);
}

BOOST_AUTO_TEST_SUITE_END()
