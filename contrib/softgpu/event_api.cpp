// SPDX-License-Identifier: BSD-3-Clause
// cuEvent*.
#include "contrib/softgpu/call.h"

#include <chrono>

using namespace softgpu;

namespace {

std::shared_ptr<Event> find(CUevent handle) {
    auto event = Driver::get().events.find(handle);
    require(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return event;
}

std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

CUresult record(CUstream null_stream, CUevent handle, CUstream stream_handle, unsigned flags) {
    return context_call([&](Context& context) {
        require((flags & ~1U) == 0);
        const auto event = find(handle);
        const auto stream = context.stream(stream_handle, null_stream);
        require(&event->context() == &stream->context(), CUDA_ERROR_INVALID_HANDLE);
        auto record = std::make_shared<Event::Record>();
        record->moment = stream->context().submit(*stream, [record] {
            record->nanoseconds = now();
            return CUDA_SUCCESS;
        });
        event->set_record(std::move(record));
    });
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
    return call([&] {
        require(milliseconds != nullptr);
        const auto first = find(start);
        const auto last = find(end);
        require(first->timed() && last->timed() && &first->context() == &last->context(),
                CUDA_ERROR_INVALID_HANDLE);
        const auto from = first->record();
        const auto to = last->record();
        require(from != nullptr && to != nullptr, CUDA_ERROR_INVALID_HANDLE);
        if (!from->moment.reached() || !to->moment.reached())
            return CUDA_ERROR_NOT_READY;
        *milliseconds = static_cast<float>(static_cast<double>(to->nanoseconds - from->nanoseconds) / 1e6);
        return first->context().error();
    });
}

CUresult destroy(CUevent handle) {
    return call([&] { require(Driver::get().events.remove(handle) != nullptr, CUDA_ERROR_INVALID_HANDLE); });
}

} // namespace

SOFTGPU_API CUresult cuEventCreate(CUevent* handle, unsigned int flags) {
    return context_call([&](Context& context) {
        constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
        require(handle != nullptr && (flags & ~known) == 0);
        require((flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_NOT_SUPPORTED);
        *handle =
            Driver::get().events.add<CUevent>(std::make_shared<Event>(context.shared_from_this(), flags));
    });
}

SOFTGPU_API CUresult cuEventDestroy(CUevent event) {
    return destroy(event);
}
SOFTGPU_API CUresult cuEventDestroy_v2(CUevent event) {
    return destroy(event);
}

SOFTGPU_API CUresult cuEventQuery(CUevent handle) {
    return call([&] {
        const auto event = find(handle);
        const auto record = event->record();
        if (record != nullptr && !record->moment.reached())
            return CUDA_ERROR_NOT_READY;
        return event->context().error();
    });
}

SOFTGPU_API CUresult cuEventSynchronize(CUevent handle) {
    return call([&] {
        const auto event = find(handle);
        if (const auto record = event->record())
            record->moment.wait();
        return event->context().error();
    });
}

SOFTGPU_API CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(milliseconds, start, end);
}
#if CUDA_VERSION >= 12080
SOFTGPU_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
    return elapsed(milliseconds, start, end);
}
#endif

SOFTGPU_API CUresult cuEventRecord(CUevent event, CUstream stream) {
    return record(CU_STREAM_LEGACY, event, stream, 0);
}
SOFTGPU_API CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
    return record(CU_STREAM_PER_THREAD, event, stream, 0);
}
SOFTGPU_API_PTSZ(cuEventRecordWithFlags, (CUevent event, CUstream stream, unsigned int flags), record, event,
                 stream, flags)
