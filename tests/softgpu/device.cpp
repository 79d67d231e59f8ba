// SPDX-License-Identifier: BSD-3-Clause
// Devices as configured (main.cpp), and contexts.
#include "tests/softgpu/driver.h"

#include <array>
#include <cstring>
#include <thread>

using namespace softgpu_test;

namespace {

int attribute(CUdevice_attribute which) {
    int value = -1;
    REQUIRE_CU(CU(cuDeviceGetAttribute)(&value, which, 0));
    return value;
}

CUcontext current() {
    CUcontext context = nullptr;
    REQUIRE_CU(CU(cuCtxGetCurrent)(&context));
    return context;
}

} // namespace

BOOST_AUTO_TEST_SUITE(devices)

BOOST_AUTO_TEST_CASE(as_configured) {
    int count = 0;
    REQUIRE_CU(CU(cuDeviceGetCount)(&count));
    BOOST_CHECK_EQUAL(count, 2);
    CUdevice device = -1;
    REQUIRE_CU(CU(cuDeviceGet)(&device, 1));
    BOOST_CHECK_EQUAL(device, 1);
    CHECK_CU(CU(cuDeviceGet)(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    std::array<char, 64> name{};
    REQUIRE_CU(CU(cuDeviceGetName)(name.data(), name.size(), 0));
    BOOST_CHECK_EQUAL(name.data(), "Test GPU");
    REQUIRE_CU(CU(cuDeviceGetName)(name.data(), 5, 0));
    BOOST_CHECK_EQUAL(name.data(), "Test");
    std::size_t bytes = 0;
    REQUIRE_CU(CU(cuDeviceTotalMem)(&bytes, 0));
    BOOST_CHECK_EQUAL(bytes, std::size_t{64} << 20);
    BOOST_CHECK_EQUAL(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 3);
    BOOST_CHECK_EQUAL(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 8);
    BOOST_CHECK_EQUAL(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 0);
    BOOST_CHECK_EQUAL(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    int value = 0;
    CHECK_CU(CU(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(9999), 0),
             CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(every_attribute_has_a_value) {
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
        int value = 0;
        CHECK_CU(CU(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(i), 0), CUDA_SUCCESS);
    }
}

BOOST_AUTO_TEST_CASE(uuids_and_bus_ids_name_devices) {
    CUuuid first{};
    CUuuid again{};
    CUuuid second{};
    REQUIRE_CU(CU(cuDeviceGetUuid)(&first, 0));
    REQUIRE_CU(CU(cuDeviceGetUuid)(&again, 0));
    REQUIRE_CU(CU(cuDeviceGetUuid)(&second, 1));
    BOOST_CHECK(std::memcmp(&first, &again, sizeof first) == 0);
    BOOST_CHECK(std::memcmp(&first, &second, sizeof first) != 0);
    std::array<char, 32> id{};
    REQUIRE_CU(CU(cuDeviceGetPCIBusId)(id.data(), id.size(), 1));
    CUdevice device = -1;
    REQUIRE_CU(CU(cuDeviceGetByPCIBusId)(&device, id.data()));
    BOOST_CHECK_EQUAL(device, 1);
    CHECK_CU(CU(cuDeviceGetByPCIBusId)(&device, "0000:ff:00.0"), CUDA_ERROR_INVALID_DEVICE);
}

BOOST_AUTO_TEST_CASE(primary_context) {
    unsigned flags = 1;
    int active = 1;
    REQUIRE_CU(CU(cuDevicePrimaryCtxGetState)(1, &flags, &active));
    BOOST_CHECK_EQUAL(active, 0);
    CHECK_CU(CU(cuDevicePrimaryCtxRelease)(1), CUDA_ERROR_INVALID_CONTEXT);
    CUcontext one = nullptr;
    CUcontext two = nullptr;
    REQUIRE_CU(CU(cuDevicePrimaryCtxRetain)(&one, 1));
    REQUIRE_CU(CU(cuDevicePrimaryCtxRetain)(&two, 1));
    BOOST_CHECK(one == two);
    REQUIRE_CU(CU(cuDevicePrimaryCtxGetState)(1, &flags, &active));
    BOOST_CHECK_EQUAL(active, 1);
    REQUIRE_CU(CU(cuCtxSetCurrent)(one));
    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuMemAlloc)(&pointer, 4096));
    REQUIRE_CU(CU(cuDevicePrimaryCtxRelease)(1));
    REQUIRE_CU(CU(cuDevicePrimaryCtxRelease)(1));
    // The last one who let go took the memory along.
    REQUIRE_CU(CU(cuDevicePrimaryCtxRetain)(&one, 1));
    CHECK_CU(CU(cuMemFree)(pointer), CUDA_ERROR_INVALID_VALUE);
    REQUIRE_CU(CU(cuCtxSetCurrent)(nullptr));
    REQUIRE_CU(CU(cuDevicePrimaryCtxRelease)(1));
}

BOOST_AUTO_TEST_CASE(stack_of_contexts) {
    std::size_t free = 0;
    std::size_t total = 0;
    CHECK_CU(CU(cuMemGetInfo)(&free, &total), CUDA_ERROR_INVALID_CONTEXT);
    OwnContext outer;
    BOOST_CHECK(current() == outer.handle);
    {
        const OwnContext inner;
        BOOST_CHECK(current() == inner.handle);
        CUcontext popped = nullptr;
        REQUIRE_CU(CU(cuCtxPopCurrent)(&popped));
        BOOST_CHECK(popped == inner.handle);
        BOOST_CHECK(current() == outer.handle);
        REQUIRE_CU(CU(cuCtxPushCurrent)(popped));
        std::thread([&] {
            BOOST_CHECK(current() == nullptr);
            REQUIRE_CU(CU(cuCtxSetCurrent)(inner.handle));
            BOOST_CHECK(current() == inner.handle);
        }).join();
    }
    BOOST_CHECK(current() == outer.handle);
    CHECK_CU(CU(cuCtxSetCurrent)(reinterpret_cast<CUcontext>(&outer)), CUDA_ERROR_INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(a_destroyed_context_is_found_out) {
    CUcontext handle = nullptr;
    std::thread([&] {
        OwnContext context;
        handle = context.handle;
    }).join();
    CHECK_CU(CU(cuCtxSetCurrent)(handle), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_CU(CU(cuCtxDestroy)(handle), CUDA_ERROR_INVALID_CONTEXT);
}

BOOST_AUTO_TEST_CASE(limits) {
    const OwnContext context;
    std::size_t value = 0;
    REQUIRE_CU(CU(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
    REQUIRE_CU(CU(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
    BOOST_CHECK_EQUAL(value, 4096U);
    CHECK_CU(CU(cuCtxGetLimit)(&value, static_cast<CUlimit>(99)), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

BOOST_AUTO_TEST_SUITE_END()
