// SPDX-License-Identifier: BSD-3-Clause
// Modules, libraries, functions, launches, and what happens when a kernel fails.
#include "tests/client/driver.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <unistd.h>

using driver::Buffer;
using driver::download;
using driver::Kernels;
using driver::OwnContext;
using driver::Primary;
using driver::upload;

BOOST_FIXTURE_TEST_SUITE(modules, Primary)

BOOST_AUTO_TEST_CASE(names) {
    Kernels kernels;
    CUfunction function = nullptr, again = nullptr;
    OK(CU(cuModuleGetFunction)(&function, kernels.module, "add"));
    OK(CU(cuModuleGetFunction)(&again, kernels.module, "add"));
    BOOST_CHECK(function == again);
    FAILS(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetFunction)(&function, kernels.module, "no_such_kernel"));
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuModuleGetFunction)(&function, kernels.module, nullptr));
    unsigned count = 0;
    OK(CU(cuModuleGetFunctionCount)(&count, kernels.module));
    BOOST_CHECK_EQUAL(count, 7U);
    std::vector<CUfunction> all(count);
    OK(CU(cuModuleEnumerateFunctions)(all.data(), count, kernels.module));
    int found = 0;
    for (CUfunction f : all) {
        const char* name = nullptr;
        OK(CU(cuFuncGetName)(&name, f));
        found += std::strcmp(name, "add") == 0;
    }
    BOOST_CHECK_EQUAL(found, 1);
}

BOOST_AUTO_TEST_CASE(globals) {
    Kernels kernels;
    CUdeviceptr table = 0, counter = 0;
    size_t size = 0;
    OK(CU(cuModuleGetGlobal)(&table, &size, kernels.module, "table"));
    BOOST_CHECK_EQUAL(size, 16U);
    BOOST_CHECK((download<unsigned>(table, 4) == std::vector<unsigned>{1, 2, 3, 4}));
    OK(CU(cuMemsetD32)(table, 9, 4));
    BOOST_CHECK((download<unsigned>(table, 4) == std::vector<unsigned>{9, 9, 9, 9}));
    OK(CU(cuModuleGetGlobal)(&counter, nullptr, kernels.module, "counter"));
    OK(CU(cuLaunchKernel)(kernels["count"], 3, 1, 1, 10, 1, 1, 0, nullptr, nullptr, nullptr));
    BOOST_CHECK_EQUAL(download<std::uint64_t>(counter, 1)[0], 30U);
    FAILS(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetGlobal)(&table, &size, kernels.module, "nothing"));
}

BOOST_AUTO_TEST_CASE(bad_images) {
    CUmodule module = nullptr;
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuModuleLoadData)(&module, nullptr));
    BOOST_CHECK(CU(cuModuleLoadData)(&module, "this is no image") != CUDA_SUCCESS);
    FAILS(CUDA_ERROR_INVALID_PTX,
          CU(cuModuleLoadData)(&module, ".version 7.0\n.target sm_75\n.nonsense here;\n"));
    FAILS(CUDA_ERROR_FILE_NOT_FOUND, CU(cuModuleLoad)(&module, "/nonexistent/module.ptx"));
}

BOOST_AUTO_TEST_CASE(error_log) {
    char log[1000] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    CUmodule module = nullptr;
    FAILS(CUDA_ERROR_INVALID_PTX,
          CU(cuModuleLoadDataEx)(&module, ".version 7.0\n.target sm_75\n.nonsense here;\n", 2, options,
                                 values));
    BOOST_CHECK_GT(std::strlen(log), 0U);
}

BOOST_AUTO_TEST_CASE(from_file) {
    const std::string path = "driver_api_module." + std::to_string(getpid()) + ".ptx";
    std::ofstream(path) << driver::kernels;
    CUmodule module = nullptr;
    OK(CU(cuModuleLoad)(&module, path.c_str()));
    unlink(path.c_str());
    CUfunction function = nullptr;
    OK(CU(cuModuleGetFunction)(&function, module, "add"));
    OK(CU(cuModuleUnload)(module));
    BOOST_CHECK(CU(cuModuleUnload)(module) != CUDA_SUCCESS);
}

