// SPDX-License-Identifier: BSD-3-Clause
// Every name of cuda.h is there, and cuGetProcAddress gives the right variant.
#include "tests/softgpu/driver.h"

#include <cstring>

using namespace softgpu_test;

namespace {

constexpr const char* exports[] = {
#define CUDA_EXPORT(symbol) #symbol,
#include "build-aux/cuda_api.inc"
};

struct Proc {
    const char* name;
    int version;
    const char* symbol;
    const char* per_thread;
};
constexpr Proc procs[] = {
#define CUDA_PROC(name, version, symbol, per_thread) {name, version, #symbol, #per_thread},
#include "build-aux/cuda_api.inc"
};

void* proc(const char* name, int version, cuuint64_t flags, CUdriverProcAddressQueryResult& status) {
    void* function = nullptr;
    CHECK_CU(CU(cuGetProcAddress)(name, &function, version, flags, &status), CUDA_SUCCESS);
    return function;
}

} // namespace

BOOST_AUTO_TEST_SUITE(names)

BOOST_AUTO_TEST_CASE(every_name_is_exported) {
    BOOST_CHECK_GT(std::size(exports), 600U);
    for (const auto* name : exports)
        BOOST_CHECK_NO_THROW(BOOST_CHECK(symbol(name) != nullptr));
}

BOOST_AUTO_TEST_CASE(what_is_not_done_says_so) {
    CUgraph graph = nullptr;
    CHECK_CU(CU(cuGraphCreate)(&graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    const void* table = &table;
    const CUuuid id{};
    CHECK_CU(CU(cuGetExportTable)(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
    BOOST_CHECK(table == nullptr);
}

BOOST_AUTO_TEST_CASE(each_version_has_its_variant) {
    CUdriverProcAddressQueryResult status{};
    for (const auto& wanted : procs) {
        BOOST_TEST_CONTEXT(wanted.name << " " << wanted.version) {
            BOOST_CHECK(proc(wanted.name, wanted.version, 0, status) == symbol(wanted.symbol));
            BOOST_CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SUCCESS);
            BOOST_CHECK(proc(wanted.name, wanted.version, 2, status) == symbol(wanted.per_thread));
        }
    }
}

BOOST_AUTO_TEST_CASE(known_variants) {
    CUdriverProcAddressQueryResult status{};
    BOOST_CHECK(proc("cuMemAlloc", 2000, 0, status) == symbol("cuMemAlloc"));
    BOOST_CHECK(proc("cuMemAlloc", 3020, 0, status) == symbol("cuMemAlloc_v2"));
    BOOST_CHECK(proc("cuMemAlloc", 12000, 0, status) == symbol("cuMemAlloc_v2"));
    BOOST_CHECK(proc("cuMemcpyHtoD", 12000, 0, status) == symbol("cuMemcpyHtoD_v2"));
    BOOST_CHECK(proc("cuMemcpyHtoD", 12000, 1, status) == symbol("cuMemcpyHtoD_v2"));
    BOOST_CHECK(proc("cuMemcpyHtoD", 12000, 2, status) == symbol("cuMemcpyHtoD_v2_ptds"));
    BOOST_CHECK(proc("cuLaunchKernel", 12000, 2, status) == symbol("cuLaunchKernel_ptsz"));
    BOOST_CHECK(proc("cuMemAlloc", 1000, 0, status) == nullptr);
    BOOST_CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    BOOST_CHECK(proc("cuNoSuchThing", 12000, 0, status) == nullptr);
    BOOST_CHECK_EQUAL(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    void* function = nullptr;
    CHECK_CU(CU(cuGetProcAddress)("cuInit", &function, 12000, 64, &status), CUDA_ERROR_INVALID_VALUE);
    CHECK_CU(CU(cuGetProcAddress)(nullptr, &function, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_CASE(error_names) {
    const char* text = nullptr;
    CHECK_CU(CU(cuGetErrorName)(CUDA_ERROR_ILLEGAL_ADDRESS, &text), CUDA_SUCCESS);
    BOOST_CHECK_EQUAL(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    CHECK_CU(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    BOOST_CHECK_EQUAL(text, "out of memory");
    CHECK_CU(CU(cuGetErrorName)(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
    BOOST_CHECK(text == nullptr);
    CHECK_CU(CU(cuGetErrorName)(CUDA_SUCCESS, nullptr), CUDA_ERROR_INVALID_VALUE);
}

BOOST_AUTO_TEST_SUITE_END()
