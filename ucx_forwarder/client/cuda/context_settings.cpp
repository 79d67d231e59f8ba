// SPDX-License-Identifier: BSD-3-Clause
// What can be asked of a context and set in it.
#include "ucx_forwarder/client/cuda/client.h"
#include "ucx_forwarder/client/cuda/context_stack.h"

namespace vgpu::client {
namespace {

/// The current context, or the given one.
CUresult this_or_current(CUcontext handle, Context*& context) {
    if (!handle)
        return current(context);
    VGPU_TRY(client().ready());
    return context_of(handle, context);
}

CUresult get_device(CUdevice* device, CUcontext handle) {
    Context* context;
    VGPU_TRY(this_or_current(handle, context));
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult synchronize(CUcontext handle) {
    Context* context;
    VGPU_TRY(this_or_current(handle, context));
    return context->call<Call::cuCtxSynchronize>();
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuCtxGetDevice(CUdevice* device) {
    return get_device(device, nullptr);
}
VGPU_API cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
    return get_device(device, ctx);
}
VGPU_API cuCtxSynchronize(void) {
    return synchronize(nullptr);
}
VGPU_API cuCtxSynchronize_v2(CUcontext ctx) {
    return synchronize(ctx);
}

VGPU_API cuCtxGetFlags(unsigned int* flags) {
    Context* context;
    VGPU_TRY(current(context));
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = context->flags;
    return CUDA_SUCCESS;
}

VGPU_API cuCtxSetFlags(unsigned int flags) {
    Context* context;
    VGPU_TRY(current(context));
    if (!valid_context_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    VGPU_TRY(context->call<Call::cuCtxSetFlags>(flags));
    context->flags = flags;
    return CUDA_SUCCESS;
}

VGPU_API cuCtxGetId(CUcontext ctx, unsigned long long* ctxId) {
    Context* context;
    VGPU_TRY(this_or_current(ctx, context));
    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    *ctxId = context->number;
    return CUDA_SUCCESS;
}

VGPU_API cuCtxGetApiVersion(CUcontext ctx, unsigned int* version) {
    Context* context;
    VGPU_TRY(this_or_current(ctx, context));
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = context->api_version;
    return CUDA_SUCCESS;
}

VGPU_API cuCtxSetLimit(CUlimit limit, size_t value) {
    Context* context;
    VGPU_TRY(current(context));
    if (unsigned(limit) >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    return context->call<Call::cuCtxSetLimit>(limit, value);
}

VGPU_API cuCtxGetLimit(size_t* pvalue, CUlimit limit) {
    Context* context;
    VGPU_TRY(current(context));
    if (!pvalue)
        return CUDA_ERROR_INVALID_VALUE;
    if (unsigned(limit) >= CU_LIMIT_MAX)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    return context->call<Call::cuCtxGetLimit>(pvalue, limit);
}

VGPU_API cuCtxGetCacheConfig(CUfunc_cache* pconfig) {
    Context* context;
    VGPU_TRY(current(context));
    return pconfig ? context->call<Call::cuCtxGetCacheConfig>(pconfig) : CUDA_ERROR_INVALID_VALUE;
}

VGPU_API cuCtxSetCacheConfig(CUfunc_cache config) {
    Context* context;
    VGPU_TRY(current(context));
    if (unsigned(config) > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    return context->call<Call::cuCtxSetCacheConfig>(config);
}

VGPU_API cuCtxGetSharedMemConfig(CUsharedconfig* pConfig) {
    Context* context;
    VGPU_TRY(current(context));
    return pConfig ? context->call<Call::cuCtxGetSharedMemConfig>(pConfig) : CUDA_ERROR_INVALID_VALUE;
}

VGPU_API cuCtxSetSharedMemConfig(CUsharedconfig config) {
    Context* context;
    VGPU_TRY(current(context));
    if (unsigned(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return context->call<Call::cuCtxSetSharedMemConfig>(config);
}

VGPU_API cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
    Context* context;
    VGPU_TRY(current(context));
    return context->call<Call::cuCtxGetStreamPriorityRange>(leastPriority, greatestPriority);
}

VGPU_API cuCtxResetPersistingL2Cache(void) {
    Context* context;
    VGPU_TRY(current(context));
    return context->call<Call::cuCtxResetPersistingL2Cache>();
}

VGPU_API cuCtxGetExecAffinity(CUexecAffinityParam* pExecAffinity, CUexecAffinityType type) {
    Context* context;
    VGPU_TRY(current(context));
    if (!pExecAffinity || unsigned(type) >= CU_EXEC_AFFINITY_TYPE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}
