// SPDX-License-Identifier: BSD-3-Clause
// Every name of the toolkit's headers is there, and cuGetProcAddress finds the variant that a version means.
#include "tests/client/driver.h"

#include <dlfcn.h>

BOOST_AUTO_TEST_SUITE(names)

BOOST_AUTO_TEST_CASE(all_are_exported) {
    static const char* const all[] = {
#define CUDA_EXPORT(symbol) #symbol,
#include "build-aux/cuda_api.inc"
    };
    BOOST_CHECK_GT(std::size(all), 600U);
    for (const char* name : all)
        BOOST_CHECK_NO_THROW(driver::symbol(name));
}

using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

static CUresult get(const char* name, void** found, int version, cuuint64_t flags,
                    CUdriverProcAddressQueryResult* status = nullptr) {
    return reinterpret_cast<Get>(driver::symbol("cuGetProcAddress_v2"))(name, found, version, flags, status);
}

static void expect(const char* name, int version, cuuint64_t flags, const char* symbol) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    OK(get(name, &found, version, flags, &status));
    BOOST_CHECK_EQUAL(int(status), int(CU_GET_PROC_ADDRESS_SUCCESS));
    BOOST_CHECK_MESSAGE(found == driver::symbol(symbol), name << " " << version << " is not " << symbol);
}

BOOST_AUTO_TEST_CASE(variant_by_version) {
    expect("cuInit", 12000, CU_GET_PROC_ADDRESS_DEFAULT, "cuInit");
    expect("cuMemAlloc", 2000, CU_GET_PROC_ADDRESS_DEFAULT, "cuMemAlloc");
    expect("cuMemAlloc", 3020, CU_GET_PROC_ADDRESS_DEFAULT, "cuMemAlloc_v2");
    expect("cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_DEFAULT, "cuMemAlloc_v2");
    expect("cuCtxCreate", 3020, CU_GET_PROC_ADDRESS_DEFAULT, "cuCtxCreate_v2");
    expect("cuCtxCreate", 11080, CU_GET_PROC_ADDRESS_DEFAULT, "cuCtxCreate_v3");
    expect("cuGetProcAddress", 11030, CU_GET_PROC_ADDRESS_DEFAULT, "cuGetProcAddress");
    expect("cuGetProcAddress", 12000, CU_GET_PROC_ADDRESS_DEFAULT, "cuGetProcAddress_v2");
    expect("cuDevicePrimaryCtxRelease", 10000, CU_GET_PROC_ADDRESS_DEFAULT, "cuDevicePrimaryCtxRelease");
    expect("cuDevicePrimaryCtxRelease", 11000, CU_GET_PROC_ADDRESS_DEFAULT, "cuDevicePrimaryCtxRelease_v2");
}

BOOST_AUTO_TEST_CASE(per_thread_variants) {
    const auto per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    expect("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuLaunchKernel");
    expect("cuLaunchKernel", 12000, per_thread, "cuLaunchKernel_ptsz");
    expect("cuMemcpyHtoD", 12000, per_thread, "cuMemcpyHtoD_v2_ptds");
    expect("cuMemcpyHtoD", 12000, CU_GET_PROC_ADDRESS_DEFAULT, "cuMemcpyHtoD_v2");
    expect("cuMemAlloc", 12000, per_thread, "cuMemAlloc_v2"); // knows no streams
}

BOOST_AUTO_TEST_CASE(not_found) {
    void* found = &found;
    CUdriverProcAddressQueryResult status{};
    OK(get("cuNoSuchFunction", &found, 12000, 0, &status));
    BOOST_CHECK(found == nullptr);
    BOOST_CHECK_EQUAL(int(status), int(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    OK(get("cuLaunchKernelEx", &found, 11000, 0, &status));
    BOOST_CHECK(found == nullptr);
    BOOST_CHECK_EQUAL(int(status), int(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
    FAILS(CUDA_ERROR_INVALID_VALUE, get(nullptr, &found, 12000, 0, &status));
    FAILS(CUDA_ERROR_INVALID_VALUE, get("cuInit", nullptr, 12000, 0, &status));
    FAILS(CUDA_ERROR_INVALID_VALUE, get("cuInit", &found, 12000, 77, &status));
    FAILS(CUDA_ERROR_INVALID_VALUE, get("cuInit", &found, 99000, 0, &status));
    using Old = CUresult (*)(const char*, void**, int, cuuint64_t);
    FAILS(CUDA_ERROR_NOT_FOUND,
          reinterpret_cast<Old>(driver::symbol("cuGetProcAddress"))("cuNoSuchFunction", &found, 12000, 0));
}

BOOST_AUTO_TEST_SUITE_END()
