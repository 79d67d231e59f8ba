// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/host_function.h"

#include "ucx_forwarder/client/cuda/client.h"

namespace vgpu::client {
namespace {

std::atomic<int> pending{0};

CUresult launch(CUstream handle, CUhostFn function, void* data, NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    ++pending;
    CUresult result = context->session().host_function(context->id, stream, [function, data] {
        inside_host_function = true;
        function(data);
        inside_host_function = false;
        --pending;
    });
    if (result != CUDA_SUCCESS)
        --pending;
    return result;
}

// The older form: it also tells the status of the stream, which it shows even after an error.
CUresult add_callback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags,
                      NullStream null) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    if (!callback || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    ++pending;
    Session& session = context->session();
    CUresult result = session.host_function(context->id, stream, [=, &session, id = context->id] {
        inside_host_function = true;
        callback(handle, session.sticky(id), data);
        inside_host_function = false;
        --pending;
    });
    if (result != CUDA_SUCCESS)
        --pending;
    return result;
}

} // namespace

bool host_functions_pending() {
    return pending.load(std::memory_order_acquire) > 0;
}

} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
    return launch(hStream, fn, userData, NullStream::legacy);
}
VGPU_API cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void* userData) {
    return launch(hStream, fn, userData, NullStream::per_thread);
}
VGPU_API cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
    return add_callback(hStream, callback, userData, flags, NullStream::legacy);
}
VGPU_API cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void* userData,
                                  unsigned int flags) {
    return add_callback(hStream, callback, userData, flags, NullStream::per_thread);
}
