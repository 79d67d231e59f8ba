// SPDX-License-Identifier: BSD-3-Clause
// cuFunc*, cuLaunch*, cuOccupancy*.
#include "contrib/softgpu/call.h"
#include "contrib/softgpu/launch.h"

#include <algorithm>

using namespace softgpu;

namespace {

template <class F>
CUresult function_call(CUfunction handle, F f) {
    return context_call([&](Context& context) -> CUresult {
        const auto function = find_function(handle, context);
        return result_of(f, *function);
    });
}

CUresult launch_shape(CUstream null_stream, CUfunction handle, const LaunchShape& shape,
                      CUstream stream_handle, void** parameters, void** extra) {
    return context_call([&](Context& context) -> CUresult {
        const auto stream = context.stream(stream_handle, null_stream);
        if (const auto error = stream->context().error(); error != CUDA_SUCCESS)
            return error;
        launch(*stream, find_function(handle, stream->context()), shape, parameters, extra);
        return CUDA_SUCCESS;
    });
}

CUresult launch_kernel(CUstream null_stream, CUfunction function, unsigned grid_x, unsigned grid_y,
                       unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                       CUstream stream, void** parameters, void** extra) {
    return launch_shape(null_stream, function,
                        {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, false}, stream,
                        parameters, extra);
}

CUresult launch_cooperative(CUstream null_stream, CUfunction function, unsigned grid_x, unsigned grid_y,
                            unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                            unsigned shared, CUstream stream, void** parameters) {
    return launch_shape(null_stream, function,
                        {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, true}, stream,
                        parameters, nullptr);
}

#if CUDA_VERSION >= 11080
CUresult launch_config(CUstream null_stream, const CUlaunchConfig* config, CUfunction function,
                       void** parameters, void** extra) {
    return call([&] {
        require(config != nullptr && (config->attrs != nullptr || config->numAttrs == 0));
        LaunchShape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
                          {config->blockDimX, config->blockDimY, config->blockDimZ},
                          config->sharedMemBytes,
                          false};
        for (unsigned i = 0; i < config->numAttrs; ++i) {
            const auto& attribute = config->attrs[i];
            switch (attribute.id) {
            case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
                shape.cooperative = attribute.value.cooperative != 0;
                break;
            case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
                const auto& cluster = attribute.value.clusterDim;
                require(cluster.x <= 1 && cluster.y <= 1 && cluster.z <= 1, CUDA_ERROR_NOT_SUPPORTED);
                break;
            }
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
                throw Error(CUDA_ERROR_NOT_SUPPORTED);
            default: // hints on when and how to run it
                break;
            }
        }
        return launch_shape(null_stream, function, shape, config->hStream, parameters, extra);
    });
}
#endif

CUresult max_active(int* blocks, CUfunction handle, int block_size, std::size_t shared) {
    return function_call(handle, [&](Function& function) {
        require(blocks != nullptr && block_size > 0);
        *blocks = resident_blocks(function, static_cast<std::uint64_t>(block_size), shared);
    });
}

// The block size, a multiple of the warp, with which most threads are resident; of those the largest.
CUresult best_block(int* least_grid, int* best_size, CUfunction handle, CUoccupancyB2DSize shared_of,
                    std::size_t shared, int limit) {
    return function_call(handle, [&](Function& function) {
        require(least_grid != nullptr && best_size != nullptr);
        const auto most = function.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        const auto from = std::min(limit > 0 ? limit : most, most) / 32 * 32;
        int best_threads = 0;
        int best_blocks = 0;
        *best_size = 0;
        for (int size = std::max(from, 32); size >= 32; size -= 32) {
            const auto dynamic = shared_of != nullptr ? shared_of(size) : shared;
            const auto blocks = resident_blocks(function, static_cast<std::uint64_t>(size), dynamic);
            if (blocks * size > best_threads) {
                best_threads = blocks * size;
                best_blocks = blocks;
                *best_size = size;
            }
        }
        *least_grid = best_blocks * function.module().context().device().config().sms;
    });
}

} // namespace

