// SPDX-License-Identifier: BSD-3-Clause
// Copies of every kind, with results worked out here.
#include "tests/client/driver.h"

#include <cstdint>
#include <numeric>

using driver::Buffer;
using driver::download;
using driver::Primary;
using driver::upload;

static CUdeviceptr address(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

static std::vector<std::uint8_t> pattern(std::size_t size, unsigned seed = 1) {
    std::vector<std::uint8_t> data(size);
    for (std::size_t i = 0; i < size; ++i)
        data[i] = std::uint8_t((i * 2654435761U + seed) >> 13);
    return data;
}

BOOST_FIXTURE_TEST_SUITE(copies, Primary)

BOOST_AUTO_TEST_CASE(there_and_back) {
    // Small ones travel in a message's head, large ones in pieces.
    for (std::size_t size : {std::size_t(1), std::size_t(3), std::size_t(2000), std::size_t(5000),
                             std::size_t(100'000), std::size_t(20 << 20) + 77}) {
        auto data = pattern(size);
        Buffer a(size), b(size);
        upload(a, data);
        OK(CU(cuMemcpyDtoD)(b, a, size));
        BOOST_CHECK(download<std::uint8_t>(b, size) == data);
    }
}

BOOST_AUTO_TEST_CASE(pageable_source_may_change_at_once) {
    Buffer a(3 << 20);
    auto data = pattern(3 << 20);
    auto copy = data;
    OK(CU(cuMemcpyHtoDAsync)(a, copy.data(), copy.size(), nullptr));
    std::fill(copy.begin(), copy.end(), 0);
    BOOST_CHECK(download<std::uint8_t>(a, data.size()) == data);
}

BOOST_AUTO_TEST_CASE(in_the_middle) {
    Buffer a(1000);
    OK(CU(cuMemsetD8)(a, 0, 1000));
    auto data = pattern(100);
    OK(CU(cuMemcpyHtoD)(a + 500, data.data(), 100));
    auto all = download<std::uint8_t>(a, 1000);
    BOOST_CHECK(std::equal(data.begin(), data.end(), all.begin() + 500));
    BOOST_CHECK_EQUAL(std::accumulate(all.begin(), all.begin() + 500, 0), 0);
}

BOOST_AUTO_TEST_CASE(unified) {
    auto data = pattern(4000);
    std::vector<std::uint8_t> back(4000), local(4000);
    Buffer a(4000), b(4000);
    OK(CU(cuMemcpy)(a, address(data.data()), 4000));
    OK(CU(cuMemcpyAsync)(b, a, 4000, nullptr));
    OK(CU(cuMemcpy)(address(back.data()), b, 4000));
    BOOST_CHECK(back == data);
    OK(CU(cuMemcpy)(address(local.data()), address(data.data()), 4000));
    BOOST_CHECK(local == data);
}

BOOST_AUTO_TEST_CASE(bad_arguments) {
    Buffer a(1000);
    std::vector<char> host(2000);
    OK(CU(cuMemcpyHtoD)(a, nullptr, 0));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyHtoD)(a, host.data(), 1001));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyHtoD)(a, nullptr, 10));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH)(host.data(), a + 1, 1000));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH)(nullptr, a, 10));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoD)(a, 0, 10));
    CUdeviceptr freed = 0;
    OK(CU(cuMemAlloc)(&freed, 1000));
    OK(CU(cuMemFree)(freed));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH)(host.data(), freed, 10));
}

BOOST_AUTO_TEST_CASE(rectangles) {
    // 5 rows of 7 bytes at (3, 2) of a pitched host image, to (1, 1) on the device, and back from there.
    const std::size_t host_pitch = 20;
    auto host = pattern(host_pitch * 10);
    CUdeviceptr image = 0;
    std::size_t pitch = 0;
    OK(CU(cuMemAllocPitch)(&image, &pitch, 16, 8, 4));
    OK(CU(cuMemsetD8)(image, 0, pitch * 8));
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host.data();
    copy.srcPitch = host_pitch;
    copy.srcXInBytes = 3;
    copy.srcY = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = image;
    copy.dstPitch = pitch;
    copy.dstXInBytes = 1;
    copy.dstY = 1;
    copy.WidthInBytes = 7;
    copy.Height = 5;
    OK(CU(cuMemcpy2D)(&copy));
    auto flat = download<std::uint8_t>(image, pitch * 8);
    for (std::size_t y = 0; y < 8; ++y)
        for (std::size_t x = 0; x < 16; ++x) {
            bool inside = x >= 1 && x < 8 && y >= 1 && y < 6;
            BOOST_CHECK_EQUAL(flat[y * pitch + x], inside ? host[(y + 1) * host_pitch + x + 2] : 0);
        }
    std::vector<std::uint8_t> back(7 * 5);
    CUDA_MEMCPY2D down{};
    down.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    down.srcDevice = image;
    down.srcPitch = pitch;
    down.srcXInBytes = 1;
    down.srcY = 1;
    down.dstMemoryType = CU_MEMORYTYPE_HOST;
    down.dstHost = back.data();
    down.dstPitch = 7;
    down.WidthInBytes = 7;
    down.Height = 5;
    OK(CU(cuMemcpy2DAsync)(&down, nullptr));
    OK(CU(cuStreamSynchronize)(nullptr));
    for (std::size_t y = 0; y < 5; ++y)
        for (std::size_t x = 0; x < 7; ++x)
            BOOST_CHECK_EQUAL(back[y * 7 + x], host[(y + 2) * host_pitch + x + 3]);
    down.dstPitch = 6;
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpy2D)(&down));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpy2D)(nullptr));
    OK(CU(cuMemFree)(image));
}

BOOST_AUTO_TEST_CASE(boxes) {
    // A 4 x 3 x 2 box out of 8 x 5 x 3, device to device, and then to the host.
    auto data = pattern(8 * 5 * 3);
    Buffer from(8 * 5 * 3), to(4 * 3 * 2);
    upload(from, data);
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.srcPitch = 8;
    copy.srcHeight = 5;
    copy.srcXInBytes = 2;
    copy.srcY = 1;
    copy.srcZ = 1;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = to;
    copy.dstPitch = 4;
    copy.dstHeight = 3;
    copy.WidthInBytes = 4;
    copy.Height = 3;
    copy.Depth = 2;
    OK(CU(cuMemcpy3D)(&copy));
    std::vector<std::uint8_t> host(4 * 3 * 2);
    CUDA_MEMCPY3D down = copy;
    down.dstMemoryType = CU_MEMORYTYPE_HOST;
    down.dstDevice = 0;
    down.dstHost = host.data();
    OK(CU(cuMemcpy3D)(&down));
    auto device_box = download<std::uint8_t>(to, host.size());
    for (std::size_t z = 0; z < 2; ++z)
        for (std::size_t y = 0; y < 3; ++y)
            for (std::size_t x = 0; x < 4; ++x) {
                auto expected = data[(z + 1) * 40 + (y + 1) * 8 + x + 2];
                BOOST_CHECK_EQUAL(device_box[z * 12 + y * 4 + x], expected);
                BOOST_CHECK_EQUAL(host[z * 12 + y * 4 + x], expected);
            }
}

BOOST_AUTO_TEST_CASE(peer_of_itself) {
    auto data = pattern(3000);
    Buffer a(3000), b(3000);
    upload(a, data);
    OK(CU(cuMemcpyPeer)(b, context, a, context, 3000));
    BOOST_CHECK(download<std::uint8_t>(b, 3000) == data);
}

BOOST_AUTO_TEST_SUITE_END()
