// SPDX-License-Identifier: BSD-3-Clause
// Images of all kinds, modules, libraries, what is known of functions.
#include "tests/softgpu/driver.h"
#include "tests/softgpu/kernels.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <lz4.h>
#include <string>
#include <thread>
#include <vector>
#include <zstd.h>

using namespace softgpu_test;

namespace {

enum class Packing { raw, zstd, lz4 };

// Builds a fatbin as the format is described: a header of 16 bytes, entries of a header of 64 bytes and their
// data.
class Fatbin {
public:
    void add(std::uint16_t kind, std::uint32_t capability, const std::string& data, Packing packing) {
        std::string stored = data;
        std::uint64_t flags = 0x1;
        if (packing == Packing::zstd) {
            stored.resize(ZSTD_compressBound(data.size()));
            stored.resize(ZSTD_compress(stored.data(), stored.size(), data.data(), data.size(), 3));
            flags |= 0x8000;
        } else if (packing == Packing::lz4) {
            stored.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(data.size()))));
            stored.resize(static_cast<std::size_t>(LZ4_compress_default(
                data.data(), stored.data(), static_cast<int>(data.size()), static_cast<int>(stored.size()))));
            flags |= 0x2000;
        }
        const auto compressed = packing == Packing::raw ? 0 : stored.size();
        stored.resize((stored.size() + 7) / 8 * 8);
        put<std::uint16_t>(kind);
        put<std::uint16_t>(0x0101);
        put<std::uint32_t>(64);
        put<std::uint64_t>(stored.size());
        put<std::uint32_t>(static_cast<std::uint32_t>(compressed));
        put<std::uint32_t>(0);
        put<std::uint16_t>(4);
        put<std::uint16_t>(6);
        put<std::uint32_t>(capability);
        put<std::uint32_t>(0);
        put<std::uint32_t>(0);
        put<std::uint64_t>(flags);
        put<std::uint64_t>(0);
        put<std::uint64_t>(packing == Packing::raw ? 0 : data.size());
        entries_ += stored;
    }

    [[nodiscard]] const void* container() {
        image_.clear();
        put<std::uint32_t>(0xba55ed50, image_);
        put<std::uint16_t>(1, image_);
        put<std::uint16_t>(16, image_);
        put<std::uint64_t>(entries_.size(), image_);
        image_ += entries_;
        return image_.data();
    }

    [[nodiscard]] const void* wrapper() {
        wrapper_ = {0x466243b1, 1, container(), nullptr};
        return &wrapper_;
    }

private:
    template <class Number>
    void put(Number value, std::string& to) {
        to.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    template <class Number>
    void put(Number value) {
        put(value, entries_);
    }

    struct Wrapper {
        std::uint32_t magic = 0;
        std::uint32_t version = 0;
        const void* container = nullptr;
        const void* more = nullptr;
    };
    std::string entries_;
    std::string image_;
    Wrapper wrapper_;
};

constexpr std::uint16_t ptx = 1;
constexpr std::uint16_t elf = 2;

std::string named(const std::string& name) {
    return ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry " + name + "()\n{\n ret;\n}\n";
}

void check_loads(const void* image, const char* name) {
    CUmodule module = nullptr;
    REQUIRE_CU(CU(cuModuleLoadData)(&module, image));
    CUfunction function = nullptr;
    CHECK_CU(CU(cuModuleGetFunction)(&function, module, name), CUDA_SUCCESS);
    REQUIRE_CU(CU(cuModuleUnload)(module));
}

