// SPDX-License-Identifier: BSD-3-Clause
// The functions of the runtime API that have other parameters in CUDA 11 than later, and those that ended
// with it. Empty with the headers of a later toolkit.
#include "ucx_forwarder/client/cudart/runtime.h"

#if CUDART_VERSION < 12000

using namespace vgpu::cudart;

namespace {

cudaError_t capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                         cudaGraph_t* graph, const cudaGraphNode_t** nodes, size_t* count) {
    if (!status)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        cuuint64_t sequence = 0;
        const CUresult result = d.cuStreamGetCaptureInfo(
            stream, reinterpret_cast<CUstreamCaptureStatus*>(status), &sequence, graph, nodes, count);
        if (id)
            *id = sequence;
        // Under a driver without capture no stream is ever captured.
        if (result != CUDA_ERROR_NOT_SUPPORTED)
            return result;
        *status = cudaStreamCaptureStatusNone;
        return CUDA_SUCCESS;
    });
}

} // namespace

VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetCaptureInfo,
                 (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id),
                 { return capture_info(on(stream), status, id, nullptr, nullptr, nullptr); })

VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetCaptureInfo_v2,
                 (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                  cudaGraph_t* graph, const cudaGraphNode_t** nodes, size_t* count),
                 { return capture_info(on(stream), status, id, graph, nodes, count); })

// The node at fault and the log are for older drivers: neither is filled in any more.
VGPU_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                             cudaGraphNode_t* error_node, char* log, size_t log_size) {
    if (error_node)
        *error_node = nullptr;
    if (log && log_size > 0)
        *log = '\0';
    return cudaGraphInstantiateWithFlags(executable, graph, 0);
}

VGPU_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                 const cudaGraphNode_t* to, size_t count) {
    return in_context([&](const Driver& d) { return d.cuGraphAddDependencies(graph, from, to, count); });
}

VGPU_EXPORT cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                                      int device) {
    return in_context([&](const Driver& d) {
        return d.cuMemAdvise(device_pointer(pointer), bytes, static_cast<CUmem_advise>(advice), device);
    });
}

VGPU_EXPORT_BOTH(_ptsz, cudaMemPrefetchAsync,
                 (const void* pointer, size_t bytes, int device, cudaStream_t stream), {
                     return in_context([&](const Driver& d) {
                         return d.cuMemPrefetchAsync(device_pointer(pointer), bytes, device, on(stream));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaGetDriverEntryPoint,
                 (const char* symbol, void** function, unsigned long long flags), {
                     if (!symbol || !function)
                         return record(cudaErrorInvalidValue);
                     if (flags == cudaEnableDefault)
                         flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                            : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
                     *function = nullptr;
                     return with_driver([&](const Driver& d) {
                         return d.cuGetProcAddress(symbol, function, CUDART_VERSION, flags);
                     });
                 })

// The names of CUDA 3 for what is the device's.

VGPU_EXPORT cudaError_t cudaThreadExit() {
    return cudaDeviceReset();
}

VGPU_EXPORT cudaError_t cudaThreadSynchronize() {
    return cudaDeviceSynchronize();
}

VGPU_EXPORT cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
    return cudaDeviceSetLimit(limit, value);
}

VGPU_EXPORT cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) {
    return cudaDeviceGetLimit(value, limit);
}

VGPU_EXPORT cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) {
    return cudaDeviceGetCacheConfig(config);
}

VGPU_EXPORT cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
    return cudaDeviceSetCacheConfig(config);
}

#endif
