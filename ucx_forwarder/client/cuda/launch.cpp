// SPDX-License-Identifier: BSD-3-Clause
// Kernel launches: sent and not awaited, after everything was checked that CUDA reports at once.
#include "ucx_forwarder/client/cuda/module.h"
#include "ucx_forwarder/client/cuda/occupancy.h"

#include <array>
#include <cstring>
#include <memory>

namespace vgpu::client {
namespace {

using protocol::LaunchShape;

/// Where a launch's parameters lie, packed as the kernel reads them.
class PackedParameters {
public:
    /// From kernelParams (one pointer a parameter) or extra (a buffer that the program packed itself).
    CUresult pack(const Function& function, void** parameters, void** extra) {
        if (parameters && extra)
            return CUDA_ERROR_INVALID_VALUE;
        if (extra)
            return take_buffer(function, extra);
        const auto& layout = function.info->parameters;
        if (layout.empty())
            return CUDA_SUCCESS;
        if (!parameters)
            return CUDA_ERROR_INVALID_VALUE;
        std::byte* to = room(function.parameter_bytes);
        for (std::size_t i = 0; i < layout.size(); ++i) {
            if (!parameters[i])
                return CUDA_ERROR_INVALID_VALUE;
            std::memcpy(to + layout[i].offset, parameters[i], layout[i].size);
        }
        bytes_ = {to, function.parameter_bytes};
        return CUDA_SUCCESS;
    }
    Bytes bytes() const { return bytes_; }

private:
    CUresult take_buffer(const Function& function, void** extra) {
        const void* buffer = nullptr;
        std::size_t size = 0;
        for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
            if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buffer = extra[1];
            else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
                std::memcpy(&size, extra[1], sizeof size);
            else
                return CUDA_ERROR_INVALID_VALUE;
        }
        // Trailing padding may be there or not; a parameter that is missing is an error.
        if (size < function.parameter_bytes || (size > 0 && !buffer))
            return CUDA_ERROR_INVALID_VALUE;
        bytes_ = {static_cast<const std::byte*>(buffer), function.parameter_bytes};
        return CUDA_SUCCESS;
    }

    // Holes between parameters are sent as they are found, so they are made zero: no stack content leaves the
    // process.
    std::byte* room(std::size_t size) {
        if (size <= small_.size()) {
            std::memset(small_.data(), 0, size);
            return small_.data();
        }
        large_ = std::make_unique<std::byte[]>(size);
        return large_.get();
    }

