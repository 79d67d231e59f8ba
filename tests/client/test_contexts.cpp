// SPDX-License-Identifier: BSD-3-Clause
// Devices, contexts, and the errors that calls begin with.
#include "tests/client/driver.h"

#include <cstring>
#include <thread>

using driver::Primary;

BOOST_AUTO_TEST_SUITE(devices)

BOOST_FIXTURE_TEST_CASE(queries, Primary) {
    int count = 0;
    OK(CU(cuDeviceGetCount)(&count));
    BOOST_CHECK_GE(count, 1);
    char name[100];
    OK(CU(cuDeviceGetName)(name, sizeof name, device));
    BOOST_CHECK_GT(std::strlen(name), 0U);
    char shorter[4];
    OK(CU(cuDeviceGetName)(shorter, sizeof shorter, device));
    BOOST_CHECK_EQUAL(std::string(shorter), std::string(name).substr(0, 3));
    size_t total = 0, free = 0, all = 0;
    OK(CU(cuDeviceTotalMem)(&total, device));
    OK(CU(cuMemGetInfo)(&free, &all));
    BOOST_CHECK_EQUAL(total, all);
    BOOST_CHECK_LE(free, all);
    int warp = 0, threads = 0, unified = 0;
    OK(CU(cuDeviceGetAttribute)(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    OK(CU(cuDeviceGetAttribute)(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
    OK(CU(cuDeviceGetAttribute)(&unified, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device));
    BOOST_CHECK_EQUAL(warp, 32);
    BOOST_CHECK_EQUAL(threads, 1024);
    BOOST_CHECK_EQUAL(unified, 1);
    char bus[32];
    OK(CU(cuDeviceGetPCIBusId)(bus, sizeof bus, device));
    CUdevice found = -1;
    OK(CU(cuDeviceGetByPCIBusId)(&found, bus));
    BOOST_CHECK_EQUAL(found, device);
    int version = 0;
    OK(CU(cuDriverGetVersion)(&version));
    BOOST_CHECK_GE(version, 12000);
}

BOOST_FIXTURE_TEST_CASE(bad_arguments, Primary) {
    int value = 0;
    FAILS(CUDA_ERROR_INVALID_DEVICE, CU(cuDeviceGet)(&value, 1000));
    FAILS(CUDA_ERROR_INVALID_DEVICE, CU(cuDeviceGet)(&value, -1));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuDeviceGetCount)(nullptr));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuDeviceGetAttribute)(&value, CUdevice_attribute(5000), device));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuInit)(1));
}

BOOST_AUTO_TEST_CASE(error_texts) {
    const char* text = nullptr;
    OK(CU(cuGetErrorName)(CUDA_ERROR_OUT_OF_MEMORY, &text));
    BOOST_CHECK_EQUAL(text, "CUDA_ERROR_OUT_OF_MEMORY");
    OK(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text));
    BOOST_CHECK_EQUAL(text, "out of memory");
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuGetErrorName)(CUresult(12345), &text));
    BOOST_CHECK(text == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(contexts)

using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
static CUresult create(CUcontext* context, CUdevice device) {
    return reinterpret_cast<Create>(driver::symbol("cuCtxCreate_v2"))(context, 0, device);
}

BOOST_FIXTURE_TEST_CASE(stack, Primary) {
    CUcontext first = nullptr, second = nullptr, top = nullptr;
    OK(create(&first, device));
    OK(create(&second, device));
    OK(CU(cuCtxGetCurrent)(&top));
    BOOST_CHECK(top == second);
    OK(CU(cuCtxPopCurrent)(&top));
    BOOST_CHECK(top == second);
    OK(CU(cuCtxGetCurrent)(&top));
    BOOST_CHECK(top == first);
    OK(CU(cuCtxPushCurrent)(second));
    CUdevice of = -1;
    OK(CU(cuCtxGetDevice)(&of));
    BOOST_CHECK_EQUAL(of, device);
    OK(CU(cuCtxDestroy)(second));
    OK(CU(cuCtxGetCurrent)(&top));
    BOOST_CHECK(top == first);
    OK(CU(cuCtxDestroy)(first));
    OK(CU(cuCtxGetCurrent)(&top));
    BOOST_CHECK(top == context);
}

BOOST_FIXTURE_TEST_CASE(destroyed, Primary) {
    CUcontext other = nullptr;
    OK(create(&other, device));
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, 0));
    OK(CU(cuCtxDestroy)(other));
    BOOST_CHECK(CU(cuCtxSetCurrent)(other) != CUDA_SUCCESS);
    BOOST_CHECK(CU(cuCtxDestroy)(other) != CUDA_SUCCESS);
    BOOST_CHECK(CU(cuStreamSynchronize)(stream) != CUDA_SUCCESS);
}

