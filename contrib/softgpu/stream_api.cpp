// SPDX-License-Identifier: BSD-3-Clause
// cuStream*.
#include "contrib/softgpu/call.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

using namespace softgpu;

namespace {

constexpr int greatest_priority = -5;

// A stream of whatever context; stream 0 is the current context's.
template <class F>
CUresult stream_call(CUstream null_stream, CUstream handle, F f) {
    return context_call([&](Context& context) -> CUresult {
        auto stream = context.stream(handle, null_stream);
        if (const auto error = stream->context().error(); error != CUDA_SUCCESS)
            return error;
        return result_of(f, *stream);
    });
}

CUresult create(CUstream* handle, unsigned flags, int priority) {
    return context_call([&](Context& context) {
        require(handle != nullptr && (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) == 0);
        *handle = context.create_stream(flags, std::clamp(priority, greatest_priority, 0));
    });
}

CUresult destroy(CUstream handle) {
    return call([&] {
        const auto stream = Driver::get().streams.find(handle);
        require(stream != nullptr, CUDA_ERROR_INVALID_HANDLE);
        stream->context().destroy_stream(handle);
    });
}

CUresult synchronize(CUstream null_stream, CUstream handle) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        stream.last().wait();
        return stream.context().error();
    });
}

CUresult query(CUstream null_stream, CUstream handle) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        if (!stream.last().reached())
            return CUDA_ERROR_NOT_READY;
        return stream.context().error();
    });
}

CUresult wait_event(CUstream null_stream, CUstream handle, CUevent event, unsigned flags) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require((flags & ~1U) == 0);
        const auto found = Driver::get().events.find(event);
        require(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
        if (const auto record = found->record(); record != nullptr && !record->moment.reached())
            stream.context().submit(stream, [] { return CUDA_SUCCESS; }, {record->moment});
    });
}

CUresult add_callback(CUstream null_stream, CUstream handle, CUstreamCallback callback, void* data,
                      unsigned flags) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(callback != nullptr && flags == 0);
        const auto named = handle != nullptr ? handle : null_stream;
        stream.context().submit(stream, [=, &context = stream.context()] {
            in_callback() = true;
            callback(named, context.error(), data);
            in_callback() = false;
            return CUDA_SUCCESS;
        });
    });
}

CUresult launch_host(CUstream null_stream, CUstream handle, CUhostFn function, void* data) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(function != nullptr);
        stream.context().submit(stream, [=] {
            in_callback() = true;
            function(data);
            in_callback() = false;
            return CUDA_SUCCESS;
        });
    });
}

CUresult get_priority(CUstream null_stream, CUstream handle, int* priority) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(priority != nullptr);
        *priority = stream.priority();
    });
}

CUresult get_flags(CUstream null_stream, CUstream handle, unsigned* flags) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(flags != nullptr);
        *flags = stream.flags();
    });
}

CUresult get_id(CUstream null_stream, CUstream handle, unsigned long long* id) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(id != nullptr);
        *id = stream.id();
    });
}

CUresult get_context(CUstream null_stream, CUstream handle, CUcontext* context) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(context != nullptr);
        *context = stream.context().handle();
    });
}

CUresult get_device(CUstream null_stream, CUstream handle, CUdevice* device) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(device != nullptr);
        *device = stream.context().device().index();
    });
}

// Nothing is ever captured: there are no graphs.
CUresult is_capturing(CUstream null_stream, CUstream handle, CUstreamCaptureStatus* status) {
    return stream_call(null_stream, handle, [&](Stream&) {
        require(status != nullptr);
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
    });
}

CUresult capture_info(CUstream null_stream, CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id) {
    return stream_call(null_stream, handle, [&](Stream&) {
        require(status != nullptr);
        *status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (id != nullptr)
            *id = 0;
    });
}

// Managed memory is reachable from everywhere at all times.
CUresult attach(CUstream null_stream, CUstream handle, CUdeviceptr pointer, std::size_t, unsigned) {
    return stream_call(null_stream, handle, [&](Stream&) {
        const auto found = Driver::get().memory().find(pointer);
        require(found.has_value() && found->kind == MemoryKind::managed);
    });
}

// Runs a small access to device memory in the stream's order.
template <class F>
CUresult memory_operation(CUstream null_stream, CUstream handle, CUdeviceptr address, std::size_t size, F f) {
    return stream_call(null_stream, handle, [&](Stream& stream) {
        require(address % size == 0 && Driver::get().memory().contains(address, size));
        stream.context().submit(stream, f);
    });
}

