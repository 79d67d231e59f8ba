// SPDX-License-Identifier: BSD-3-Clause
// The runtime library on a driver that only notes what it is asked (fake_driver.h).
#define BOOST_TEST_MODULE cudart
#define BOOST_TEST_DYN_LINK
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>

#include "tests/cudart/fake_driver.h"

// What nvcc's code calls (crt/host_runtime.h declares it for nvcc only).
extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, CUstream_st*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
#if CUDART_VERSION >= 12000
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
#else
// The code of CUDA 11 has no handles of kernels: it launches by the host function.
using cudaKernel_t = const void*;
static cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
    *kernel = host;
    return cudaSuccess;
}
cudaError_t cudaLaunchKernel_ptsz(const void*, dim3, dim3, void**, size_t, cudaStream_t);
#define __cudaLaunchKernel cudaLaunchKernel
#define __cudaLaunchKernel_ptsz cudaLaunchKernel_ptsz
#endif
cudaError_t cudaMemcpy_ptds(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaStreamQuery_ptsz(cudaStream_t);
cudaError_t cudaMemsetAsync_ptsz(void*, int, size_t, cudaStream_t);
}

namespace {

const int image = 0; // stands for a fatbin's wrapper: the fake driver does not look into it
const char host_kernel = 0, host_absent = 0, host_other = 0;
char host_variable = 0;
void** registered = nullptr;
std::size_t calls_while_registering = 0;

/// As the constructors of a program do, before main().
struct RegisterEarly {
    RegisterEarly() {
        registered = __cudaRegisterFatBinary(const_cast<int*>(&image));
        __cudaRegisterFunction(registered, &host_kernel, nullptr, "kernel", -1, nullptr, nullptr, nullptr,
                               nullptr, nullptr);
        __cudaRegisterFunction(registered, &host_absent, nullptr, "absent", -1, nullptr, nullptr, nullptr,
                               nullptr, nullptr);
        __cudaRegisterVar(registered, &host_variable, nullptr, "variable", 0, 16, 0, 0);
        __cudaRegisterFatBinaryEnd(registered);
        calls_while_registering = fake_driver::calls().size();
    }
} register_early;

struct Fresh {
    Fresh() {
        (void)cudaDeviceSynchronize();
        (void)cudaGetLastError();
        fake_driver::clear();
    }
    ~Fresh() { (void)cudaGetLastError(); }
};

} // namespace

