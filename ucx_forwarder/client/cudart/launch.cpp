// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cudart/launch.h"

#include <memory>

#include "ucx_forwarder/client/cudart/registry.h"
#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute),
              "launch attributes are handed through");

/// The driver has one code for a bad argument; the runtime API tells bad shapes apart.
cudaError_t refine(CUresult result, const dim3& grid, const dim3& block) noexcept {
    if (result != CUDA_ERROR_INVALID_VALUE)
        return to_error(result);
    int device = 0;
    (void)current_device(device);
    const auto limit = [&](CUdevice_attribute attribute) {
        int value = 0;
        return driver().cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS
                   ? static_cast<unsigned>(value)
                   : ~0U;
    };
    const auto outside = [&](unsigned value, CUdevice_attribute attribute) {
        return value == 0 || value > limit(attribute);
    };
    const bool bad = outside(grid.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
                     outside(grid.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
                     outside(grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) ||
                     outside(block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
                     outside(block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) ||
                     outside(block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) ||
                     static_cast<unsigned long long>(block.x) * block.y * block.z >
                         limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    return bad ? cudaErrorInvalidConfiguration : cudaErrorInvalidValue;
}

} // namespace

cudaError_t launch(CUkernel kernel, const LaunchShape& shape, void** arguments) noexcept {
    // cuLaunchKernel takes a CUkernel by a cast, as cuda.h documents.
    const auto function = reinterpret_cast<CUfunction>(kernel);
    const auto [grid, block, shared, stream, cooperative] = shape;
    if (shared > ~0U)
        return cudaErrorInvalidValue;
    const auto bytes = static_cast<unsigned>(shared);
    const CUresult result =
        cooperative ? driver().cuLaunchCooperativeKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
                                                         block.z, bytes, stream, arguments)
                    : driver().cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                              bytes, stream, arguments, nullptr);
    if (result == CUDA_SUCCESS) [[likely]]
        return cudaSuccess;
    return refine(result, grid, block);
}

namespace {

cudaError_t launch_function(const void* function, const LaunchShape& shape, void** arguments) {
    CUkernel kernel = nullptr;
    if (const cudaError_t error = Registry::instance().find_kernel(function, kernel); error != cudaSuccess)
        return error;
    return launch(kernel, shape, arguments);
}

CUlaunchConfig to_driver(const cudaLaunchConfig_t& config, CUstream stream) {
    CUlaunchConfig out{};
    out.gridDimX = config.gridDim.x;
    out.gridDimY = config.gridDim.y;
    out.gridDimZ = config.gridDim.z;
    out.blockDimX = config.blockDim.x;
    out.blockDimY = config.blockDim.y;
    out.blockDimZ = config.blockDim.z;
    out.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
    out.hStream = stream;
    // The same identifiers and values in both APIs.
    out.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
    out.numAttrs = config.numAttrs;
    return out;
}

/// A host function and what to do with the driver's view of a stream callback.
struct StreamCallback {
    cudaStreamCallback_t function;
    void* data;
};

void CUDA_CB run_stream_callback(CUstream stream, CUresult result, void* data) {
    const std::unique_ptr<StreamCallback> callback(static_cast<StreamCallback*>(data));
    callback->function(stream, to_error(result), callback->data);
}

} // namespace
} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT_BOTH(
    _ptsz, cudaLaunchKernel,
    (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared, cudaStream_t stream), {
        return in_context([&](const Driver&) {
            return launch_function(function, {grid, block, shared, on(stream), false}, arguments);
        });
    })

VGPU_EXPORT_BOTH(_ptsz, cudaLaunchCooperativeKernel,
                 (const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                  cudaStream_t stream),
                 {
                     return in_context([&](const Driver&) {
                         return launch_function(function, {grid, block, shared, on(stream), true}, arguments);
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaLaunchKernelExC,
                 (const cudaLaunchConfig_t* config, const void* function, void** arguments), {
                     if (!config || config->dynamicSmemBytes > ~0U)
                         return record(cudaErrorInvalidValue);
                     return in_context([&](const Driver& d) {
                         CUkernel kernel = nullptr;
                         const cudaError_t error = Registry::instance().find_kernel(function, kernel);
                         if (error != cudaSuccess)
                             return error;
                         const CUlaunchConfig driver_config = to_driver(*config, on(config->stream));
                         return refine(d.cuLaunchKernelEx(&driver_config,
                                                          reinterpret_cast<CUfunction>(kernel), arguments,
                                                          nullptr),
                                       config->gridDim, config->blockDim);
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void* data), {
    if (!function)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuLaunchHostFunc(on(stream), function, data); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamAddCallback,
                 (cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned int flags), {
                     if (!function || flags != 0)
                         return record(cudaErrorInvalidValue);
                     return in_context([&](const Driver& d) {
                         auto callback = std::make_unique<StreamCallback>(function, data);
                         const CUresult result =
                             d.cuStreamAddCallback(on(stream), run_stream_callback, callback.get(), 0);
                         // From now on the driver's: it calls exactly once.
                         if (result == CUDA_SUCCESS)
                             (void)callback.release();
                         return result;
                     });
                 })

VGPU_EXPORT cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                             const cudaLaunchConfig_t* config) {
    if (!size || !config)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUkernel kernel = nullptr;
        const cudaError_t error = Registry::instance().find_kernel(function, kernel);
        if (error != cudaSuccess)
            return error;
        const CUlaunchConfig driver_config = to_driver(*config, config->stream);
        return to_error(
            d.cuOccupancyMaxPotentialClusterSize(size, reinterpret_cast<CUfunction>(kernel), &driver_config));
    });
}

VGPU_EXPORT cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void* function,
                                                       const cudaLaunchConfig_t* config) {
    if (!count || !config)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUkernel kernel = nullptr;
        const cudaError_t error = Registry::instance().find_kernel(function, kernel);
        if (error != cudaSuccess)
            return error;
        const CUlaunchConfig driver_config = to_driver(*config, config->stream);
        return to_error(
            d.cuOccupancyMaxActiveClusters(count, reinterpret_cast<CUfunction>(kernel), &driver_config));
    });
}
