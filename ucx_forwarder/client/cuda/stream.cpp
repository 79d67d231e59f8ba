// SPDX-License-Identifier: BSD-3-Clause
// Streams. A handle is made here and used at once; the worker creates its stream when the command arrives
// there.
#include "ucx_forwarder/client/cuda/client.h"

#include <algorithm>
#include <array>

namespace vgpu::client {
namespace {

/// The calling thread's own default streams (CU_STREAM_PER_THREAD): one for each context in which it used
/// one. Trivially destructible, like the context stack; streams of threads that end stay until their context
/// ends.
struct ThreadStreams {
    struct Entry {
        CUcontext context;
        std::uint32_t life; ///< of a primary context, which can end and begin again
        WireId stream;
    };
    std::array<Entry, 16> entries;
    unsigned count;
    unsigned next; ///< which entry is replaced once all are in use
};

CUresult thread_stream(Context& context, WireId& stream) {
    thread_local constinit ThreadStreams streams{};
    const std::uint32_t life = context.life.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < streams.count; ++i)
        if (streams.entries[i].context == context.handle && streams.entries[i].life == life) {
            stream = streams.entries[i].stream;
            return CUDA_SUCCESS;
        }
    stream = context.session().new_id();
    VGPU_TRY(context.call<Call::cuStreamCreate>(stream, unsigned(CU_STREAM_DEFAULT)));
    unsigned place =
        streams.count < streams.entries.size() ? streams.count++ : streams.next++ % streams.entries.size();
    streams.entries[place] = {context.handle, life, stream};
    return CUDA_SUCCESS;
}

CUresult create(CUstream* result, unsigned flags, int priority) {
    Context* context;
    VGPU_TRY(current(context));
    if (!result || flags & ~unsigned(CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    if (priority != 0) { // 0 is always there; asking costs a round trip
        int least = 0;
        int greatest = 0;
        VGPU_TRY(context->call<Call::cuCtxGetStreamPriorityRange>(&least, &greatest));
        // As documented: a priority out of range becomes the nearest one.
        priority = std::clamp(priority, std::min(greatest, least), least);
    }
    auto made = client().streams.make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    Stream& stream = *made.object;
    stream.context = context;
    stream.id = context->session().new_id();
    stream.flags = flags;
    stream.priority = priority;
    stream.number = new_number();
    CUresult status = priority == 0
                          ? context->call<Call::cuStreamCreate>(stream.id, flags)
                          : context->call<Call::cuStreamCreateWithPriority>(stream.id, flags, priority);
    if (status != CUDA_SUCCESS) {
        client().streams.recycle(made.handle);
        return status;
    }
    client().streams.publish(made.handle);
    *result = std::bit_cast<CUstream>(made.handle);
    return CUDA_SUCCESS;
}

CUresult destroy(CUstream handle) {
    VGPU_TRY(client().ready());
    auto& table = client().streams;
    Stream* stream = table.find(handle);
    if (!stream || !table.close(std::bit_cast<std::uint64_t>(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = stream->context->call<Call::cuStreamDestroy_v2>(stream->id);
    table.recycle(std::bit_cast<std::uint64_t>(handle));
    return status;
}

CUresult synchronize(CUstream handle, NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    return context->call<Call::cuStreamSynchronize>(stream);
}

CUresult query(CUstream handle, NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    return context->call<Call::cuStreamQuery>(stream);
}

CUresult wait_event(CUstream handle, CUevent event_handle, unsigned flags, NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    Event* event = client().events.find(event_handle);
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (flags & ~unsigned(CU_EVENT_WAIT_EXTERNAL))
        return CUDA_ERROR_INVALID_VALUE;
    if (event->context->device->node != context->device->node)
        // Another node's event: this thread waits for it, and what it sends to the stream next comes after.
        return event->context->call<Call::cuEventSynchronize>(event->id);
    return context->call<Call::cuStreamWaitEvent>(stream, event->id, flags);
}

/// A stream's properties; those of the default streams are known.
CUresult properties(CUstream handle, NullStream null, Stream& copy) {
    Context* context;
    WireId id;
    VGPU_TRY(current_stream(handle, null, context, id));
    if (Stream* stream = client().streams.find(handle)) {
        copy = *stream;
        return CUDA_SUCCESS;
    }
    copy = {.context = context, .id = id};
    copy.number = id == protocol::null_id || id == protocol::legacy_stream ? 1 : id.value << 32;
    return CUDA_SUCCESS;
}

template <class T, class Get>
CUresult ask(CUstream handle, NullStream null, T* result, Get get) {
    Stream stream;
    VGPU_TRY(properties(handle, null, stream));
    if (!result)
        return CUDA_ERROR_INVALID_VALUE;
    *result = T(get(stream));
    return CUDA_SUCCESS;
}

CUresult copy_attributes(CUstream to, CUstream from, NullStream null) {
    Context *to_context, *from_context;
    WireId to_id, from_id;
    VGPU_TRY(current_stream(to, null, to_context, to_id));
    VGPU_TRY(current_stream(from, null, from_context, from_id));
    if (to_context != from_context)
        return CUDA_ERROR_INVALID_VALUE;
    return to_context->call<Call::cuStreamCopyAttributes>(to_id, from_id);
}

CUresult get_attribute(CUstream handle, CUstreamAttrID which, CUstreamAttrValue* value, NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    return value ? context->call<Call::cuStreamGetAttribute>(stream, which, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult set_attribute(CUstream handle, CUstreamAttrID which, const CUstreamAttrValue* value,
                       NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    return value ? context->call<Call::cuStreamSetAttribute>(stream, which, value) : CUDA_ERROR_INVALID_VALUE;
}

/// cuStreamWaitValue32 and its kin: only the call and the value's type differ.
template <Call C, class Value>
CUresult memory_operation(CUstream handle, CUdeviceptr address, Value value, unsigned flags,
                          NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    VGPU_TRY(check_device_range(*context, address, sizeof value));
    return context->call<C>(stream, address, value, flags);
}

// No stream is ever captured into a graph here.
CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* status, NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

} // namespace

CUresult stream_of(CUstream handle, NullStream null, Context*& context, WireId& stream) {
    if (!handle)
        handle = null == NullStream::per_thread ? CU_STREAM_PER_THREAD : nullptr;
    if (!handle) {
        stream = protocol::null_id;
        return CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_LEGACY) {
        stream = protocol::legacy_stream;
        return CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_PER_THREAD)
        return thread_stream(*context, stream);
    Stream* found = client().streams.find(handle);
    if (!found)
        return CUDA_ERROR_INVALID_HANDLE;
    context = found->context;
    stream = found->id;
    return CUDA_SUCCESS;
}

CUresult current_stream(CUstream handle, NullStream null, Context*& context, WireId& stream) {
    VGPU_TRY(current(context));
    return stream_of(handle, null, context, stream);
}

} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuStreamCreate(CUstream* phStream, unsigned int Flags) {
    return create(phStream, Flags, 0);
}
VGPU_API cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
    return create(phStream, flags, priority);
}
VGPU_API cuStreamDestroy(CUstream hStream) {
    return destroy(hStream);
}
VGPU_API cuStreamDestroy_v2(CUstream hStream) {
    return destroy(hStream);
}

// Every function on streams comes twice: as it is, and for programs whose NULL stream is the thread's own.
#define LEGACY NullStream::legacy
#define PER_THREAD NullStream::per_thread

VGPU_API cuStreamSynchronize(CUstream s) {
    return synchronize(s, LEGACY);
}
VGPU_API cuStreamSynchronize_ptsz(CUstream s) {
    return synchronize(s, PER_THREAD);
}
VGPU_API cuStreamQuery(CUstream s) {
    return query(s, LEGACY);
}
VGPU_API cuStreamQuery_ptsz(CUstream s) {
    return query(s, PER_THREAD);
}
VGPU_API cuStreamWaitEvent(CUstream s, CUevent e, unsigned int flags) {
    return wait_event(s, e, flags, LEGACY);
}
VGPU_API cuStreamWaitEvent_ptsz(CUstream s, CUevent e, unsigned int flags) {
    return wait_event(s, e, flags, PER_THREAD);
}

static int priority_of(const Stream& s) {
    return s.priority;
}
static unsigned flags_of(const Stream& s) {
    return s.flags;
}
static unsigned long long number_of(const Stream& s) {
    return s.number;
}
static CUcontext context_handle_of(const Stream& s) {
    return s.context->handle;
}
static CUdevice device_number_of(const Stream& s) {
    return s.context->device->ordinal;
}

VGPU_API cuStreamGetPriority(CUstream s, int* priority) {
    return ask(s, LEGACY, priority, priority_of);
}
VGPU_API cuStreamGetPriority_ptsz(CUstream s, int* priority) {
    return ask(s, PER_THREAD, priority, priority_of);
}
VGPU_API cuStreamGetFlags(CUstream s, unsigned int* flags) {
    return ask(s, LEGACY, flags, flags_of);
}
VGPU_API cuStreamGetFlags_ptsz(CUstream s, unsigned int* flags) {
    return ask(s, PER_THREAD, flags, flags_of);
}
VGPU_API cuStreamGetId(CUstream s, unsigned long long* id) {
    return ask(s, LEGACY, id, number_of);
}
VGPU_API cuStreamGetId_ptsz(CUstream s, unsigned long long* id) {
    return ask(s, PER_THREAD, id, number_of);
}
VGPU_API cuStreamGetCtx(CUstream s, CUcontext* pctx) {
    return ask(s, LEGACY, pctx, context_handle_of);
}
VGPU_API cuStreamGetCtx_ptsz(CUstream s, CUcontext* pctx) {
    return ask(s, PER_THREAD, pctx, context_handle_of);
}
VGPU_API cuStreamGetDevice(CUstream s, CUdevice* device) {
    return ask(s, LEGACY, device, device_number_of);
}
VGPU_API cuStreamGetDevice_ptsz(CUstream s, CUdevice* device) {
    return ask(s, PER_THREAD, device, device_number_of);
}

static CUresult get_context(CUstream s, CUcontext* context, CUgreenCtx* green, NullStream null) {
    if (green)
        *green = nullptr;
    return ask(s, null, context, context_handle_of);
}
VGPU_API cuStreamGetCtx_v2(CUstream s, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
    return get_context(s, pCtx, pGreenCtx, LEGACY);
}
VGPU_API cuStreamGetCtx_v2_ptsz(CUstream s, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
    return get_context(s, pCtx, pGreenCtx, PER_THREAD);
}

VGPU_API cuStreamCopyAttributes(CUstream dst, CUstream src) {
    return copy_attributes(dst, src, LEGACY);
}
VGPU_API cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src) {
    return copy_attributes(dst, src, PER_THREAD);
}
VGPU_API cuStreamGetAttribute(CUstream s, CUstreamAttrID attr, CUstreamAttrValue* value) {
    return get_attribute(s, attr, value, LEGACY);
}
VGPU_API cuStreamGetAttribute_ptsz(CUstream s, CUstreamAttrID attr, CUstreamAttrValue* value) {
    return get_attribute(s, attr, value, PER_THREAD);
}
VGPU_API cuStreamSetAttribute(CUstream s, CUstreamAttrID attr, const CUstreamAttrValue* value) {
    return set_attribute(s, attr, value, LEGACY);
}
VGPU_API cuStreamSetAttribute_ptsz(CUstream s, CUstreamAttrID attr, const CUstreamAttrValue* value) {
    return set_attribute(s, attr, value, PER_THREAD);
}

#define MEMORY_OPERATION(name, type)                                                                         \
    VGPU_API name##_v2(CUstream s, CUdeviceptr addr, type value, unsigned int flags) {                       \
        return memory_operation<Call::name##_v2>(s, addr, value, flags, LEGACY);                             \
    }                                                                                                        \
    VGPU_API name##_v2_ptsz(CUstream s, CUdeviceptr addr, type value, unsigned int flags) {                  \
        return memory_operation<Call::name##_v2>(s, addr, value, flags, PER_THREAD);                         \
    }
MEMORY_OPERATION(cuStreamWaitValue32, cuuint32_t)
MEMORY_OPERATION(cuStreamWaitValue64, cuuint64_t)
MEMORY_OPERATION(cuStreamWriteValue32, cuuint32_t)
MEMORY_OPERATION(cuStreamWriteValue64, cuuint64_t)

VGPU_API cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* status) {
    return is_capturing(s, status, LEGACY);
}
VGPU_API cuStreamIsCapturing_ptsz(CUstream s, CUstreamCaptureStatus* status) {
    return is_capturing(s, status, PER_THREAD);
}
