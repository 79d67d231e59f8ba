// SPDX-License-Identifier: BSD-3-Clause
// cudaLibrary...: images loaded by the program itself; and the way from here to the driver API.
#include <vector>

#include "ucx_forwarder/client/cudart/registry.h"
#include "ucx_forwarder/client/cudart/runtime.h"

using namespace vgpu::cudart;

// Options carry the same numbers in both APIs, cudaJitOption and cudaLibraryOption alike.
VGPU_EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code,
                                            cudaJitOption* jit_options, void** jit_values,
                                            unsigned int jit_count, cudaLibraryOption* options, void** values,
                                            unsigned int count) {
    if (!library || !code)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return d.cuLibraryLoadData(library, code, reinterpret_cast<CUjit_option*>(jit_options), jit_values,
                                   jit_count, reinterpret_cast<CUlibraryOption*>(options), values, count);
    });
}

VGPU_EXPORT cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file,
                                                cudaJitOption* jit_options, void** jit_values,
                                                unsigned int jit_count, cudaLibraryOption* options,
                                                void** values, unsigned int count) {
    if (!library || !file)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return d.cuLibraryLoadFromFile(library, file, reinterpret_cast<CUjit_option*>(jit_options),
                                       jit_values, jit_count, reinterpret_cast<CUlibraryOption*>(options),
                                       values, count);
    });
}

VGPU_EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    return in_context([&](const Driver& d) { return d.cuLibraryUnload(library); });
}

VGPU_EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
    if (!kernel || !name)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        const CUresult result = d.cuLibraryGetKernel(kernel, library, name);
        if (result == CUDA_SUCCESS)
            Registry::instance().allow_kernel(*kernel);
        return result;
    });
}

VGPU_EXPORT cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library,
                                             const char* name) {
    return in_context([&](const Driver& d) {
        return d.cuLibraryGetGlobal(reinterpret_cast<CUdeviceptr*>(pointer), bytes, library, name);
    });
}

VGPU_EXPORT cudaError_t cudaLibraryGetManaged(void** pointer, size_t* bytes, cudaLibrary_t library,
                                              const char* name) {
    return in_context([&](const Driver& d) {
        return d.cuLibraryGetManaged(reinterpret_cast<CUdeviceptr*>(pointer), bytes, library, name);
    });
}

VGPU_EXPORT cudaError_t cudaLibraryGetUnifiedFunction(void** pointer, cudaLibrary_t library,
                                                      const char* symbol) {
    return in_context(
        [&](const Driver& d) { return d.cuLibraryGetUnifiedFunction(pointer, library, symbol); });
}

VGPU_EXPORT cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t library) {
    if (!count)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuLibraryGetKernelCount(count, library); });
}

VGPU_EXPORT cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int count,
                                                    cudaLibrary_t library) {
    if (!kernels)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        const CUresult result = d.cuLibraryEnumerateKernels(kernels, count, library);
        unsigned held = 0;
        if (result == CUDA_SUCCESS && d.cuLibraryGetKernelCount(&held, library) == CUDA_SUCCESS)
            for (unsigned i = 0; i < count && i < held; ++i)
                Registry::instance().allow_kernel(kernels[i]);
        return result;
    });
}

#if CUDART_VERSION >= 12000
namespace {

/// Flags name the variants by their own; without one, the variant of this function decides.
cudaError_t entry_point(const char* symbol, void** function, unsigned version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* status, bool per_thread) {
    if (!symbol || !function)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        if (flags == cudaEnableDefault)
            flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                               : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
        CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
        *function = nullptr;
        const CUresult result =
            d.cuGetProcAddress(symbol, function, static_cast<int>(version), flags, &found);
        if (status)
            *status = static_cast<cudaDriverEntryPointQueryResult>(found);
        // With a place for the status, a name that is not there is no error.
        if (status && result == CUDA_ERROR_NOT_FOUND)
            return CUDA_SUCCESS;
        return result;
    });
}

} // namespace

VGPU_EXPORT_BOTH(_ptsz, cudaGetDriverEntryPoint,
                 (const char* symbol, void** function, unsigned long long flags,
                  cudaDriverEntryPointQueryResult* status),
                 { return entry_point(symbol, function, CUDART_VERSION, flags, status, per_thread); })

VGPU_EXPORT_BOTH(_ptsz, cudaGetDriverEntryPointByVersion,
                 (const char* symbol, void** function, unsigned int version, unsigned long long flags,
                  cudaDriverEntryPointQueryResult* status),
                 { return entry_point(symbol, function, version, flags, status, per_thread); })
#endif // else in older_runtime.cpp