BOOST_AUTO_TEST_CASE(libraries) {
    CUlibrary library = nullptr;
    OK(CU(cuLibraryLoadData)(&library, driver::kernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel kernel = nullptr;
    OK(CU(cuLibraryGetKernel)(&kernel, library, "scale"));
    FAILS(CUDA_ERROR_NOT_FOUND, CU(cuLibraryGetKernel)(&kernel, library, "no_such_kernel"));
    OK(CU(cuLibraryGetKernel)(&kernel, library, "scale"));
    unsigned count = 0;
    OK(CU(cuLibraryGetKernelCount)(&count, library));
    BOOST_CHECK_EQUAL(count, 7U);
    int threads = 0;
    OK(CU(cuKernelGetAttribute)(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, device));
    BOOST_CHECK_GE(threads, 32);
    CUfunction function = nullptr;
    OK(CU(cuKernelGetFunction)(&function, kernel));
    Buffer a(400);
    OK(CU(cuMemsetD32)(a, 2, 100));
    CUdeviceptr pointer = a;
    unsigned n = 100, factor = 7;
    void* parameters[] = {&pointer, &n, &factor};
    OK(CU(cuLaunchKernel)(function, 1, 1, 1, 128, 1, 1, 0, nullptr, parameters, nullptr));
    // A kernel may stand where a function is asked for.
    OK(CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 128, 1, 1, 0, nullptr, parameters,
                          nullptr));
    BOOST_CHECK(download<unsigned>(a, 100) == std::vector<unsigned>(100, 98));
    CUdeviceptr table = 0;
    size_t size = 0;
    OK(CU(cuLibraryGetGlobal)(&table, &size, library, "table"));
    BOOST_CHECK_EQUAL(size, 16U);
    OK(CU(cuLibraryUnload)(library));
    BOOST_CHECK(CU(cuLibraryGetKernel)(&kernel, library, "scale") != CUDA_SUCCESS);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(launches, Primary)

BOOST_AUTO_TEST_CASE(vector_add) {
    Kernels kernels;
    const unsigned n = 100'003;
    std::vector<float> a(n), b(n), expected(n);
    for (unsigned i = 0; i < n; ++i) {
        a[i] = float(i) * 0.5F;
        b[i] = float(n - i);
        expected[i] = a[i] + b[i];
    }
    Buffer out(n * 4), da(n * 4), db(n * 4);
    upload(da, a);
    upload(db, b);
    CUdeviceptr p0 = out, p1 = da, p2 = db;
    unsigned count = n;
    void* parameters[] = {&p0, &p1, &p2, &count};
    OK(CU(cuLaunchKernel)(kernels["add"], (n + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
    BOOST_CHECK(download<float>(out, n) == expected);
}

struct Mixed {
    std::uint32_t byte, word;
    std::uint64_t wide;
    float real;
};

static void check_mixed(CUdeviceptr out) {
    auto found = download<Mixed>(out, 1)[0];
    BOOST_CHECK_EQUAL(found.byte, 0xabU);
    BOOST_CHECK_EQUAL(found.word, 0x1234U);
    BOOST_CHECK_EQUAL(found.wide, 0x123456789abcdef0U);
    BOOST_CHECK_EQUAL(found.real, 2.5F);
}

BOOST_AUTO_TEST_CASE(parameters_of_all_sizes) {
    Kernels kernels;
    Buffer out(sizeof(Mixed));
    CUdeviceptr pointer = out;
    std::uint8_t byte = 0xab;
    std::uint16_t word = 0x1234;
    std::uint64_t wide = 0x123456789abcdef0;
    float real = 2.5;
    void* parameters[] = {&pointer, &byte, &word, &wide, &real};
    OK(CU(cuLaunchKernel)(kernels["mixed"], 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    check_mixed(out);
    // The same as a buffer that the program packs itself.
    OK(CU(cuMemsetD8)(out, 0, sizeof(Mixed)));
    struct {
        CUdeviceptr pointer;
        std::uint8_t byte;
        std::uint16_t word;
        std::uint64_t wide;
        float real;
    } packed{pointer, byte, word, wide, real};
    size_t size = offsetof(decltype(packed), real) + sizeof real;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    OK(CU(cuLaunchKernel)(kernels["mixed"], 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    check_mixed(out);
    FAILS(CUDA_ERROR_INVALID_VALUE,
          CU(cuLaunchKernel)(kernels["mixed"], 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra));
    size_t offset = 0, bytes = 0;
    OK(CU(cuFuncGetParamInfo)(kernels["mixed"], 2, &offset, &bytes));
    BOOST_CHECK_EQUAL(offset, 10U);
    BOOST_CHECK_EQUAL(bytes, 2U);
    FAILS(CUDA_ERROR_INVALID_VALUE, CU(cuFuncGetParamInfo)(kernels["mixed"], 5, &offset, &bytes));
}

BOOST_AUTO_TEST_CASE(extended) {
    Kernels kernels;
    Buffer a(400);
    OK(CU(cuMemsetD32)(a, 2, 100));
    CUdeviceptr pointer = a;
    unsigned n = 100, factor = 4;
    void* parameters[] = {&pointer, &n, &factor};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    OK(CU(cuLaunchKernelEx)(&config, kernels["scale"], parameters, nullptr));
    BOOST_CHECK(download<unsigned>(a, 100) == std::vector<unsigned>(100, 8));
}

BOOST_AUTO_TEST_CASE(bad_shapes) {
    Kernels kernels;
    CUfunction count = kernels["count"];
    auto launch = [&](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared = 0) {
        return CU(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, nullptr, nullptr, nullptr);
    };
    OK(launch(count, 1, 1, 1, 1, 1, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch(count, 0, 1, 1, 1, 1, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch(count, 1, 1, 1, 1, 0, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch(count, 1, 1, 1, 1025, 1, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch(count, 1, 1, 1, 64, 64, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch(count, 1, 1, 1, 1, 1, 65));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch(count, 1, 65536, 1, 1, 1, 1));
    FAILS(CUDA_ERROR_INVALID_VALUE, launch(count, 1, 1, 1, 1, 1, 1, 1 << 20));
    CUdeviceptr out = 0;
    void* parameters[] = {&out};
    OK(CU(cuLaunchKernel)(kernels["bounded"], 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr));
    BOOST_CHECK(CU(cuLaunchKernel)(kernels["bounded"], 1, 1, 1, 65, 1, 1, 0, nullptr, parameters, nullptr) !=
                CUDA_SUCCESS);
    OK(CU(cuCtxSynchronize)());
    FAILS(CUDA_ERROR_INVALID_VALUE,
          CU(cuLaunchKernel)(kernels["add"], 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

BOOST_AUTO_TEST_CASE(dynamic_shared_memory) {
    Kernels kernels;
    CUfunction shared = kernels["shared"];
    int optin = 0, usual = 0, now = 0;
    OK(CU(cuDeviceGetAttribute)(&optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
    OK(CU(cuDeviceGetAttribute)(&usual, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, device));
    Buffer out(4);
    CUdeviceptr pointer = out;
    unsigned bytes = unsigned(usual);
    void* parameters[] = {&pointer, &bytes};
    OK(CU(cuLaunchKernel)(shared, 1, 1, 1, 1, 1, 1, bytes, nullptr, parameters, nullptr));
    BOOST_CHECK_EQUAL(download<unsigned>(out, 1)[0], 77U);
    FAILS(CUDA_ERROR_INVALID_VALUE,
          CU(cuLaunchKernel)(shared, 1, 1, 1, 1, 1, 1, bytes + 4, nullptr, parameters, nullptr));
    if (optin <= usual)
        return;
    FAILS(CUDA_ERROR_INVALID_VALUE,
          CU(cuFuncSetAttribute)(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin + 1));
    OK(CU(cuFuncSetAttribute)(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, optin));
    OK(CU(cuFuncGetAttribute)(&now, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared));
    BOOST_CHECK_EQUAL(now, optin);
    bytes = unsigned(optin);
    OK(CU(cuMemsetD32)(out, 0, 1));
    OK(CU(cuLaunchKernel)(shared, 1, 1, 1, 1, 1, 1, bytes, nullptr, parameters, nullptr));
    BOOST_CHECK_EQUAL(download<unsigned>(out, 1)[0], 77U);
}

BOOST_AUTO_TEST_CASE(occupancy) {
    Kernels kernels;
    int blocks = 0, grid = 0, block = 0;
    OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, kernels["add"], 256, 0));
    BOOST_CHECK_GE(blocks, 1);
    OK(CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, kernels["add"], nullptr, 0, 0));
    BOOST_CHECK_GE(block, 32);
    BOOST_CHECK_GE(grid, 1);
    FAILS(CUDA_ERROR_INVALID_VALUE,
          CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, kernels["add"], 0, 0));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(faults)

BOOST_FIXTURE_TEST_CASE(illegal_address, OwnContext) {
    {
        Kernels kernels;
        CUdeviceptr nowhere = 0x10;
        void* parameters[] = {&nowhere};
        OK(CU(cuLaunchKernel)(kernels["bad"], 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
    }
    // From now on this context gives that error, and no other one.
    CUdeviceptr memory = 0;
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuMemAlloc)(&memory, 1000));
    FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
}

BOOST_AUTO_TEST_CASE(other_contexts_live_on) {
    {
        OwnContext broken;
        Kernels kernels;
        CUdeviceptr nowhere = 0x10;
        void* parameters[] = {&nowhere};
        OK(CU(cuLaunchKernel)(kernels["bad"], 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
        FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
    }
    OwnContext fresh;
    Buffer works(1000);
    OK(CU(cuMemsetD8)(works, 1, 1000));
    OK(CU(cuCtxSynchronize)());
}

BOOST_AUTO_TEST_SUITE_END()