BOOST_FIXTURE_TEST_CASE(threads_have_their_own, Primary) {
    std::thread([&] {
        CUcontext top = context;
        CUdeviceptr memory = 0;
        FAILS(CUDA_SUCCESS, CU(cuCtxGetCurrent)(&top));
        BOOST_CHECK(top == nullptr);
        FAILS(CUDA_ERROR_INVALID_CONTEXT, CU(cuMemAlloc)(&memory, 100));
        FAILS(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxSynchronize)());
        FAILS(CUDA_SUCCESS, CU(cuCtxSetCurrent)(context));
        FAILS(CUDA_SUCCESS, CU(cuCtxSynchronize)());
    }).join();
}

BOOST_AUTO_TEST_CASE(primary) {
    OK(CU(cuInit)(0));
    unsigned flags = 99;
    int active = 99;
    OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    BOOST_CHECK_EQUAL(active, 0);
    CUcontext one = nullptr, two = nullptr;
    OK(CU(cuDevicePrimaryCtxRetain)(&one, 0));
    OK(CU(cuDevicePrimaryCtxRetain)(&two, 0));
    BOOST_CHECK(one == two);
    OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    BOOST_CHECK_EQUAL(active, 1);
    OK(CU(cuDevicePrimaryCtxRelease)(0));
    OK(CU(cuCtxSetCurrent)(one));
    { driver::Buffer works(1000); }
    OK(CU(cuDevicePrimaryCtxRelease)(0));
    OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    BOOST_CHECK_EQUAL(active, 0);
    FAILS(CUDA_ERROR_INVALID_CONTEXT, CU(cuDevicePrimaryCtxRelease)(0));
    CU(cuCtxSetCurrent)(nullptr);
}

BOOST_AUTO_TEST_CASE(primary_reset) {
    Primary primary;
    CUdeviceptr memory = 0;
    OK(CU(cuMemAlloc)(&memory, 1000));
    OK(CU(cuDevicePrimaryCtxReset)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary.context, 0));
    OK(CU(cuCtxSetCurrent)(primary.context));
    BOOST_CHECK(CU(cuMemFree)(memory) != CUDA_SUCCESS);
    driver::Buffer works(1000);
}

BOOST_FIXTURE_TEST_CASE(limits, driver::OwnContext) {
    size_t value = 0;
    OK(CU(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
    BOOST_CHECK_GT(value, 0U);
    OK(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
    OK(CU(cuCtxGetLimit)(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
    BOOST_CHECK_GE(value, size_t(16 << 20));
    FAILS(CUDA_ERROR_UNSUPPORTED_LIMIT, CU(cuCtxGetLimit)(&value, CUlimit(77)));
    unsigned version = 0, flags = 0;
    OK(CU(cuCtxGetApiVersion)(context, &version));
    BOOST_CHECK_GE(version, 3020U);
    OK(CU(cuCtxGetFlags)(&flags));
    int least = 1, greatest = 1;
    OK(CU(cuCtxGetStreamPriorityRange)(&least, &greatest));
    BOOST_CHECK_LE(greatest, least);
}

BOOST_FIXTURE_TEST_CASE(no_such_context, Primary) {
    int nothing = 0;
    auto invented = reinterpret_cast<CUcontext>(&nothing);
    BOOST_CHECK(CU(cuCtxSetCurrent)(invented) != CUDA_SUCCESS);
    BOOST_CHECK(CU(cuCtxDestroy)(invented) != CUDA_SUCCESS);
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuCtxGetCurrent)(nullptr));
}

BOOST_AUTO_TEST_SUITE_END()
