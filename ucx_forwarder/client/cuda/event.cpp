// SPDX-License-Identifier: BSD-3-Clause
// Events.
#include "ucx_forwarder/client/cuda/client.h"

#include <bit>

namespace vgpu::client {
namespace {

CUresult event_of(CUevent handle, Event*& event) {
    VGPU_TRY(client().ready());
    event = client().events.find(handle);
    return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult destroy(CUevent handle) {
    Event* event;
    VGPU_TRY(event_of(handle, event));
    auto& table = client().events;
    if (!table.close(std::bit_cast<std::uint64_t>(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = event->context->call<Call::cuEventDestroy_v2>(event->id);
    table.recycle(std::bit_cast<std::uint64_t>(handle));
    return status;
}

CUresult record(CUevent handle, CUstream stream_handle, unsigned flags, NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(stream_handle, null, context, stream));
    Event* event;
    VGPU_TRY(event_of(handle, event));
    if (flags & ~unsigned(CU_EVENT_RECORD_EXTERNAL))
        return CUDA_ERROR_INVALID_VALUE;
    if (event->context != context)
        return CUDA_ERROR_INVALID_HANDLE;
    return flags ? context->call<Call::cuEventRecordWithFlags>(event->id, stream, flags)
                 : context->call<Call::cuEventRecord>(event->id, stream);
}

CUresult elapsed(float* milliseconds, CUevent start_handle, CUevent end_handle) {
    Event *start, *end;
    VGPU_TRY(event_of(start_handle, start));
    VGPU_TRY(event_of(end_handle, end));
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (start->context != end->context || (start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    return start->context->call<Call::cuEventElapsedTime>(milliseconds, start->id, end->id);
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuEventCreate(CUevent* phEvent, unsigned int Flags) {
    Context* context;
    VGPU_TRY(current(context));
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!phEvent || Flags & ~known || (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS)
        return CUDA_ERROR_NOT_SUPPORTED; // see CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED
    auto made = client().events.make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made.object = {.context = context, .id = context->session().new_id(), .flags = Flags};
    if (CUresult status = context->call<Call::cuEventCreate>(made.object->id, Flags);
        status != CUDA_SUCCESS) {
        client().events.recycle(made.handle);
        return status;
    }
    client().events.publish(made.handle);
    *phEvent = std::bit_cast<CUevent>(made.handle);
    return CUDA_SUCCESS;
}

VGPU_API cuEventDestroy(CUevent hEvent) {
    return destroy(hEvent);
}
VGPU_API cuEventDestroy_v2(CUevent hEvent) {
    return destroy(hEvent);
}

VGPU_API cuEventRecord(CUevent hEvent, CUstream hStream) {
    return record(hEvent, hStream, 0, NullStream::legacy);
}
VGPU_API cuEventRecord_ptsz(CUevent hEvent, CUstream hStream) {
    return record(hEvent, hStream, 0, NullStream::per_thread);
}
VGPU_API cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
    return record(hEvent, hStream, flags, NullStream::legacy);
}
VGPU_API cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags) {
    return record(hEvent, hStream, flags, NullStream::per_thread);
}

VGPU_API cuEventQuery(CUevent hEvent) {
    Event* event;
    VGPU_TRY(event_of(hEvent, event));
    return event->context->call<Call::cuEventQuery>(event->id);
}

VGPU_API cuEventSynchronize(CUevent hEvent) {
    Event* event;
    VGPU_TRY(event_of(hEvent, event));
    return event->context->call<Call::cuEventSynchronize>(event->id);
}

VGPU_API cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
    return elapsed(pMilliseconds, hStart, hEnd);
}
VGPU_API cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
    return elapsed(pMilliseconds, hStart, hEnd);
}