// The first case: nothing was called yet.
BOOST_AUTO_TEST_CASE(registration_and_local_answers_call_no_driver) {
    BOOST_TEST(calls_while_registering == 0U);
    int version = 0;
    BOOST_TEST(cudaRuntimeGetVersion(&version) == cudaSuccess);
    BOOST_TEST(version == CUDART_VERSION);
    BOOST_TEST(cudaGetLastError() == cudaSuccess);
    BOOST_TEST(cudaProfilerStart() == cudaSuccess);
    BOOST_TEST(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
    BOOST_TEST(fake_driver::count("cuInit") == 0);
}

BOOST_AUTO_TEST_CASE(count_of_devices_makes_no_context) {
    int count = 0;
    BOOST_TEST(cudaGetDeviceCount(&count) == cudaSuccess);
    BOOST_TEST(count == 2);
    BOOST_TEST(fake_driver::count("cuInit") == 1);
    BOOST_TEST(fake_driver::count("cuDevicePrimaryCtxRetain") == 0);
}

BOOST_FIXTURE_TEST_CASE(saxpy_makes_as_few_driver_calls_as_can_be, Fresh) {
    void *x = nullptr, *y = nullptr;
    char buffer[64] = {1};
    BOOST_TEST(cudaMalloc(&x, 64) == cudaSuccess);
    BOOST_TEST(cudaMalloc(&y, 64) == cudaSuccess);
    BOOST_TEST(cudaMemcpy(x, buffer, 64, cudaMemcpyHostToDevice) == cudaSuccess);
    int argument = 42;
    void* arguments[] = {&argument};
    cudaKernel_t kernel = nullptr;
    for (int i = 0; i < 2; ++i) {
        BOOST_TEST(__cudaPushCallConfiguration(dim3(2, 3, 4), dim3(5, 6), 7, nullptr) == 0U);
        BOOST_TEST(__cudaGetKernel(&kernel, &host_kernel) == cudaSuccess);
        dim3 grid, block;
        std::size_t shared = 0;
        cudaStream_t stream = nullptr;
        BOOST_TEST(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess);
        BOOST_TEST(__cudaLaunchKernel(kernel, grid, block, arguments, shared, stream) == cudaSuccess);
    }
    BOOST_TEST(cudaDeviceSynchronize() == cudaSuccess);
    BOOST_TEST(cudaMemcpy(buffer, x, 64, cudaMemcpyDeviceToHost) == cudaSuccess);
    BOOST_TEST(cudaFree(x) == cudaSuccess);
    BOOST_TEST(cudaFree(y) == cudaSuccess);
    const std::vector<std::string> expected = {"cuMemAlloc",        "cuMemAlloc",         "cuMemcpyHtoD",
                                               "cuLibraryLoadData", "cuLibraryGetKernel", "cuLaunchKernel",
                                               "cuLaunchKernel",    "cuCtxSynchronize",   "cuMemcpyDtoH",
                                               "cuMemFree",         "cuMemFree"};
    const std::vector<std::string> made = fake_driver::calls();
    BOOST_TEST(made == expected, boost::test_tools::per_element());
    BOOST_REQUIRE(fake_driver::launches().size() == 2U);
    const fake_driver::Launch& launch = fake_driver::launches()[0];
    BOOST_TEST((launch.grid[0] == 2 && launch.grid[1] == 3 && launch.grid[2] == 4));
    BOOST_TEST((launch.block[0] == 5 && launch.block[1] == 6 && launch.block[2] == 1));
    BOOST_TEST(launch.shared == 7U);
    BOOST_TEST(launch.first_argument == 42);
    BOOST_TEST(buffer[0] == 1);
}

BOOST_FIXTURE_TEST_CASE(configurations_nest, Fresh) {
    BOOST_TEST(__cudaPushCallConfiguration(dim3(1), dim3(1), 1, nullptr) == 0U);
    BOOST_TEST(__cudaPushCallConfiguration(dim3(2), dim3(2), 2, nullptr) == 0U);
    dim3 grid, block;
    std::size_t shared = 0;
    cudaStream_t stream = nullptr;
    BOOST_TEST(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess);
    BOOST_TEST(grid.x == 2U);
    BOOST_TEST(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaSuccess);
    BOOST_TEST(grid.x == 1U);
    BOOST_TEST(__cudaPopCallConfiguration(&grid, &block, &shared, &stream) == cudaErrorMissingConfiguration);
}

BOOST_FIXTURE_TEST_CASE(unknown_functions_are_told_apart, Fresh) {
    BOOST_TEST(cudaLaunchKernel(&host_other, dim3(1), dim3(1), nullptr, 0, nullptr) ==
               cudaErrorInvalidDeviceFunction);
    BOOST_TEST(cudaLaunchKernel(&host_absent, dim3(1), dim3(1), nullptr, 0, nullptr) ==
               cudaErrorInvalidDeviceFunction);
    BOOST_TEST(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
    fake_driver::fail_next("cuLibraryGetKernel", CUDA_ERROR_NO_BINARY_FOR_GPU);
#if CUDART_VERSION >= 12000
    cudaKernel_t kernel = nullptr;
    BOOST_TEST(__cudaGetKernel(&kernel, &host_absent) == cudaErrorNoKernelImageForDevice);
    // The launch that nvcc's code makes with the null handle says why.
    BOOST_TEST(__cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr) ==
               cudaErrorNoKernelImageForDevice);
#else
    BOOST_TEST(cudaLaunchKernel(&host_absent, dim3(1), dim3(1), nullptr, 0, nullptr) ==
               cudaErrorNoKernelImageForDevice);
#endif
}

BOOST_FIXTURE_TEST_CASE(bad_shapes_are_configuration_errors, Fresh) {
    fake_driver::fail_next("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
    BOOST_TEST(cudaLaunchKernel(&host_kernel, dim3(1), dim3(1001), nullptr, 0, nullptr) ==
               cudaErrorInvalidConfiguration);
    fake_driver::fail_next("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
    BOOST_TEST(cudaLaunchKernel(&host_kernel, dim3(1), dim3(64, 64), nullptr, 0, nullptr) ==
               cudaErrorInvalidConfiguration);
    fake_driver::fail_next("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
    BOOST_TEST(cudaLaunchKernel(&host_kernel, dim3(1), dim3(64), nullptr, 1 << 20, nullptr) ==
               cudaErrorInvalidValue);
}

BOOST_FIXTURE_TEST_CASE(the_last_error_belongs_to_the_thread, Fresh) {
    fake_driver::fail_next("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
    void* pointer = &pointer;
    BOOST_TEST(cudaMalloc(&pointer, 64) == cudaErrorMemoryAllocation);
    BOOST_TEST(pointer == nullptr);
    cudaError_t other = cudaErrorUnknown;
    std::thread([&] { other = cudaGetLastError(); }).join();
    BOOST_TEST(other == cudaSuccess);
    BOOST_TEST(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    BOOST_TEST(cudaGetLastError() == cudaErrorMemoryAllocation);
    BOOST_TEST(cudaGetLastError() == cudaSuccess);
    // A later success leaves the error in place.
    fake_driver::fail_next("cuMemFree", CUDA_ERROR_ILLEGAL_ADDRESS);
    BOOST_TEST(cudaFree(&pointer) == cudaErrorIllegalAddress);
    BOOST_TEST(cudaDeviceSynchronize() == cudaSuccess);
    BOOST_TEST(cudaGetLastError() == cudaErrorIllegalAddress);
    // A code that only the driver has.
    fake_driver::fail_next("cuCtxSynchronize", static_cast<CUresult>(202));
    BOOST_TEST(cudaDeviceSynchronize() == cudaErrorUnknown);
}

BOOST_FIXTURE_TEST_CASE(each_thread_has_its_device, Fresh) {
    int device = -1;
    BOOST_TEST(cudaSetDevice(1) == cudaSuccess);
    BOOST_TEST(cudaGetDevice(&device) == cudaSuccess);
    BOOST_TEST(device == 1);
    int other = -1;
    std::thread([&] {
        (void)cudaDeviceSynchronize();
        (void)cudaGetDevice(&other);
    }).join();
    BOOST_TEST(other == 0);
    BOOST_TEST(cudaSetDevice(2) == cudaErrorInvalidDevice);
    BOOST_TEST(cudaSetDevice(-1) == cudaErrorInvalidDevice);
    BOOST_TEST(cudaGetDevice(&device) == cudaSuccess);
    BOOST_TEST(device == 1);
    BOOST_TEST(cudaSetDevice(0) == cudaSuccess);
}

BOOST_FIXTURE_TEST_CASE(a_reset_reaches_other_threads, Fresh) {
    BOOST_TEST(cudaSetDevice(0) == cudaSuccess);
    BOOST_TEST(cudaDeviceSynchronize() == cudaSuccess);
    std::thread([] { BOOST_TEST(cudaDeviceReset() == cudaSuccess); }).join();
    fake_driver::clear();
    BOOST_TEST(cudaDeviceSynchronize() == cudaSuccess);
    BOOST_TEST(fake_driver::count("cuDevicePrimaryCtxRetain") == 1);
    BOOST_TEST(fake_driver::count("cuCtxSetCurrent") == 1);
    fake_driver::clear();
    BOOST_TEST(cudaDeviceSynchronize() == cudaSuccess);
    BOOST_TEST(fake_driver::calls().size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(copies_go_by_their_kind, Fresh) {
    char a[8] = {1}, b[8] = {};
    BOOST_TEST(cudaMemcpy(b, a, 8, cudaMemcpyHostToHost) == cudaSuccess);
    BOOST_TEST(b[0] == 1);
    BOOST_TEST(fake_driver::calls().empty());
    BOOST_TEST(cudaMemcpy(b, a, 8, cudaMemcpyDeviceToDevice) == cudaSuccess);
    BOOST_TEST(cudaMemcpy(b, a, 8, cudaMemcpyDefault) == cudaSuccess);
    BOOST_TEST(cudaMemcpyAsync(b, a, 8, cudaMemcpyHostToDevice, nullptr) == cudaSuccess);
    BOOST_TEST(cudaMemcpy_ptds(b, a, 8, cudaMemcpyDeviceToHost) == cudaSuccess);
    BOOST_TEST(cudaMemcpy(b, a, 0, cudaMemcpyDeviceToHost) == cudaSuccess);
    const std::vector<std::string> expected = {"cuMemcpyDtoD", "cuMemcpy", "cuMemcpyHtoDAsync",
                                               "cuMemcpyDtoHAsync", "cuStreamSynchronize"};
    const std::vector<std::string> made = fake_driver::calls();
    BOOST_TEST(made == expected, boost::test_tools::per_element());
    BOOST_TEST(cudaMemcpy(b, a, 8, static_cast<cudaMemcpyKind>(7)) == cudaErrorInvalidMemcpyDirection);
    BOOST_TEST(cudaMemcpy(b, nullptr, 8, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
}

BOOST_FIXTURE_TEST_CASE(variables_are_looked_up_once, Fresh) {
    int value = 0;
    for (int i = 0; i < 3; ++i)
        BOOST_TEST(cudaMemcpyFromSymbol(&value, &host_variable, 4, 8) == cudaSuccess);
    BOOST_TEST(value == 3);
    BOOST_TEST(fake_driver::count("cuLibraryGetGlobal") <= 1);
    BOOST_TEST(cudaMemcpyFromSymbol(&value, &host_variable, 4, 13) == cudaErrorInvalidValue);
    BOOST_TEST(cudaMemcpyFromSymbol(&value, &host_variable, 4, ~0UL) == cudaErrorInvalidValue);
    BOOST_TEST(cudaMemcpyFromSymbol(&value, &value, 4) == cudaErrorInvalidSymbol);
    BOOST_TEST(cudaMemcpyToSymbol(&host_variable, &value, 4, 0, cudaMemcpyDeviceToHost) ==
               cudaErrorInvalidMemcpyDirection);
    std::size_t size = 0;
    BOOST_TEST(cudaGetSymbolSize(&size, &host_variable) == cudaSuccess);
    BOOST_TEST(size == 16U);
}

BOOST_FIXTURE_TEST_CASE(an_unregistered_image_is_forgotten, Fresh) {
    static const int second_image = 0;
    static const char host = 0;
    void** const handle = __cudaRegisterFatBinary(const_cast<int*>(&second_image));
    __cudaRegisterFunction(handle, &host, nullptr, "second", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    BOOST_TEST(cudaLaunchKernel(&host, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess);
    __cudaUnregisterFatBinary(handle);
    BOOST_TEST(fake_driver::count("cuLibraryUnload") == 1);
    BOOST_TEST(cudaLaunchKernel(&host, dim3(1), dim3(1), nullptr, 0, nullptr) ==
               cudaErrorInvalidDeviceFunction);
}

BOOST_FIXTURE_TEST_CASE(the_default_stream_of_per_thread_programs, Fresh) {
    cudaKernel_t kernel = nullptr;
    BOOST_TEST(__cudaGetKernel(&kernel, &host_kernel) == cudaSuccess);
    BOOST_TEST(__cudaLaunchKernel_ptsz(kernel, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess);
    BOOST_TEST(__cudaLaunchKernel_ptsz(kernel, dim3(1), dim3(1), nullptr, 0, cudaStreamLegacy) ==
               cudaSuccess);
    BOOST_TEST(__cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaSuccess);
    BOOST_TEST(fake_driver::launches().at(0).stream == CU_STREAM_PER_THREAD);
    BOOST_TEST(fake_driver::launches().at(1).stream == CU_STREAM_LEGACY);
    BOOST_TEST(fake_driver::launches().at(2).stream == nullptr);
    BOOST_TEST(cudaStreamQuery_ptsz(nullptr) == cudaSuccess);
    char memory[4];
    BOOST_TEST(cudaMemsetAsync_ptsz(memory, 0, 4, nullptr) == cudaSuccess);
    BOOST_TEST(fake_driver::count("cuMemsetD8Async") == 1);
}

BOOST_FIXTURE_TEST_CASE(not_ready_is_an_answer_that_is_kept, Fresh) {
    fake_driver::fail_next("cuStreamQuery", CUDA_ERROR_NOT_READY);
    BOOST_TEST(cudaStreamQuery(nullptr) == cudaErrorNotReady);
    BOOST_TEST(cudaGetLastError() == cudaErrorNotReady);
}

BOOST_FIXTURE_TEST_CASE(what_the_driver_lacks_is_not_supported, Fresh) {
    void* pointer = nullptr;
    BOOST_TEST(cudaMallocManaged(&pointer, 64) == cudaErrorNotSupported);
    BOOST_TEST(cudaGetLastError() == cudaErrorNotSupported);
    // Exported, not there yet.
    BOOST_TEST(cudaGraphKernelNodeGetParams(nullptr, nullptr) == cudaErrorNotSupported);
    BOOST_TEST(cudaGetLastError() == cudaErrorNotSupported);
}

BOOST_FIXTURE_TEST_CASE(without_capture_no_stream_is_captured, Fresh) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  BOOST_TEST(cudaStreamIsCapturing(nullptr, &status) == cudaSuccess);
  BOOST_TEST(status == cudaStreamCaptureStatusNone);
  BOOST_TEST(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorNotSupported);
}

BOOST_FIXTURE_TEST_CASE(properties_are_read_once, Fresh) {
    cudaDeviceProp properties;
    BOOST_TEST(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
    BOOST_TEST(std::string(properties.name) == "Fake");
    BOOST_TEST(properties.totalGlobalMem == 1U << 20);
    BOOST_TEST(properties.maxThreadsPerBlock == 1024);
    BOOST_TEST(properties.sharedMemPerBlock == 1000U);
    fake_driver::clear();
    BOOST_TEST(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
    BOOST_TEST(fake_driver::count("cuDeviceGetAttribute") == 0);
    BOOST_TEST(cudaGetDeviceProperties(&properties, 2) == cudaErrorInvalidDevice);
}

BOOST_AUTO_TEST_CASE(errors_have_names_and_texts) {
    BOOST_TEST(std::string(cudaGetErrorName(cudaSuccess)) == "cudaSuccess");
    BOOST_TEST(std::string(cudaGetErrorString(cudaSuccess)) == "no error");
    BOOST_TEST(std::string(cudaGetErrorString(cudaErrorIllegalAddress)) ==
               "an illegal memory access was encountered");
    BOOST_TEST(std::string(cudaGetErrorName(cudaErrorUnknown)) == "cudaErrorUnknown");
    BOOST_TEST(std::string(cudaGetErrorName(static_cast<cudaError_t>(11111))) == "unrecognized error code");
}
