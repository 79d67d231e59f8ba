// SPDX-License-Identifier: BSD-3-Clause
// Marks for profilers. None is attached on this side, so they have nothing to do.
#include "ucx_forwarder/client/cuda/client.h"

using namespace vgpu::client;

#pragma GCC visibility push(default)

VGPU_API cuProfilerStart(void) {
    Context* context;
    return current(context);
}

VGPU_API cuProfilerStop(void) {
    Context* context;
    return current(context);
}

#pragma GCC visibility pop

VGPU_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    VGPU_TRY(client().ready());
    if (!mode || unsigned(*mode) > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    thread_local CUstreamCaptureMode current_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::swap(*mode, current_mode);
    return CUDA_SUCCESS;
}