SOFTGPU_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
    return function_call(handle, [&](Function& function) {
        require(value != nullptr);
        *value = function.attribute(attribute);
    });
}

SOFTGPU_API CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    return function_call(handle, [&](Function& function) { function.set_attribute(attribute, value); });
}

SOFTGPU_API CUresult cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
    return function_call(handle, [](Function&) {});
}

SOFTGPU_API CUresult cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
    return function_call(handle, [](Function&) {});
}

SOFTGPU_API CUresult cuFuncGetModule(CUmodule* module, CUfunction handle) {
    return function_call(handle, [&](Function& function) {
        require(module != nullptr);
        *module = reinterpret_cast<CUmodule>(&function.module());
    });
}

SOFTGPU_API CUresult cuFuncGetName(const char** name, CUfunction handle) {
    return function_call(handle, [&](Function& function) {
        require(name != nullptr);
        *name = function.kernel().name.c_str();
    });
}

SOFTGPU_API CUresult cuFuncGetParamInfo(CUfunction handle, std::size_t index, std::size_t* offset,
                                        std::size_t* size) {
    return function_call(handle, [&](Function& function) {
        const auto& parameters = function.kernel().parameters;
        require(offset != nullptr && index < parameters.size());
        *offset = parameters[index].offset;
        if (size != nullptr)
            *size = parameters[index].size;
    });
}

#if CUDA_VERSION >= 12040 // the type of the state
SOFTGPU_API CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
    return function_call(handle, [&](Function&) {
        require(state != nullptr);
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    });
}
#endif

SOFTGPU_API CUresult cuFuncLoad(CUfunction handle) {
    return function_call(handle, [](Function&) {});
}

SOFTGPU_API_PTSZ(cuLaunchKernel,
                 (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                  CUstream stream, void** parameters, void** extra),
                 launch_kernel, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                 parameters, extra)
SOFTGPU_API_PTSZ(cuLaunchCooperativeKernel,
                 (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
                  CUstream stream, void** parameters),
                 launch_cooperative, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                 stream, parameters)
#if CUDA_VERSION >= 11080
SOFTGPU_API_PTSZ(cuLaunchKernelEx,
                 (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra),
                 launch_config, config, function, parameters, extra)
#endif

SOFTGPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                                 int block_size, std::size_t shared) {
    return max_active(blocks, function, block_size, shared);
}
SOFTGPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                                          int block_size, std::size_t shared,
                                                                          unsigned int flags) {
    return (flags & ~1U) == 0 ? max_active(blocks, function, block_size, shared) : CUDA_ERROR_INVALID_VALUE;
}
SOFTGPU_API CUresult cuOccupancyMaxPotentialBlockSize(int* least_grid, int* block_size, CUfunction function,
                                                      CUoccupancyB2DSize shared_of, std::size_t shared,
                                                      int limit) {
    return best_block(least_grid, block_size, function, shared_of, shared, limit);
}
SOFTGPU_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* least_grid, int* block_size,
                                                               CUfunction function,
                                                               CUoccupancyB2DSize shared_of,
                                                               std::size_t shared, int limit,
                                                               unsigned int flags) {
    return (flags & ~1U) == 0 ? best_block(least_grid, block_size, function, shared_of, shared, limit)
                              : CUDA_ERROR_INVALID_VALUE;
}
SOFTGPU_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction handle,
                                                             int blocks, int block_size) {
    return function_call(handle, [&](Function& function) {
        require(bytes != nullptr && blocks > 0 && block_size > 0);
        const auto& device = function.module().context().device();
        const auto each = device.resources().shared_bytes / blocks / 128 * 128 -
                          device.attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK) -
                          static_cast<int>(function.kernel().static_shared_bytes);
        *bytes =
            static_cast<std::size_t>(std::clamp(each, 0, static_cast<int>(function.max_dynamic_shared())));
    });
}
