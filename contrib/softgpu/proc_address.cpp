// SPDX-License-Identifier: BSD-3-Clause
// cuGetProcAddress.
#include "contrib/softgpu/cuda_api.h"
#include "contrib/softgpu/proc_table.h"

using namespace softgpu;

namespace {

CUresult get(const char* name, void** function, int version, cuuint64_t flags, bool per_thread,
             ProcQuery& query) {
    constexpr cuuint64_t known =
        CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    if (name == nullptr || function == nullptr || (flags & ~known) != 0 || version > CUDA_VERSION)
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0)
        per_thread = true;
    else if ((flags & CU_GET_PROC_ADDRESS_LEGACY_STREAM) != 0)
        per_thread = false;
    *function = find_proc(name, version, per_thread, query);
    return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#if CUDA_VERSION >= 12000
// For the second version of the call, a function that is not found is no error.
CUresult get_v2(const char* name, void** function, int version, cuuint64_t flags, bool per_thread,
                CUdriverProcAddressQueryResult* status) {
    auto query = ProcQuery::no_such_symbol;
    const auto result = get(name, function, version, flags, per_thread, query);
    if (result == CUDA_ERROR_INVALID_VALUE)
        return result;
    if (status != nullptr) {
        *status = query == ProcQuery::found             ? CU_GET_PROC_ADDRESS_SUCCESS
                  : query == ProcQuery::version_too_old ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return CUDA_SUCCESS;
}
#endif

} // namespace

SOFTGPU_API CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
    auto query = ProcQuery::no_such_symbol;
    return get(name, function, version, flags, false, query);
}
#if CUDA_VERSION >= 12000
SOFTGPU_API CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult* status) {
    return get_v2(name, function, version, flags, false, status);
}
// What programs that are built for per-thread default streams are sent to.
SOFTGPU_API CUresult cuGetProcAddress_v2_ptsz(const char* name, void** function, int version,
                                              cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
    return get_v2(name, function, version, flags, true, status);
}
#endif
