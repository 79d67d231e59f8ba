// SPDX-License-Identifier: BSD-3-Clause
// Contexts, and waiting for streams, events and contexts.
#include "ucx_forwarder/worker/executor.h"

namespace vgpu::worker {

void Executor::forget_context(std::uint64_t context) {
    ledger_.forget_context(context);
    tables_.erase_context(context);
    (void)take_deferred({context});
    forget_current();
}

void Executor::forget_primary(int vgpu) {
    std::vector<std::uint64_t> gone;
    for (const auto& [id, context] : tables_.contexts) {
        if (context.primary && context.vgpu == vgpu) {
            gone.push_back(id);
        }
    }
    for (const std::uint64_t id : gone) {
        forget_context(id);
        tables_.contexts.erase(id);
    }
}

template <>
CUresult
Executor::special<Call::cuDevicePrimaryCtxRetain>(const Record&,
                                                  Arguments<Call::cuDevicePrimaryCtxRetain>& arguments) {
    auto& [context, device] = arguments;
    const auto known = tables_.contexts.find(context.id.value);
    if (known != tables_.contexts.end() && !(known->second.primary && known->second.vgpu == device.index)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const CUresult status = driver_->cuDevicePrimaryCtxRetain(&context.value, device.value);
    if (status == CUDA_SUCCESS) {
        tables_.contexts[context.id.value] = {context.value, device.index, true};
        ++retains_[static_cast<std::size_t>(device.index)];
        forget_current(); // after a reset the handle may be a new one
    }
    return status;
}

template <>
CUresult Executor::special<Call::cuDevicePrimaryCtxRelease_v2>(
    const Record&, Arguments<Call::cuDevicePrimaryCtxRelease_v2>& arguments) {
    auto& [device] = arguments;
    int& retains = retains_[static_cast<std::size_t>(device.index)];
    if (retains == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const CUresult status = driver_->cuDevicePrimaryCtxRelease_v2(device.value);
    if (status == CUDA_SUCCESS && --retains == 0) {
        forget_primary(device.index);
    }
    return status;
}

template <>
CUresult
Executor::special<Call::cuDevicePrimaryCtxReset_v2>(const Record&,
                                                    Arguments<Call::cuDevicePrimaryCtxReset_v2>& arguments) {
    auto& [device] = arguments;
    const CUresult status = driver_->cuDevicePrimaryCtxReset_v2(device.value);
    if (status == CUDA_SUCCESS) {
        // The references stay, as the driver counts them; all that the context held is gone.
        for (const auto& [id, context] : tables_.contexts) {
            if (context.primary && context.vgpu == device.index) {
                forget_context(id);
            }
        }
    }
    return status;
}

template <>
CUresult Executor::special<Call::cuCtxCreate_v2>(const Record&, Arguments<Call::cuCtxCreate_v2>& arguments) {
    auto& [context, flags, device] = arguments;
    if (tables_.contexts.contains(context.id.value)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const CUresult status = call_driver<Call::cuCtxCreate_v2>(arguments);
    if (status == CUDA_SUCCESS) {
        // The driver pushed it on this thread's stack; here records say which context is current.
        CUcontext pushed = nullptr;
        (void)driver_->cuCtxPopCurrent_v2(&pushed);
        forget_current();
        tables_.contexts[context.id.value] = {context.value, device.index, false};
    }
    return status;
}

template <>
CUresult Executor::special<Call::cuCtxDestroy_v2>(const Record&,
                                                  Arguments<Call::cuCtxDestroy_v2>& arguments) {
    auto& [context] = arguments;
    const CUresult status = driver_->cuCtxDestroy_v2(context.value);
    if (status == CUDA_SUCCESS) {
        forget_context(context.id.value);
    }
    return status;
}

template <>
CUresult Executor::special<Call::cuCtxSynchronize>(const Record& record, Arguments<Call::cuCtxSynchronize>&) {
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    constexpr std::size_t few_streams = 16;
    const auto ready = [this, &record] {
        CUresult status = driver_->cuStreamQuery(nullptr);
        tables_.for_each_stream(record.caller.context.value, [&](CUstream stream) {
            if (status == CUDA_SUCCESS) {
                status = driver_->cuStreamQuery(stream);
            }
        });
        return status;
    };
    if (tables_.streams() <= few_streams && soon(ready)) {
        reply_synchronised(record.caller, driver_->cuCtxSynchronize());
        return replies_later;
    }
    return wait_elsewhere(record, [this] { return driver_->cuCtxSynchronize(); });
}

template <>
CUresult Executor::special<Call::cuStreamSynchronize>(const Record& record,
                                                      Arguments<Call::cuStreamSynchronize>& arguments) {
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const CUstream stream = std::get<0>(arguments).value;
    const auto synchronise = [this, stream] { return driver_->cuStreamSynchronize(stream); };
    if (soon([this, stream] { return driver_->cuStreamQuery(stream); })) {
        reply_synchronised(record.caller, synchronise());
        return replies_later;
    }
    return wait_elsewhere(record, synchronise);
}

template <>
CUresult Executor::special<Call::cuEventSynchronize>(const Record& record,
                                                     Arguments<Call::cuEventSynchronize>& arguments) {
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const CUevent event = std::get<0>(arguments).value;
    const auto synchronise = [this, event] { return driver_->cuEventSynchronize(event); };
    if (soon([this, event] { return driver_->cuEventQuery(event); })) {
        reply_synchronised(record.caller, synchronise());
        return replies_later;
    }
    return wait_elsewhere(record, synchronise);
}

template <>
CUresult Executor::special<Call::cuStreamQuery>(const Record&, Arguments<Call::cuStreamQuery>& arguments) {
    const CUresult status = driver_->cuStreamQuery(std::get<0>(arguments).value);
    if (status == CUDA_SUCCESS) {
        send_output();
    }
    return status;
}

template <>
CUresult Executor::special<Call::cuEventQuery>(const Record&, Arguments<Call::cuEventQuery>& arguments) {
    const CUresult status = driver_->cuEventQuery(std::get<0>(arguments).value);
    if (status == CUDA_SUCCESS) {
        send_output();
    }
    return status;
}

template <>
CUresult
Executor::special<Call::cuStreamBeginCapture_v2>(const Record&,
                                                 Arguments<Call::cuStreamBeginCapture_v2>& arguments) {
    // The stricter modes forbid calls of other threads, or of the capturing one; here all threads of the
    // client are one.
    std::get<1>(arguments).value = CU_STREAM_CAPTURE_MODE_RELAXED;
    captures_ = true;
    return call_driver<Call::cuStreamBeginCapture_v2>(arguments);
}

bool Executor::kept_by_capture(CUstream stream) const {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return captures_ && driver_->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

} // namespace vgpu::worker
