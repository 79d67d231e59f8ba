// SPDX-License-Identifier: BSD-3-Clause
// Stream capture and graphs, as far as both APIs share their types: handles are the driver's.
#include "ucx_forwarder/client/cudart/registry.h"
#include "ucx_forwarder/client/cudart/runtime.h"

using namespace vgpu::cudart;

namespace {

/// Under a driver without capture no stream is ever captured, which is an answer.
CUresult without_capture(CUresult result, cudaStreamCaptureStatus* status) {
    if (result != CUDA_ERROR_NOT_SUPPORTED)
        return result;
    *status = cudaStreamCaptureStatusNone;
    return CUDA_SUCCESS;
}

} // namespace

VGPU_EXPORT_BOTH(_ptsz, cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), {
    return in_context([&](const Driver& d) {
        return d.cuStreamBeginCapture(on(stream), static_cast<CUstreamCaptureMode>(mode));
    });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t* graph), {
    if (!graph)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuStreamEndCapture(on(stream), graph); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus* status), {
    if (!status)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return without_capture(
            d.cuStreamIsCapturing(on(stream), reinterpret_cast<CUstreamCaptureStatus*>(status)), status);
    });
})

#if CUDART_VERSION >= 12000
VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetCaptureInfo,
                 (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                  cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** edges,
                  size_t* count),
                 {
                     if (!status)
                         return record(cudaErrorInvalidValue);
                     static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
                     return in_context([&](const Driver& d) {
                         cuuint64_t sequence = 0;
                         const CUresult result = d.cuStreamGetCaptureInfo(
                             on(stream), reinterpret_cast<CUstreamCaptureStatus*>(status), &sequence, graph,
                             nodes, reinterpret_cast<const CUgraphEdgeData**>(edges), count);
                         if (id)
                             *id = sequence;
                         return without_capture(result, status);
                     });
                 })
#endif // else in older_runtime.cpp

VGPU_EXPORT cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    if (!mode)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        return d.cuThreadExchangeStreamCaptureMode(reinterpret_cast<CUstreamCaptureMode*>(mode));
    });
}

VGPU_EXPORT cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
    if (!graph)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuGraphCreate(graph, flags); });
}

VGPU_EXPORT cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    return in_context([&](const Driver& d) { return d.cuGraphDestroy(graph); });
}

VGPU_EXPORT cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
    if (!clone)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuGraphClone(clone, graph); });
}

VGPU_EXPORT cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return in_context([&](const Driver& d) { return d.cuGraphGetNodes(graph, nodes, count); });
}

VGPU_EXPORT cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    return in_context([&](const Driver& d) { return d.cuGraphGetRootNodes(graph, nodes, count); });
}

VGPU_EXPORT cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    return in_context([&](const Driver& d) { return d.cuGraphDestroyNode(node); });
}

VGPU_EXPORT cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                      unsigned long long flags) {
    if (!executable)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuGraphInstantiate(executable, graph, flags); });
}

#if CUDART_VERSION >= 12000
VGPU_EXPORT cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                             unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}
#endif // else in older_runtime.cpp

VGPU_EXPORT cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    return in_context([&](const Driver& d) { return d.cuGraphExecDestroy(executable); });
}

VGPU_EXPORT cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
    if (!flags)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        cuuint64_t found = 0;
        const CUresult result = d.cuGraphExecGetFlags(executable, &found);
        *flags = found;
        return result;
    });
}

VGPU_EXPORT_BOTH(_ptsz, cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream), {
    return in_context([&](const Driver& d) { return d.cuGraphLaunch(executable, on(stream)); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaGraphUpload, (cudaGraphExec_t executable, cudaStream_t stream), {
    return in_context([&](const Driver& d) { return d.cuGraphUpload(executable, on(stream)); });
})

#if CUDART_VERSION >= 12000
VGPU_EXPORT cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                 const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                                 size_t count) {
    return in_context([&](const Driver& d) {
        return d.cuGraphAddDependencies(graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(edges),
                                        count);
    });
}
#endif // else in older_runtime.cpp

VGPU_EXPORT cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* after, size_t count) {
    if (!node)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuGraphAddEmptyNode(node, graph, after, count); });
}

VGPU_EXPORT cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                   const cudaGraphNode_t* after, size_t count,
                                                   cudaGraph_t child) {
    if (!node)
        return record(cudaErrorInvalidValue);
    return in_context(
        [&](const Driver& d) { return d.cuGraphAddChildGraphNode(node, graph, after, count, child); });
}

VGPU_EXPORT cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                    const cudaGraphNode_t* after, size_t count,
                                                    cudaEvent_t event) {
    if (!node)
        return record(cudaErrorInvalidValue);
    return in_context(
        [&](const Driver& d) { return d.cuGraphAddEventRecordNode(node, graph, after, count, event); });
}

VGPU_EXPORT cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                  const cudaGraphNode_t* after, size_t count,
                                                  cudaEvent_t event) {
    if (!node)
        return record(cudaErrorInvalidValue);
    return in_context(
        [&](const Driver& d) { return d.cuGraphAddEventWaitNode(node, graph, after, count, event); });
}

VGPU_EXPORT cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* after, size_t count,
                                             const cudaHostNodeParams* parameters) {
    if (!node || !parameters)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUDA_HOST_NODE_PARAMS wanted{};
        wanted.fn = parameters->fn;
        wanted.userData = parameters->userData;
        return d.cuGraphAddHostNode(node, graph, after, count, &wanted);
    });
}

VGPU_EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                               const cudaGraphNode_t* after, size_t count,
                                               const cudaKernelNodeParams* parameters) {
    if (!node || !parameters)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUDA_KERNEL_NODE_PARAMS wanted{};
        CUkernel kernel = nullptr;
        const cudaError_t error = Registry::instance().find_kernel(parameters->func, kernel);
        if (error != cudaSuccess)
            return error;
#if CUDA_VERSION >= 12000
        wanted.kern = kernel;
#else
        if (const CUresult result = d.cuKernelGetFunction(&wanted.func, kernel); result != CUDA_SUCCESS)
            return to_error(result);
#endif
        wanted.gridDimX = parameters->gridDim.x;
        wanted.gridDimY = parameters->gridDim.y;
        wanted.gridDimZ = parameters->gridDim.z;
        wanted.blockDimX = parameters->blockDim.x;
        wanted.blockDimY = parameters->blockDim.y;
        wanted.blockDimZ = parameters->blockDim.z;
        wanted.sharedMemBytes = parameters->sharedMemBytes;
        wanted.kernelParams = parameters->kernelParams;
        wanted.extra = parameters->extra;
        return to_error(d.cuGraphAddKernelNode(node, graph, after, count, &wanted));
    });
}

VGPU_EXPORT cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                               const cudaGraphNode_t* after, size_t count,
                                               const cudaMemsetParams* parameters) {
    if (!node || !parameters)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUDA_MEMSET_NODE_PARAMS wanted{};
        wanted.dst = device_pointer(parameters->dst);
        wanted.pitch = parameters->pitch;
        wanted.value = parameters->value;
        wanted.elementSize = parameters->elementSize;
        wanted.width = parameters->width;
        wanted.height = parameters->height;
        CUcontext context = nullptr;
        const CUresult result = d.cuCtxGetCurrent(&context);
        return result == CUDA_SUCCESS ? d.cuGraphAddMemsetNode(node, graph, after, count, &wanted, context)
                                      : result;
    });
}

VGPU_EXPORT cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
    return in_context([&](const Driver& d) { return d.cuGraphDebugDotPrint(graph, path, flags); });
}
