// SPDX-License-Identifier: BSD-3-Clause
// The CUDA driver library of this node, opened at run time: only its public, exported functions.
#pragma once

#include "ucx_forwarder/protocol/calls.h"

#include <cuda.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

namespace vgpu::worker {

/// The driver cannot be used; the text says why and what would help.
struct DriverError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Functions that handlers call by name. The table's own calls (calls.def) are found by their names.
#define VGPU_DRIVER_FUNCTIONS(F)                                                                             \
    F(cuInit)                                                                                                \
    F(cuDriverGetVersion)                                                                                    \
    F(cuGetErrorName)                                                                                        \
    F(cuGetErrorString)                                                                                      \
    F(cuDeviceGet)                                                                                           \
    F(cuDeviceGetCount)                                                                                      \
    F(cuDeviceGetName)                                                                                       \
    F(cuDeviceGetUuid_v2)                                                                                    \
    F(cuDeviceGetPCIBusId)                                                                                   \
    F(cuDeviceGetLuid)                                                                                       \
    F(cuDeviceGetAttribute)                                                                                  \
    F(cuDevicePrimaryCtxRetain)                                                                              \
    F(cuDevicePrimaryCtxRelease_v2)                                                                          \
    F(cuDevicePrimaryCtxReset_v2)                                                                            \
    F(cuDevicePrimaryCtxGetState)                                                                            \
    F(cuCtxSetCurrent)                                                                                       \
    F(cuCtxPopCurrent_v2)                                                                                    \
    F(cuCtxDestroy_v2)                                                                                       \
    F(cuCtxSynchronize)                                                                                      \
    F(cuMemAlloc_v2)                                                                                         \
    F(cuMemAllocPitch_v2)                                                                                    \
    F(cuMemFree_v2)                                                                                          \
    F(cuMemAllocAsync)                                                                                       \
    F(cuMemAllocFromPoolAsync)                                                                               \
    F(cuMemFreeAsync)                                                                                        \
    F(cuMemPoolCreate)                                                                                       \
    F(cuMemPoolSetAttribute)                                                                                 \
    F(cuMemPoolGetAttribute)                                                                                 \
    F(cuArrayCreate_v2)                                                                                      \
    F(cuArray3DCreate_v2)                                                                                    \
    F(cuArrayDestroy)                                                                                        \
    F(cuMemcpyHtoD_v2)                                                                                       \
    F(cuMemcpyHtoDAsync_v2)                                                                                  \
    F(cuMemcpyDtoH_v2)                                                                                       \
    F(cuMemcpyDtoHAsync_v2)                                                                                  \
    F(cuMemcpy3D_v2)                                                                                         \
    F(cuMemcpy3DAsync_v2)                                                                                    \
    F(cuModuleLoadDataEx)                                                                                    \
    F(cuModuleUnload)                                                                                        \
    F(cuFuncGetAttribute)                                                                                    \
    F(cuLinkCreate_v2)                                                                                       \
    F(cuLinkAddData_v2)                                                                                      \
    F(cuLinkComplete)                                                                                        \
    F(cuLinkDestroy)                                                                                         \
    F(cuLaunchKernel)                                                                                        \
    F(cuLaunchCooperativeKernel)                                                                             \
    F(cuLaunchKernelEx)                                                                                      \
    F(cuLaunchHostFunc)                                                                                      \
    F(cuStreamDestroy_v2)                                                                                    \
    F(cuStreamSynchronize)                                                                                   \
    F(cuStreamQuery)                                                                                         \
    F(cuStreamIsCapturing)                                                                                   \
    F(cuEventDestroy_v2)                                                                                     \
    F(cuEventRecord)                                                                                         \
    F(cuEventRecordWithFlags)                                                                                \
    F(cuEventQuery)                                                                                          \
    F(cuEventSynchronize)

// The same for functions that came with CUDA 12.3 and 12.4: the headers of an older toolkit do not declare
// them.
#define VGPU_DRIVER_NEWER_FUNCTIONS(F)                                                                       \
    F(cuModuleGetFunctionCount, unsigned*, CUmodule)                                                         \
    F(cuModuleEnumerateFunctions, CUfunction*, unsigned, CUmodule)                                           \
    F(cuFuncGetName, const char**, CUfunction)                                                               \
    F(cuFuncGetParamInfo, CUfunction, std::size_t, std::size_t*, std::size_t*)

class Driver {
public:
    /// Opens the library and calls cuInit. Throws DriverError.
    explicit Driver(const std::string& library);

    /// The function that a table's line stands for; null where this driver does not have it.
    void* call(protocol::Call call) const { return calls_[static_cast<std::size_t>(call)]; }

    /// "CUDA_ERROR_OUT_OF_MEMORY", for logs.
    std::string name_of(CUresult status) const;

    // A function that this driver lacks answers CUDA_ERROR_NOT_SUPPORTED.
#define VGPU_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;
    VGPU_DRIVER_FUNCTIONS(VGPU_DRIVER_MEMBER)
#undef VGPU_DRIVER_MEMBER
#define VGPU_DRIVER_MEMBER(name, ...) CUresult(CUDAAPI* name)(__VA_ARGS__) = nullptr;
    VGPU_DRIVER_NEWER_FUNCTIONS(VGPU_DRIVER_MEMBER)
#undef VGPU_DRIVER_MEMBER

private:
    struct Close {
        void operator()(void* library) const;
    };
    std::unique_ptr<void, Close> library_;
    std::array<void*, protocol::call_count> calls_{};
};

} // namespace vgpu::worker
