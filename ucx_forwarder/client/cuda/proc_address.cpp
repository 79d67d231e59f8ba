// SPDX-License-Identifier: BSD-3-Clause
// cuGetProcAddress and its kin. Written without cuda.h, which turns these names into macros.
#include "ucx_forwarder/client/cuda/proc_table.h"

#include <cstdint>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int success = 0, invalid_value = 1, entry_not_found = 500, not_supported = 801; // CUresult
constexpr std::uint64_t per_thread_stream = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
constexpr int found = 0, not_found = 1, version_not_sufficient = 2; // CUdriverProcAddressQueryResult

int get_proc_address(const char* symbol, void** pfn, int version, std::uint64_t flags, int* status) {
    if (!symbol || !*symbol || !pfn || version > VGPU_CUDA_API_VERSION || flags > per_thread_stream)
        return invalid_value;
    auto query = vgpu::client::find_proc(symbol, version, flags == per_thread_stream);
    *pfn = query.function;
    if (status)
        *status = query.function ? found : query.known ? version_not_sufficient : not_found;
    return success;
}

} // namespace

// The first form had no way but the result to say that there is no such function.
EXPORTED int cuGetProcAddress(const char* symbol, void** pfn, int version, std::uint64_t flags) {
    int result = get_proc_address(symbol, pfn, version, flags, nullptr);
    return result == success && !*pfn ? entry_not_found : result;
}

EXPORTED int cuGetProcAddress_v2(const char* symbol, void** pfn, int version, std::uint64_t flags,
                                 int* status) {
    return get_proc_address(symbol, pfn, version, flags, status);
}

// What a program compiled for per-thread default streams means by cuGetProcAddress: without a flag, those
// forms.
EXPORTED int cuGetProcAddress_v2_ptsz(const char* symbol, void** pfn, int version, std::uint64_t flags,
                                      int* status) {
    return get_proc_address(symbol, pfn, version, flags ? flags : per_thread_stream, status);
}

// The tables behind it are private to NVIDIA's driver and its own libraries; there is none here under any
// key.
EXPORTED int cuGetExportTable(const void**, const void*) {
    return not_supported;
}
