// SPDX-License-Identifier: BSD-3-Clause
// Allocation, host memory, what a pointer is, memsets.
#include "tests/client/driver.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

using driver::Buffer;
using driver::download;
using driver::Primary;

static CUdeviceptr address(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

BOOST_FIXTURE_TEST_SUITE(memory, Primary)

BOOST_AUTO_TEST_CASE(allocate_and_free) {
    CUdeviceptr a = 0, b = 0;
    OK(CU(cuMemAlloc)(&a, 1000));
    OK(CU(cuMemAlloc)(&b, 1));
    BOOST_CHECK(a != b);
    BOOST_CHECK_EQUAL(a % 256, 0U);
    OK(CU(cuMemFree)(a));
    OK(CU(cuMemFree)(b));
    OK(CU(cuMemFree)(0));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFree)(a));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc)(&a, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc)(nullptr, 1));
}

BOOST_AUTO_TEST_CASE(out_of_memory) {
    size_t free = 0, total = 0;
    OK(CU(cuMemGetInfo)(&free, &total));
    CUdeviceptr a = 0;
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&a, total + 1));
    // The limit is met exactly by what is allocated, and freed memory is there again.
    const size_t half = total / 2 + (1 << 20);
    OK(CU(cuMemAlloc)(&a, half));
    CUdeviceptr b = 0;
    FAILS(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemAlloc)(&b, half));
    size_t less = 0;
    OK(CU(cuMemGetInfo)(&less, &total));
    BOOST_CHECK_LE(less, free - half);
    OK(CU(cuMemFree)(a));
    OK(CU(cuMemAlloc)(&b, half));
    OK(CU(cuMemFree)(b));
}

BOOST_AUTO_TEST_CASE(pitched) {
    CUdeviceptr p = 0;
    size_t pitch = 0;
    OK(CU(cuMemAllocPitch)(&p, &pitch, 100, 10, 4));
    BOOST_CHECK_GE(pitch, 100U);
    BOOST_CHECK_EQUAL(pitch % 4, 0U);
    OK(CU(cuMemsetD2D8)(p, pitch, 7, 100, 10));
    OK(CU(cuMemFree)(p));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAllocPitch)(&p, &pitch, 100, 10, 3));
}

BOOST_AUTO_TEST_CASE(address_range) {
    Buffer a(5000);
    CUdeviceptr base = 0;
    size_t size = 0;
    OK(CU(cuMemGetAddressRange)(&base, &size, a + 1234));
    BOOST_CHECK_EQUAL(base, CUdeviceptr(a));
    BOOST_CHECK_EQUAL(size, 5000U);
    OK(CU(cuMemGetAddressRange)(&base, nullptr, a));
    int local = 0;
    FAILS(CUDA_ERROR_NOT_FOUND, CU(cuMemGetAddressRange)(&base, &size, address(&local)));
}

BOOST_AUTO_TEST_CASE(pointer_attributes) {
    Buffer a(5000);
    unsigned type = 0;
    OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 10));
    BOOST_CHECK_EQUAL(type, unsigned(CU_MEMORYTYPE_DEVICE));
    CUcontext of = nullptr;
    OK(CU(cuPointerGetAttribute)(&of, CU_POINTER_ATTRIBUTE_CONTEXT, a));
    BOOST_CHECK(of == context);
    CUdeviceptr pointer = 0;
    OK(CU(cuPointerGetAttribute)(&pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + 10));
    BOOST_CHECK_EQUAL(pointer, a + 10);
    int ordinal = -1;
    OK(CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
    BOOST_CHECK_EQUAL(ordinal, device);
    CUdeviceptr start = 0;
    size_t size = 0;
    OK(CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 10));
    OK(CU(cuPointerGetAttribute)(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + 10));
    BOOST_CHECK_EQUAL(start, CUdeviceptr(a));
    BOOST_CHECK_EQUAL(size, 5000U);

    int local = 0;
    FAILS(CUDA_ERROR_INVALID_VALUE,
          CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(&local)));
    // The plural form never fails for a pointer that is nobody's.
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void* to[] = {&of, &type};
    OK(CU(cuPointerGetAttributes)(2, which, to, address(&local)));
    BOOST_CHECK(of == nullptr);
    BOOST_CHECK_EQUAL(type, 0U);
}

