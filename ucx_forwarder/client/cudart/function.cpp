// SPDX-License-Identifier: BSD-3-Clause
// What a kernel is and needs: attributes, occupancy, names, and the driver's handles for it.
#include <cstring>

#include "ucx_forwarder/client/cudart/registry.h"
#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

/// Runs `call(driver, kernel, device)` for the kernel of a host function on the current device.
template <class Call>
cudaError_t with_kernel(const void* function, Call&& call) noexcept {
    return in_context([&](const Driver& d) -> cudaError_t {
        CUkernel kernel = nullptr;
        if (const cudaError_t error = Registry::instance().find_kernel(function, kernel);
            error != cudaSuccess)
            return error;
        int device = 0;
        if (const cudaError_t error = current_device(device); error != cudaSuccess)
            return error;
        return to_error(call(d, kernel, device));
    });
}

struct AttributeField {
    CUfunction_attribute attribute;
    std::size_t offset;
    bool wide;     // a size_t, else an int
    bool required; // later drivers added the others
};
#define FIELD(field, attribute, wide, required)                                                              \
    { CU_FUNC_ATTRIBUTE_##attribute, offsetof(cudaFuncAttributes, field), wide, required }
constexpr AttributeField kAttributes[] = {
    FIELD(sharedSizeBytes, SHARED_SIZE_BYTES, true, true),
    FIELD(constSizeBytes, CONST_SIZE_BYTES, true, true),
    FIELD(localSizeBytes, LOCAL_SIZE_BYTES, true, true),
    FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK, false, true),
    FIELD(numRegs, NUM_REGS, false, true),
    FIELD(ptxVersion, PTX_VERSION, false, true),
    FIELD(binaryVersion, BINARY_VERSION, false, true),
    FIELD(cacheModeCA, CACHE_MODE_CA, false, false),
    FIELD(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES, false, false),
    FIELD(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT, false, false),
#if CUDART_VERSION >= 12000
    FIELD(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET, false, false),
    FIELD(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH, false, false),
    FIELD(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT, false, false),
    FIELD(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH, false, false),
    FIELD(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE, false, false),
    FIELD(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, false, false),
#endif
};
#undef FIELD

} // namespace
} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
    if (!attributes)
        return record(cudaErrorInvalidValue);
    return with_kernel(function, [&](const Driver& d, CUkernel kernel, int device) {
        std::memset(attributes, 0, sizeof *attributes);
        for (const AttributeField& field : kAttributes) {
            int value = 0;
            const CUresult result = d.cuKernelGetAttribute(&value, field.attribute, kernel, device);
            if (result != CUDA_SUCCESS) {
                if (field.required)
                    return result;
                value = 0;
            }
            char* const to = reinterpret_cast<char*>(attributes) + field.offset;
            if (field.wide) {
                const auto wide = static_cast<std::size_t>(value);
                std::memcpy(to, &wide, sizeof wide);
            } else {
                std::memcpy(to, &value, sizeof value);
            }
        }
        return CUDA_SUCCESS;
    });
}

VGPU_EXPORT cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
    return with_kernel(function, [&](const Driver& d, CUkernel kernel, int device) {
        return d.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device);
    });
}

VGPU_EXPORT cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
    return with_kernel(function, [&](const Driver& d, CUkernel kernel, int device) {
        return d.cuKernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(config), device);
    });
}

// Bank sizes have had no effect since compute capability 5.0; the function is checked all the same.
VGPU_EXPORT cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig config) {
    if (config < cudaSharedMemBankSizeDefault || config > cudaSharedMemBankSizeEightByte)
        return record(cudaErrorInvalidValue);
    return with_kernel(function, [](const Driver&, CUkernel, int) { return CUDA_SUCCESS; });
}

VGPU_EXPORT cudaError_t cudaFuncGetName(const char** name, const void* function) {
    if (!name)
        return record(cudaErrorInvalidValue);
    if (const char* known = Registry::instance().kernel_name(function)) {
        *name = known;
        return cudaSuccess;
    }
    return with_kernel(
        function, [&](const Driver& d, CUkernel kernel, int) { return d.cuKernelGetName(name, kernel); });
}

VGPU_EXPORT cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset,
                                             size_t* size) {
    return with_kernel(function, [&](const Driver& d, CUkernel kernel, int) {
        return d.cuKernelGetParamInfo(kernel, index, offset, size);
    });
}

VGPU_EXPORT cudaError_t cudaGetFuncBySymbol(cudaFunction_t* handle, const void* function) {
    if (!handle)
        return record(cudaErrorInvalidValue);
    return with_kernel(function, [&](const Driver& d, CUkernel kernel, int) {
        return d.cuKernelGetFunction(handle, kernel);
    });
}

VGPU_EXPORT cudaError_t cudaGetKernel(cudaKernel_t* handle, const void* function) {
    if (!handle)
        return record(cudaErrorInvalidValue);
    return with_kernel(function, [&](const Driver&, CUkernel kernel, int) {
        Registry::instance().allow_kernel(kernel);
        *handle = kernel;
        return CUDA_SUCCESS;
    });
}

// The occupancy functions of the driver take a CUkernel by a cast, as cuda.h documents.
VGPU_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                               const void* function,
                                                                               int threads, size_t shared,
                                                                               unsigned int flags) {
    if (!blocks)
        return record(cudaErrorInvalidValue);
    return with_kernel(function, [&](const Driver& d, CUkernel kernel, int) {
        return d.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            blocks, reinterpret_cast<CUfunction>(kernel), threads, shared, flags);
    });
}

VGPU_EXPORT cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                                      int threads, size_t shared) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared,
                                                                  cudaOccupancyDefault);
}

VGPU_EXPORT cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                                  int blocks, int threads) {
    if (!bytes)
        return record(cudaErrorInvalidValue);
    return with_kernel(function, [&](const Driver& d, CUkernel kernel, int) {
        return d.cuOccupancyAvailableDynamicSMemPerBlock(bytes, reinterpret_cast<CUfunction>(kernel), blocks,
                                                         threads);
    });
}

VGPU_EXPORT cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                                        int value, int device) {
    return in_context([&](const Driver& d) {
        return d.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel, device);
    });
}
