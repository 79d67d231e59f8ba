// SPDX-License-Identifier: BSD-3-Clause
// Allocation, copies, fills, what is known of pointers.
#include "tests/softgpu/driver.h"

#include <numeric>
#include <sys/mman.h>
#include <vector>

using namespace softgpu_test;

namespace {

std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE_CU(CU(cuMemGetInfo)(&free, &total));
    return free;
}

CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuMemAlloc)(&pointer, bytes));
    return pointer;
}

std::vector<int> counting(std::size_t count) {
    std::vector<int> values(count);
    std::iota(values.begin(), values.end(), 1);
    return values;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(memory, PrimaryContext)

BOOST_AUTO_TEST_CASE(allocation_is_accounted) {
    const auto before = free_bytes();
    const auto pointer = allocate(1 << 20);
    BOOST_CHECK_EQUAL(pointer % 512, 0U);
    BOOST_CHECK_EQUAL(free_bytes(), before - (1 << 20));
    REQUIRE_CU(CU(cuMemFree)(pointer));
    BOOST_CHECK_EQUAL(free_bytes(), before);
    CHECK_CU(CU(cuMemFree)(pointer), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemFree)(0), CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(too_much_is_out_of_memory) {
    CUdeviceptr pointer = 0;
    const auto before = free_bytes();
    CHECK_CU(CU(cuMemAlloc)(&pointer, before + 1), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_CU(CU(cuMemAlloc)(&pointer, ~std::size_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_CU(CU(cuMemAlloc)(&pointer, 0), CUDA_ERROR_INVALID_VALUE);
    // All of it can be had, and no more.
    REQUIRE_CU(CU(cuMemAlloc)(&pointer, before));
    CUdeviceptr another = 0;
    CHECK_CU(CU(cuMemAlloc)(&another, 1), CUDA_ERROR_OUT_OF_MEMORY);
    REQUIRE_CU(CU(cuMemFree)(pointer));
    BOOST_CHECK_EQUAL(free_bytes(), before);
}

BOOST_AUTO_TEST_CASE(many_allocations_do_not_fragment) {
    std::vector<CUdeviceptr> pointers;
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < 200; ++i)
            pointers.push_back(allocate(4096 * (1 + i % 7)));
        for (std::size_t i = 0; i < pointers.size(); i += 2)
            REQUIRE_CU(CU(cuMemFree)(pointers[i]));
        for (std::size_t i = 1; i < pointers.size(); i += 2)
            REQUIRE_CU(CU(cuMemFree)(pointers[i]));
        pointers.clear();
    }
    const auto pointer = allocate(free_bytes());
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(copies_there_and_back) {
    const auto values = counting(10000);
    const auto bytes = values.size() * sizeof values[0];
    const auto one = allocate(bytes);
    const auto two = allocate(bytes);
    std::vector<int> back(values.size());
    REQUIRE_CU(CU(cuMemcpyHtoD)(one, values.data(), bytes));
    REQUIRE_CU(CU(cuMemcpyDtoD)(two, one, bytes));
    REQUIRE_CU(CU(cuMemcpyDtoH)(back.data(), two, bytes));
    BOOST_CHECK(back == values);
    std::vector<int> again(values.size());
    REQUIRE_CU(CU(cuMemcpy)(reinterpret_cast<CUdeviceptr>(again.data()), one, bytes));
    BOOST_CHECK(again == values);
    REQUIRE_CU(CU(cuMemFree)(one));
    REQUIRE_CU(CU(cuMemFree)(two));
}

BOOST_AUTO_TEST_CASE(copies_outside_allocations_are_refused) {
    std::vector<int> host(8192);
    const auto pointer = allocate(4096);
    CHECK_CU(CU(cuMemcpyHtoD)(pointer, host.data(), 4097), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpyHtoD)(pointer + 4000, host.data(), 100), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpyDtoH)(host.data(), pointer - 4, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpyDtoH)(host.data(), 64, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpyDtoH)(nullptr, pointer, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpyDtoH)(reinterpret_cast<void*>(64), pointer, 8), CUDA_ERROR_INVALID_VALUE);
    void* gone = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    BOOST_REQUIRE(gone != MAP_FAILED);
    munmap(gone, 4096);
    CHECK_CU(CU(cuMemcpyHtoD)(pointer, gone, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemHostRegister)(gone, 8, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpyDtoH)(host.data(), pointer, 0), CUDA_SUCCESS);
    REQUIRE_CU(CU(cuMemFree)(pointer));
    CHECK_CU(CU(cuMemcpyDtoH)(host.data(), pointer, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpyDtoD)(pointer, pointer, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemcpy)(reinterpret_cast<CUdeviceptr>(host.data()), pointer, 8), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemsetD8)(pointer, 1, 8), CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(fills) {
    const auto pointer = allocate(4096);
    std::vector<unsigned char> bytes(4096);
    REQUIRE_CU(CU(cuMemsetD8)(pointer, 0xab, 4096));
    REQUIRE_CU(CU(cuMemsetD16)(pointer + 2, 0x1234, 3));
    REQUIRE_CU(CU(cuMemsetD32)(pointer + 16, 0xdeadbeef, 1));
    REQUIRE_CU(CU(cuMemcpyDtoH)(bytes.data(), pointer, bytes.size()));
    BOOST_CHECK_EQUAL(bytes[1], 0xab);
    BOOST_CHECK_EQUAL(bytes[2], 0x34);
    BOOST_CHECK_EQUAL(bytes[7], 0x12);
    BOOST_CHECK_EQUAL(bytes[8], 0xab);
    BOOST_CHECK_EQUAL(bytes[16], 0xef);
    BOOST_CHECK_EQUAL(bytes[20], 0xab);
    CHECK_CU(CU(cuMemsetD32)(pointer + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuMemsetD32)(pointer, 0, 1025), CUDA_ERROR_INVALID_VALUE);
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(pitched_rows) {
    CUdeviceptr pointer = 0;
    std::size_t pitch = 0;
    REQUIRE_CU(CU(cuMemAllocPitch)(&pointer, &pitch, 100, 10, 4));
    BOOST_CHECK_GE(pitch, 100U);
    BOOST_CHECK_EQUAL(pitch % 512, 0U);
    REQUIRE_CU(CU(cuMemsetD2D8)(pointer, pitch, 7, 100, 10));
    const auto values = counting(25 * 10);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = values.data();
    copy.srcPitch = 100;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = pointer;
    copy.dstPitch = pitch;
    copy.WidthInBytes = 100;
    copy.Height = 10;
    REQUIRE_CU(CU(cuMemcpy2D)(&copy));
    // Back: rows 2 to 5, the bytes from 40 on.
    std::vector<int> back(5 * 4);
    CUDA_MEMCPY2D part{};
    part.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    part.srcDevice = pointer;
    part.srcPitch = pitch;
    part.srcXInBytes = 40;
    part.srcY = 2;
    part.dstMemoryType = CU_MEMORYTYPE_HOST;
    part.dstHost = back.data();
    part.dstPitch = 20;
    part.WidthInBytes = 20;
    part.Height = 4;
    REQUIRE_CU(CU(cuMemcpy2D)(&part));
    for (std::size_t y = 0; y < 4; ++y)
        for (std::size_t x = 0; x < 5; ++x)
            BOOST_CHECK_EQUAL(back[y * 5 + x], values[(y + 2) * 25 + 10 + x]);
    part.Height = 9; // one row too many
    CHECK_CU(CU(cuMemcpy2D)(&part), CUDA_ERROR_INVALID_VALUE);
    part.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    CHECK_CU(CU(cuMemcpy2D)(&part), CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(boxes) {
    const auto values = counting(4 * 3 * 2);
    const auto pointer = allocate(4096);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = values.data();
    copy.srcPitch = 16;
    copy.srcHeight = 3;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = pointer;
    copy.dstPitch = 64;
    copy.dstHeight = 8;
    copy.dstXInBytes = 4;
    copy.dstY = 1;
    copy.dstZ = 1;
    copy.WidthInBytes = 16;
    copy.Height = 3;
    copy.Depth = 2;
    REQUIRE_CU(CU(cuMemcpy3D)(&copy));
    std::vector<int> all(1024);
    REQUIRE_CU(CU(cuMemcpyDtoH)(all.data(), pointer, 4096));
    for (std::size_t z = 0; z < 2; ++z)
        for (std::size_t y = 0; y < 3; ++y)
            for (std::size_t x = 0; x < 4; ++x)
                BOOST_CHECK_EQUAL(all[(z + 1) * 128 + (y + 1) * 16 + x + 1], values[z * 12 + y * 4 + x]);
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(page_locked_memory) {
    void* host = nullptr;
    REQUIRE_CU(CU(cuMemHostAlloc)(&host, 10000, CU_MEMHOSTALLOC_PORTABLE));
    CUdeviceptr device = 0;
    REQUIRE_CU(CU(cuMemHostGetDevicePointer)(&device, host, 0));
    unsigned flags = 0;
    REQUIRE_CU(CU(cuMemHostGetFlags)(&flags, host));
    BOOST_CHECK((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
    unsigned type = 0;
    REQUIRE_CU(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    BOOST_CHECK_EQUAL(type, CU_MEMORYTYPE_HOST);
    REQUIRE_CU(CU(cuMemFreeHost)(host));
    CHECK_CU(CU(cuMemFreeHost)(host), CUDA_ERROR_INVALID_VALUE);

    std::vector<char> mine(20000);
    REQUIRE_CU(CU(cuMemHostRegister)(mine.data(), mine.size(), 0));
    CHECK_CU(CU(cuMemHostRegister)(mine.data() + 5000, 1000, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    REQUIRE_CU(CU(cuMemHostUnregister)(mine.data()));
    CHECK_CU(CU(cuMemHostUnregister)(mine.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

BOOST_AUTO_TEST_CASE(what_a_pointer_is) {
    const auto pointer = allocate(1000);
    CUdeviceptr base = 0;
    std::size_t size = 0;
    REQUIRE_CU(CU(cuMemGetAddressRange)(&base, &size, pointer + 500));
    BOOST_CHECK_EQUAL(base, pointer);
    BOOST_CHECK_EQUAL(size, 1000U);
    unsigned type = 0;
    int ordinal = -1;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* data[] = {&type, &ordinal};
    REQUIRE_CU(CU(cuPointerGetAttributes)(2, attributes, data, pointer + 1));
    BOOST_CHECK_EQUAL(type, CU_MEMORYTYPE_DEVICE);
    BOOST_CHECK_EQUAL(ordinal, 0);
    // A pointer of the program's own.
    REQUIRE_CU(CU(cuPointerGetAttributes)(2, attributes, data, reinterpret_cast<CUdeviceptr>(&size)));
    BOOST_CHECK_EQUAL(type, 0U);
    BOOST_CHECK_EQUAL(ordinal, CU_DEVICE_INVALID);
    CHECK_CU(CU(cuPointerGetAttribute)(&type, attributes[0], reinterpret_cast<CUdeviceptr>(&size)),
             CUDA_ERROR_INVALID_VALUE);
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(managed_memory_is_the_hosts_too) {
    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuMemAllocManaged)(&pointer, 4096, CU_MEM_ATTACH_GLOBAL));
    *reinterpret_cast<int*>(pointer) = 5;
    int value = 0;
    REQUIRE_CU(CU(cuMemcpyDtoH)(&value, pointer, sizeof value));
    BOOST_CHECK_EQUAL(value, 5);
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(stream_ordered_allocation) {
    const auto before = free_bytes();
    CUstream stream = nullptr;
    REQUIRE_CU(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuMemAllocAsync)(&pointer, 4096, stream));
    REQUIRE_CU(CU(cuMemsetD8Async)(pointer, 9, 4096, stream));
    unsigned char value = 0;
    REQUIRE_CU(CU(cuMemcpyDtoHAsync)(&value, pointer + 17, 1, stream));
    CUmemoryPool pool = nullptr;
    REQUIRE_CU(CU(cuDeviceGetDefaultMemPool)(&pool, 0));
    cuuint64_t used = 0;
    REQUIRE_CU(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    BOOST_CHECK_EQUAL(used, 4096U);
    REQUIRE_CU(CU(cuMemFreeAsync)(pointer, stream));
    REQUIRE_CU(CU(cuStreamSynchronize)(stream));
    BOOST_CHECK_EQUAL(value, 9);
    BOOST_CHECK_EQUAL(free_bytes(), before);
    REQUIRE_CU(CU(cuMemPoolGetAttribute)(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    BOOST_CHECK_EQUAL(used, 0U);
    REQUIRE_CU(CU(cuStreamDestroy)(stream));
}

BOOST_AUTO_TEST_CASE(virtual_memory_management) {
    const auto before = free_bytes();
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    std::size_t granularity = 0;
    REQUIRE_CU(
        CU(cuMemGetAllocationGranularity)(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr range = 0;
    REQUIRE_CU(CU(cuMemAddressReserve)(&range, 4 * granularity, 0, 0, 0));
    CUmemGenericAllocationHandle physical = 0;
    REQUIRE_CU(CU(cuMemCreate)(&physical, granularity, &properties, 0));
    BOOST_CHECK_EQUAL(free_bytes(), before - granularity);
    // The same memory at two addresses.
    REQUIRE_CU(CU(cuMemMap)(range, granularity, 0, physical, 0));
    REQUIRE_CU(CU(cuMemMap)(range + granularity, granularity, 0, physical, 0));
    CHECK_CU(CU(cuMemMap)(range, granularity, 0, physical, 0), CUDA_ERROR_INVALID_VALUE);
    int value = 77;
    CHECK_CU(CU(cuMemcpyHtoD)(range, &value, sizeof value), CUDA_ERROR_INVALID_VALUE); // no access yet
    CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    REQUIRE_CU(CU(cuMemSetAccess)(range, 2 * granularity, &access, 1));
    REQUIRE_CU(CU(cuMemcpyHtoD)(range + 8, &value, sizeof value));
    int back = 0;
    REQUIRE_CU(CU(cuMemcpyDtoH)(&back, range + granularity + 8, sizeof back));
    BOOST_CHECK_EQUAL(back, 77);
    REQUIRE_CU(CU(cuMemRelease)(physical));
    CHECK_CU(CU(cuMemAddressFree)(range, 4 * granularity), CUDA_ERROR_INVALID_VALUE); // still mapped
    REQUIRE_CU(CU(cuMemUnmap)(range, 2 * granularity));
    BOOST_CHECK_EQUAL(free_bytes(), before);
    REQUIRE_CU(CU(cuMemAddressFree)(range, 4 * granularity));
    CHECK_CU(CU(cuMemcpyDtoH)(&back, range, sizeof back), CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
