// SPDX-License-Identifier: BSD-3-Clause
// Streams and events: cudaStream_t and cudaEvent_t are the driver's handles, their flags the driver's bits.
#include <cstring>

#include "ucx_forwarder/client/cudart/runtime.h"

using namespace vgpu::cudart;

VGPU_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
    if (!stream)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuStreamCreate(stream, flags); });
}

VGPU_EXPORT cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

VGPU_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
    if (!stream)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuStreamCreateWithPriority(stream, flags, priority); });
}

VGPU_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    // The default streams cannot be destroyed.
    if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
        return record(cudaErrorInvalidResourceHandle);
    return in_context([&](const Driver& d) { return d.cuStreamDestroy(stream); });
}

VGPU_EXPORT_BOTH(_ptsz, cudaStreamQuery, (cudaStream_t stream),
                 { return in_context([&](const Driver& d) { return d.cuStreamQuery(on(stream)); }); })

VGPU_EXPORT_BOTH(_ptsz, cudaStreamSynchronize, (cudaStream_t stream),
                 { return in_context([&](const Driver& d) { return d.cuStreamSynchronize(on(stream)); }); })

VGPU_EXPORT_BOTH(_ptsz, cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags), {
    return in_context([&](const Driver& d) { return d.cuStreamWaitEvent(on(stream), event, flags); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetPriority, (cudaStream_t stream, int* priority), {
    if (!priority)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuStreamGetPriority(on(stream), priority); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetFlags, (cudaStream_t stream, unsigned int* flags), {
    if (!flags)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuStreamGetFlags(on(stream), flags); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetId, (cudaStream_t stream, unsigned long long* id), {
    if (!id)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuStreamGetId(on(stream), id); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetDevice, (cudaStream_t stream, int* device), {
    if (!device)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuStreamGetDevice(on(stream), device); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), {
    return in_context([&](const Driver& d) { return d.cuStreamCopyAttributes(on(to), on(from)); });
})

VGPU_EXPORT_BOTH(_ptsz, cudaStreamGetAttribute,
                 (cudaStream_t stream, cudaStreamAttrID id, cudaStreamAttrValue* value), {
                     if (!value)
                         return record(cudaErrorInvalidValue);
                     static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue));
                     return in_context([&](const Driver& d) {
                         return d.cuStreamGetAttribute(on(stream), static_cast<CUstreamAttrID>(id),
                                                       reinterpret_cast<CUstreamAttrValue*>(value));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaStreamSetAttribute,
                 (cudaStream_t stream, cudaStreamAttrID id, const cudaStreamAttrValue* value), {
                     if (!value)
                         return record(cudaErrorInvalidValue);
                     return in_context([&](const Driver& d) {
                         return d.cuStreamSetAttribute(on(stream), static_cast<CUstreamAttrID>(id),
                                                       reinterpret_cast<const CUstreamAttrValue*>(value));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaStreamAttachMemAsync,
                 (cudaStream_t stream, void* pointer, size_t bytes, unsigned int flags), {
                     return in_context([&](const Driver& d) {
                         return d.cuStreamAttachMemAsync(on(stream), device_pointer(pointer), bytes, flags);
                     });
                 })

VGPU_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
    if (!event)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuEventCreate(event, flags); });
}

VGPU_EXPORT cudaError_t cudaEventCreate(cudaEvent_t* event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

VGPU_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event) {
    return in_context([&](const Driver& d) { return d.cuEventDestroy(event); });
}

VGPU_EXPORT_BOTH(_ptsz, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
                 { return in_context([&](const Driver& d) { return d.cuEventRecord(event, on(stream)); }); })

VGPU_EXPORT_BOTH(_ptsz, cudaEventRecordWithFlags,
                 (cudaEvent_t event, cudaStream_t stream, unsigned int flags), {
                     return in_context(
                         [&](const Driver& d) { return d.cuEventRecordWithFlags(event, on(stream), flags); });
                 })

VGPU_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event) {
    return in_context([&](const Driver& d) { return d.cuEventQuery(event); });
}

VGPU_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    return in_context([&](const Driver& d) { return d.cuEventSynchronize(event); });
}

VGPU_EXPORT cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    if (!milliseconds)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuEventElapsedTime(milliseconds, start, end); });
}

VGPU_EXPORT cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
    if (!handle)
        return record(cudaErrorInvalidValue);
    static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));
    return in_context([&](const Driver& d) {
        return d.cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event);
    });
}

VGPU_EXPORT cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
    if (!event)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUipcEventHandle driver_handle;
        std::memcpy(&driver_handle, &handle, sizeof driver_handle);
        return d.cuIpcOpenEventHandle(event, driver_handle);
    });
}
