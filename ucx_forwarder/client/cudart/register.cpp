// SPDX-License-Identifier: BSD-3-Clause
// What nvcc's generated code calls: crt/host_runtime.h and crt/device_functions.h are the contract.
#include <array>
#include <cstdio>

#include "ucx_forwarder/client/cudart/launch.h"
#include "ucx_forwarder/client/cudart/registry.h"
#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

/// The configuration of a `<<<>>>` on its way to the kernel's stub. The arguments of a launch may launch as
/// well, so this is a stack; its depth is that of the nesting in the source.
struct CallConfiguration {
    dim3 grid;
    dim3 block;
    std::size_t shared = 0;
    cudaStream_t stream = nullptr;
};
constexpr std::size_t kMaxNesting = 32;
thread_local std::array<CallConfiguration, kMaxNesting> configurations;
thread_local constinit std::size_t configuration_count = 0;

/// Why the last __cudaGetKernel of this thread failed: the launch that follows, with a null handle, reports
/// it.
thread_local constinit cudaError_t kernel_error = cudaErrorInvalidResourceHandle;

Image& image_of(void** handle) {
    return *reinterpret_cast<Image*>(handle);
}

} // namespace
} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
    return reinterpret_cast<void**>(Registry::instance().add_image(wrapper));
}

VGPU_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

VGPU_EXPORT void __cudaUnregisterFatBinary(void** handle) {
    if (handle)
        Registry::instance().remove_image(image_of(handle));
}

VGPU_EXPORT void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*,
                                        uint3*, dim3*, dim3*, int*) {
    Registry::instance().add_kernel(image_of(handle), host, name);
}

VGPU_EXPORT void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int,
                                   int) {
    Registry::instance().add_variable(image_of(handle), host, name, size, nullptr);
}

VGPU_EXPORT void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int,
                                          size_t size, int, int) {
    Registry::instance().add_variable(image_of(handle), host, name, size, host);
}

// Called before the first use of a __managed__ variable of the image.
VGPU_EXPORT char __cudaInitModule(void** handle) {
    return in_context([&](const Driver&) { return Registry::instance().place_managed(image_of(handle)); }) ==
           cudaSuccess;
}

VGPU_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
    if (configuration_count == kMaxNesting)
        return record(cudaErrorLaunchMaxDepthExceeded);
    configurations[configuration_count++] = {grid, block, shared, stream};
    return cudaSuccess;
}

VGPU_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
    if (configuration_count == 0)
        return record(cudaErrorMissingConfiguration);
    const CallConfiguration& top = configurations[--configuration_count];
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *static_cast<cudaStream_t*>(stream) = top.stream;
    return cudaSuccess;
}

VGPU_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    const cudaError_t error =
        in_context([&](const Driver&) { return Registry::instance().find_kernel(function, *kernel); });
    if (error != cudaSuccess)
        kernel_error = error;
    return error;
}

VGPU_EXPORT_BOTH(_ptsz, __cudaLaunchKernel,
                 (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                  cudaStream_t stream),
                 {
                     if (!kernel)
                         return record(kernel_error);
                     return in_context([&](const Driver&) {
                         return launch(kernel, {grid, block, shared, on(stream), false}, arguments);
                     });
                 })