int load_result(const void* image) {
    CUmodule module = nullptr;
    const auto result = CU(cuModuleLoadData)(&module, image);
    if (result == CUDA_SUCCESS)
        (void)CU(cuModuleUnload)(module);
    return result;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(modules, PrimaryContext)

BOOST_AUTO_TEST_CASE(fatbins_of_each_packing) {
    for (const auto packing : {Packing::raw, Packing::zstd, Packing::lz4}) {
        Fatbin fatbin;
        fatbin.add(elf, 75, std::string(100, 'x'), Packing::raw);
        fatbin.add(ptx, 75, kernels, packing);
        check_loads(fatbin.container(), "add");
        check_loads(fatbin.wrapper(), "add");
    }
}

BOOST_AUTO_TEST_CASE(the_newest_ptx_that_fits_is_taken) {
    Fatbin fatbin; // the device is an sm_80
    fatbin.add(ptx, 60, named("for60"), Packing::raw);
    fatbin.add(ptx, 75, named("for75"), Packing::zstd);
    fatbin.add(ptx, 90, named("for90"), Packing::raw);
    check_loads(fatbin.wrapper(), "for75");
}

BOOST_AUTO_TEST_CASE(images_that_cannot_run) {
    Fatbin machine_code;
    machine_code.add(elf, 80, std::string(100, 'x'), Packing::raw);
    BOOST_CHECK_EQUAL(load_result(machine_code.wrapper()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    Fatbin newer;
    newer.add(ptx, 90, named("for90"), Packing::raw);
    BOOST_CHECK_EQUAL(load_result(newer.container()), CUDA_ERROR_NO_BINARY_FOR_GPU);
    BOOST_CHECK_EQUAL(load_result("\177ELF\2\1\1"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    BOOST_CHECK_EQUAL(load_result("not code"), CUDA_ERROR_INVALID_IMAGE);
    BOOST_CHECK_EQUAL(load_result(""), CUDA_ERROR_INVALID_IMAGE);
    BOOST_CHECK_EQUAL(load_result(nullptr), CUDA_ERROR_INVALID_VALUE);
    BOOST_CHECK_EQUAL(load_result(".version 8.0\n.target sm_90\n.address_size 64\n"), CUDA_ERROR_INVALID_PTX);
}

BOOST_AUTO_TEST_CASE(damaged_fatbins) {
    Fatbin fatbin;
    fatbin.add(ptx, 75, kernels, Packing::zstd);
    const auto* bytes = static_cast<const char*>(fatbin.container());
    std::uint64_t size = 0;
    std::memcpy(&size, bytes + 8, sizeof size);
    const std::string good(bytes, 16 + size);
    auto bad = good;
    bad[16 + 64 + 20] = static_cast<char>(~bad[16 + 64 + 20]); // in the compressed data
    BOOST_CHECK_NE(load_result(bad.data()), CUDA_SUCCESS);
    bad = good;
    bad[16 + 4] = 3; // an entry's header, too short
    BOOST_CHECK_EQUAL(load_result(bad.data()), CUDA_ERROR_INVALID_IMAGE);
    bad = good;
    bad[16 + 8 + 5] = 1; // an entry's size, beyond the container
    BOOST_CHECK_EQUAL(load_result(bad.data()), CUDA_ERROR_INVALID_IMAGE);
    bad = good;
    bad[16 + 56 + 7] = 1; // an uncompressed size of 2^56
    BOOST_CHECK_EQUAL(load_result(bad.data()), CUDA_ERROR_INVALID_IMAGE);
}

BOOST_AUTO_TEST_CASE(a_syntax_error_is_in_the_log) {
    std::array<char, 256> log{};
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    CUmodule module = nullptr;
    CHECK_CU(CU(cuModuleLoadDataEx)(&module,
                                    ".version 6.4\n.target sm_75\n.address_size 64\n.entry x( { ret; }", 2,
                                    options, values),
             CUDA_ERROR_INVALID_PTX);
    const std::string text = log.data();
    BOOST_TEST_MESSAGE(text);
    BOOST_CHECK(text.find("4") != std::string::npos); // the line
    BOOST_CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(values[1]), text.size());
}

BOOST_AUTO_TEST_CASE(functions_and_variables) {
    CUmodule module = nullptr;
    REQUIRE_CU(CU(cuModuleLoadData)(&module, kernels));
    CUfunction function = nullptr;
    CHECK_CU(CU(cuModuleGetFunction)(&function, module, "missing"), CUDA_ERROR_NOT_FOUND);
    REQUIRE_CU(CU(cuModuleGetFunction)(&function, module, "add"));
    const char* name = nullptr;
    REQUIRE_CU(CU(cuFuncGetName)(&name, function));
    BOOST_CHECK_EQUAL(name, "add");
    std::size_t offset = 0;
    std::size_t size = 0;
    REQUIRE_CU(CU(cuFuncGetParamInfo)(function, 2, &offset, &size));
    BOOST_CHECK_EQUAL(offset, 12U);
    BOOST_CHECK_EQUAL(size, 4U);
    CHECK_CU(CU(cuFuncGetParamInfo)(function, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    int value = 0;
    REQUIRE_CU(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    BOOST_CHECK_EQUAL(value, 1024);
    REQUIRE_CU(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, function));
    BOOST_CHECK_EQUAL(value, 80);
    REQUIRE_CU(CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
    CHECK_CU(CU(cuFuncSetAttribute)(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200000),
             CUDA_ERROR_INVALID_VALUE);
    int blocks = 0;
    REQUIRE_CU(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, function, 256, 0));
    BOOST_CHECK_EQUAL(blocks, 8); // 2048 threads
    int grid = 0;
    int block = 0;
    REQUIRE_CU(CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, function, nullptr, 0, 0));
    BOOST_CHECK_EQUAL(block, 1024);
    BOOST_CHECK_EQUAL(grid, 6); // two on each of three multiprocessors

    CUdeviceptr pointer = 0;
    REQUIRE_CU(CU(cuModuleGetGlobal)(&pointer, &size, module, "scale"));
    BOOST_CHECK_EQUAL(size, 4U);
    int stored = 0;
    REQUIRE_CU(CU(cuMemcpyDtoH)(&stored, pointer, sizeof stored));
    BOOST_CHECK_EQUAL(stored, 5);
    CHECK_CU(CU(cuModuleGetGlobal)(&pointer, &size, module, "missing"), CUDA_ERROR_NOT_FOUND);

    unsigned count = 0;
    REQUIRE_CU(CU(cuModuleGetFunctionCount)(&count, module));
    BOOST_CHECK_EQUAL(count, 6U);
    REQUIRE_CU(CU(cuModuleUnload)(module));
    CHECK_CU(CU(cuFuncGetName)(&name, function), CUDA_ERROR_INVALID_HANDLE);
    CHECK_CU(CU(cuModuleUnload)(module), CUDA_ERROR_INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(variables_take_memory_until_the_module_goes) {
    std::size_t before = 0;
    std::size_t during = 0;
    std::size_t after = 0;
    std::size_t total = 0;
    REQUIRE_CU(CU(cuMemGetInfo)(&before, &total));
    CUmodule module = nullptr;
    REQUIRE_CU(CU(cuModuleLoadData)(&module, kernels));
    REQUIRE_CU(CU(cuMemGetInfo)(&during, &total));
    BOOST_CHECK_LT(during, before);
    REQUIRE_CU(CU(cuModuleUnload)(module));
    REQUIRE_CU(CU(cuMemGetInfo)(&after, &total));
    BOOST_CHECK_EQUAL(after, before);
}

BOOST_AUTO_TEST_CASE(modules_from_files) {
    const auto path = directory() + "/kernels.ptx";
    std::ofstream(path) << kernels;
    CUmodule module = nullptr;
    REQUIRE_CU(CU(cuModuleLoad)(&module, path.c_str()));
    REQUIRE_CU(CU(cuModuleUnload)(module));
    CHECK_CU(CU(cuModuleLoad)(&module, (path + ".missing").c_str()), CUDA_ERROR_FILE_NOT_FOUND);
}

BOOST_AUTO_TEST_CASE(libraries) {
    CUlibrary library = nullptr;
    Fatbin fatbin;
    fatbin.add(ptx, 75, kernels, Packing::zstd);
    // Where no context is current either.
    std::thread([&] {
        REQUIRE_CU(
            CU(cuLibraryLoadData)(&library, fatbin.wrapper(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    }).join();
    unsigned count = 0;
    REQUIRE_CU(CU(cuLibraryGetKernelCount)(&count, library));
    BOOST_CHECK_EQUAL(count, 6U);
    std::vector<CUkernel> all(count);
    REQUIRE_CU(CU(cuLibraryEnumerateKernels)(all.data(), count, library));
    CUkernel kernel = nullptr;
    REQUIRE_CU(CU(cuLibraryGetKernel)(&kernel, library, "store"));
    BOOST_CHECK(std::find(all.begin(), all.end(), kernel) != all.end());
    const char* name = nullptr;
    REQUIRE_CU(CU(cuKernelGetName)(&name, kernel));
    BOOST_CHECK_EQUAL(name, "store");
    REQUIRE_CU(CU(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 70000, kernel, 0));
    int value = 0;
    REQUIRE_CU(CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
    BOOST_CHECK_EQUAL(value, 70000);
    REQUIRE_CU(CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 1));
    BOOST_CHECK_EQUAL(value, 48 * 1024);
    CUfunction function = nullptr;
    REQUIRE_CU(CU(cuKernelGetFunction)(&function, kernel));
    REQUIRE_CU(CU(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    BOOST_CHECK_EQUAL(value, 70000);
    CUdeviceptr pointer = 0;
    std::size_t size = 0;
    REQUIRE_CU(CU(cuLibraryGetGlobal)(&pointer, &size, library, "answer"));
    BOOST_CHECK_EQUAL(size, 4U);
    CHECK_CU(CU(cuLibraryGetKernel)(&kernel, library, "missing"), CUDA_ERROR_NOT_FOUND);
    REQUIRE_CU(CU(cuLibraryUnload)(library));
    CHECK_CU(CU(cuLibraryGetKernel)(&kernel, library, "store"), CUDA_ERROR_INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(the_linker_takes_one_ptx) {
    CUlinkState link = nullptr;
    REQUIRE_CU(CU(cuLinkCreate)(0, nullptr, nullptr, &link));
    std::string text = kernels;
    REQUIRE_CU(
        CU(cuLinkAddData)(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "a", 0, nullptr, nullptr));
    void* image = nullptr;
    std::size_t size = 0;
    REQUIRE_CU(CU(cuLinkComplete)(link, &image, &size));
    check_loads(image, "add");
    CHECK_CU(
        CU(cuLinkAddData)(link, CU_JIT_INPUT_PTX, text.data(), text.size() + 1, "b", 0, nullptr, nullptr),
        CUDA_ERROR_NOT_SUPPORTED);
    REQUIRE_CU(CU(cuLinkDestroy)(link));
}

BOOST_AUTO_TEST_SUITE_END()