template <class Word>
CUresult write_value(CUstream null_stream, CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
    if ((flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_operation(null_stream, handle, address, sizeof value, [=] {
        __atomic_store_n(reinterpret_cast<Word*>(address), value, __ATOMIC_SEQ_CST);
        return CUDA_SUCCESS;
    });
}

template <class Word>
bool holds(Word stored, Word value, unsigned comparison) {
    switch (comparison) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return static_cast<std::make_signed_t<Word>>(stored - value) >= 0; // cyclic
    case CU_STREAM_WAIT_VALUE_EQ:
        return stored == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (stored & value) != 0;
    default:
        return static_cast<Word>(~(stored | value)) != 0;
    }
}

template <class Word>
CUresult wait_value(CUstream null_stream, CUstream handle, CUdeviceptr address, Word value, unsigned flags) {
    if (flags > CU_STREAM_WAIT_VALUE_NOR)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_operation(null_stream, handle, address, sizeof value, [=] {
        // Whoever writes it tells nobody.
        while (!holds(__atomic_load_n(reinterpret_cast<Word*>(address), __ATOMIC_SEQ_CST), value, flags))
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        return CUDA_SUCCESS;
    });
}

} // namespace

SOFTGPU_API CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
    return create(stream, flags, 0);
}
SOFTGPU_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
    return create(stream, flags, priority);
}
SOFTGPU_API CUresult cuStreamDestroy(CUstream stream) {
    return destroy(stream);
}
SOFTGPU_API CUresult cuStreamDestroy_v2(CUstream stream) {
    return destroy(stream);
}

SOFTGPU_API_PTSZ(cuStreamSynchronize, (CUstream stream), synchronize, stream)
SOFTGPU_API_PTSZ(cuStreamQuery, (CUstream stream), query, stream)
SOFTGPU_API_PTSZ(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags), wait_event, stream,
                 event, flags)
SOFTGPU_API_PTSZ(cuStreamAddCallback,
                 (CUstream stream, CUstreamCallback callback, void* data, unsigned int flags), add_callback,
                 stream, callback, data, flags)
SOFTGPU_API_PTSZ(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void* data), launch_host, stream,
                 function, data)
SOFTGPU_API_PTSZ(cuStreamGetPriority, (CUstream stream, int* priority), get_priority, stream, priority)
SOFTGPU_API_PTSZ(cuStreamGetFlags, (CUstream stream, unsigned int* flags), get_flags, stream, flags)
SOFTGPU_API_PTSZ(cuStreamGetId, (CUstream stream, unsigned long long* id), get_id, stream, id)
SOFTGPU_API_PTSZ(cuStreamGetCtx, (CUstream stream, CUcontext* context), get_context, stream, context)
SOFTGPU_API_PTSZ(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status), is_capturing, stream,
                 status)
SOFTGPU_API_PTSZ(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id),
                 capture_info, stream, status, id)
SOFTGPU_API_PTSZ(cuStreamGetCaptureInfo_v2,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph*,
                  const CUgraphNode**, std::size_t*),
                 capture_info, stream, status, id)
#if CUDA_VERSION >= 12030
SOFTGPU_API_PTSZ(cuStreamGetCaptureInfo_v3,
                 (CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph*,
                  const CUgraphNode**, const CUgraphEdgeData**, std::size_t*),
                 capture_info, stream, status, id)
#endif
SOFTGPU_API_PTSZ(cuStreamAttachMemAsync,
                 (CUstream stream, CUdeviceptr pointer, std::size_t length, unsigned int flags), attach,
                 stream, pointer, length, flags)
SOFTGPU_API_PTSZ(cuStreamWriteValue32_v2,
                 (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags),
                 write_value<cuuint32_t>, stream, address, value, flags)
SOFTGPU_API_PTSZ(cuStreamWriteValue64_v2,
                 (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags),
                 write_value<cuuint64_t>, stream, address, value, flags)
SOFTGPU_API_PTSZ(cuStreamWaitValue32_v2,
                 (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags),
                 wait_value<cuuint32_t>, stream, address, value, flags)
SOFTGPU_API_PTSZ(cuStreamWaitValue64_v2,
                 (CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags),
                 wait_value<cuuint64_t>, stream, address, value, flags)
SOFTGPU_API_PTSZ(cuStreamGetDevice, (CUstream stream, CUdevice* device), get_device, stream, device)

SOFTGPU_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return call([&] {
        static thread_local auto current = CU_STREAM_CAPTURE_MODE_GLOBAL;
        require(mode != nullptr && *mode >= CU_STREAM_CAPTURE_MODE_GLOBAL &&
                *mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
        std::swap(*mode, current);
    });
}