BOOST_AUTO_TEST_CASE(host_memory) {
    void* p = nullptr;
    OK(CU(cuMemHostAlloc)(&p, 10000, CU_MEMHOSTALLOC_PORTABLE));
    std::memset(p, 5, 10000);
    unsigned flags = 0, type = 0;
    OK(CU(cuMemHostGetFlags)(&flags, p));
    BOOST_CHECK(flags & CU_MEMHOSTALLOC_PORTABLE);
    OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(p) + 100));
    BOOST_CHECK_EQUAL(type, unsigned(CU_MEMORYTYPE_HOST));
    Buffer a(10000);
    OK(CU(cuMemcpyHtoDAsync)(a, p, 10000, nullptr));
    OK(CU(cuStreamSynchronize)(nullptr));
    BOOST_CHECK(download<unsigned char>(a, 10000) == std::vector<unsigned char>(10000, 5));
    OK(CU(cuMemFreeHost)(p));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemFreeHost)(p));
    OK(CU(cuMemAllocHost)(&p, 1));
    OK(CU(cuMemFreeHost)(p));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemAllocHost)(&p, 0));
}

BOOST_AUTO_TEST_CASE(registered_memory) {
    std::vector<char> own(10000);
    OK(CU(cuMemHostRegister)(own.data(), own.size(), 0));
    FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CU(cuMemHostRegister)(own.data(), own.size(), 0));
    unsigned type = 0;
    OK(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address(own.data())));
    BOOST_CHECK_EQUAL(type, unsigned(CU_MEMORYTYPE_HOST));
    OK(CU(cuMemHostUnregister)(own.data()));
    FAILS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, CU(cuMemHostUnregister)(own.data()));
}

BOOST_AUTO_TEST_CASE(memsets) {
    Buffer a(1024);
    OK(CU(cuMemsetD8)(a, 0xab, 1024));
    BOOST_CHECK(download<unsigned char>(a, 1024) == std::vector<unsigned char>(1024, 0xab));
    OK(CU(cuMemsetD16)(a, 0x1234, 512));
    BOOST_CHECK(download<std::uint16_t>(a, 512) == std::vector<std::uint16_t>(512, 0x1234));
    OK(CU(cuMemsetD32)(a + 4, 0xdeadbeef, 2));
    auto words = download<std::uint32_t>(a, 4);
    BOOST_CHECK((words == std::vector<std::uint32_t>{0x12341234, 0xdeadbeef, 0xdeadbeef, 0x12341234}));
    OK(CU(cuMemsetD2D32)(a, 64, 9, 2, 3));
    words = download<std::uint32_t>(a, 64);
    for (int i = 0; i < 64; ++i)
        BOOST_CHECK_EQUAL(words[std::size_t(i)], i % 16 < 2 && i / 16 < 3 ? 9U
                                                 : i < 3 && i > 1         ? 0xdeadbeef
                                                                          : 0x12341234);
    OK(CU(cuMemsetD8Async)(a, 1, 1024, nullptr));
    BOOST_CHECK(download<unsigned char>(a, 1024) == std::vector<unsigned char>(1024, 1));
    OK(CU(cuMemsetD8)(a, 1, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD8)(a, 1, 1025));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD32)(a + 2, 1, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD8)(0, 1, 1));
}

BOOST_AUTO_TEST_CASE(stream_ordered) {
    int pools = 0;
    OK(CU(cuDeviceGetAttribute)(&pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device));
    if (!pools) {
        BOOST_TEST_MESSAGE("this device has no memory pools");
        CUdeviceptr p = 0;
        FAILS(CUDA_ERROR_NOT_SUPPORTED, CU(cuMemAllocAsync)(&p, 1000, nullptr));
        return;
    }
    CUstream stream = nullptr;
    OK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = 0;
    OK(CU(cuMemAllocAsync)(&p, 1000, stream));
    OK(CU(cuMemsetD8Async)(p, 3, 1000, stream));
    std::vector<unsigned char> back(1000);
    OK(CU(cuMemcpyDtoHAsync)(back.data(), p, 1000, stream));
    OK(CU(cuMemFreeAsync)(p, stream));
    OK(CU(cuStreamSynchronize)(stream));
    BOOST_CHECK(back == std::vector<unsigned char>(1000, 3));
    OK(CU(cuStreamDestroy)(stream));
    CUmemoryPool pool = nullptr, current_pool = nullptr;
    OK(CU(cuDeviceGetDefaultMemPool)(&pool, device));
    OK(CU(cuDeviceGetMemPool)(&current_pool, device));
    BOOST_CHECK(pool == current_pool);
    std::uint64_t threshold = 1 << 20, read = 0;
    OK(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    OK(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &read));
    BOOST_CHECK_EQUAL(read, threshold);
    OK(CU(cuMemPoolTrimTo)(pool, 0));
}

BOOST_AUTO_TEST_SUITE_END()