    std::array<std::byte, 1024> small_; // not initialised on purpose
    std::unique_ptr<std::byte[]> large_;
    Bytes bytes_;
};

CUresult check_shape(const Function& function, const LaunchShape& shape) {
    const Device& device = *function.context->device;
    constexpr CUdevice_attribute grid_limit[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
                                                 CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                                 CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
    constexpr CUdevice_attribute block_limit[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
                                                  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                                  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
    std::uint64_t threads = 1;
    for (int i = 0; i < 3; ++i) {
        if (shape.grid[i] == 0 || shape.block[i] == 0 ||
            shape.grid[i] > unsigned(device.attribute(grid_limit[i])) ||
            shape.block[i] > unsigned(device.attribute(block_limit[i])))
            return CUDA_ERROR_INVALID_VALUE;
        threads *= shape.block[i];
    }
    if (threads > unsigned(device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)))
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > unsigned(function.max_threads))
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (shape.shared_bytes > unsigned(function.max_dynamic_shared.load(std::memory_order_relaxed)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/// All blocks of a cooperative launch must be on the GPU at once.
CUresult check_cooperative(Function& function, const LaunchShape& shape) {
    const Device& device = *function.context->device;
    if (!device.attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH))
        return CUDA_ERROR_NOT_SUPPORTED;
    int blocks = 0;
    int threads = int(shape.block[0] * shape.block[1] * shape.block[2]);
    VGPU_TRY(active_blocks(function, threads, shape.shared_bytes, 0, blocks));
    auto most = std::uint64_t(blocks) * unsigned(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    std::uint64_t grid = std::uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2];
    return grid <= most ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

struct Launch {
    Function* function = nullptr;
    Context* context = nullptr;
    WireId stream;
    PackedParameters parameters;

    CUresult prepare(CUfunction handle, const LaunchShape& shape, CUstream stream_handle, NullStream null,
                     void** arguments, void** extra) {
        VGPU_TRY(current_stream(stream_handle, null, context, stream));
        VGPU_TRY(function_of(handle, function));
        if (function->context != context)
            return CUDA_ERROR_INVALID_HANDLE;
        VGPU_TRY(check_shape(*function, shape));
        return parameters.pack(*function, arguments, extra);
    }
};

CUresult launch(CUfunction f, const LaunchShape& shape, CUstream stream, NullStream null, void** arguments,
                void** extra) {
    Launch l;
    VGPU_TRY(l.prepare(f, shape, stream, null, arguments, extra));
    return l.context->call<Call::cuLaunchKernel>(l.function->id, &shape, l.stream, l.parameters.bytes());
}

CUresult launch_cooperative(CUfunction f, const LaunchShape& shape, CUstream stream, NullStream null,
                            void** arguments) {
    Launch l;
    VGPU_TRY(l.prepare(f, shape, stream, null, arguments, nullptr));
    VGPU_TRY(check_cooperative(*l.function, shape));
    return l.context->call<Call::cuLaunchCooperativeKernel>(l.function->id, &shape, l.stream,
                                                            l.parameters.bytes());
}

CUresult launch_ex(const CUlaunchConfig* config, CUfunction f, void** arguments, void** extra,
                   NullStream null) {
    VGPU_TRY(client().ready());
    if (!config || (config->numAttrs > 0 && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    const LaunchShape shape{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                            .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                            .shared_bytes = config->sharedMemBytes};
    Launch l;
    VGPU_TRY(l.prepare(f, shape, config->hStream, null, arguments, extra));
    std::array<CUlaunchAttribute, 16> attributes;
    std::size_t count = 0;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const CUlaunchAttribute& attribute = config->attrs[i];
        switch (static_cast<int>(attribute.id)) { // not all are in the enumeration of older headers
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
            continue;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            if (attribute.value.cooperative)
                VGPU_TRY(check_cooperative(*l.function, shape));
            break;
        // What these say is another object's handle, or memory that a GPU of another machine cannot reach.
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            break;
        }
        if (count == attributes.size())
            return CUDA_ERROR_INVALID_VALUE;
        attributes[count++] = attribute;
    }
    if (count == 0)
        return l.context->call<Call::cuLaunchKernel>(l.function->id, &shape, l.stream, l.parameters.bytes());
    return l.context->call<Call::cuLaunchKernelEx>(
        l.function->id, &shape, l.stream, l.parameters.bytes(),
        std::span<const CUlaunchAttribute>(attributes.data(), count));
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void** kernelParams, void** extra) {
    return launch(f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes},
                  hStream, NullStream::legacy, kernelParams, extra);
}

VGPU_API cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                             unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                             unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                             void** kernelParams, void** extra) {
    return launch(f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes},
                  hStream, NullStream::per_thread, kernelParams, extra);
}

VGPU_API cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                   void** kernelParams) {
    return launch_cooperative(
        f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes}, hStream,
        NullStream::legacy, kernelParams);
}

VGPU_API cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void** kernelParams) {
    return launch_cooperative(
        f, {{gridDimX, gridDimY, gridDimZ}, {blockDimX, blockDimY, blockDimZ}, sharedMemBytes}, hStream,
        NullStream::per_thread, kernelParams);
}

VGPU_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
    return launch_ex(config, f, kernelParams, extra, NullStream::legacy);
}

VGPU_API cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                               void** extra) {
    return launch_ex(config, f, kernelParams, extra, NullStream::per_thread);
}
