// SPDX-License-Identifier: BSD-3-Clause
// The contexts of this process: how they begin and end, and which is current for a thread.
#include "ucx_forwarder/client/cuda/client.h"
#include "ucx_forwarder/client/cuda/context_stack.h"

#include <bit>

namespace vgpu::client {

ContextStack& context_stack() {
    thread_local constinit ContextStack stack;
    return stack;
}

CUresult context_of(CUcontext handle, Context*& context) {
    auto& table = client().contexts;
    context = table.find(handle);
    if (!context)
        return table.was_made(std::bit_cast<std::uint64_t>(handle)) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                    : CUDA_ERROR_INVALID_CONTEXT;
    return context->active ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult current(Context*& context) {
    VGPU_TRY(client().ready());
    CUcontext top = context_stack().top();
    return top ? context_of(top, context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult device_of(CUdevice ordinal, Device*& device) {
    VGPU_TRY(client().ready());
    device = client().device(ordinal);
    return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool valid_context_flags(unsigned flags) {
    return (flags & ~unsigned(CU_CTX_FLAGS_MASK)) == 0 &&
           std::popcount(flags & unsigned(CU_CTX_SCHED_MASK)) <= 1;
}

void forget_context(Context& context) {
    Client& c = client();
    auto drop = [&](auto& table) {
        table.for_each([&](std::uint64_t handle, auto& object) {
            if (object.context == &context)
                table.remove(handle);
        });
    };
    drop(c.streams);
    drop(c.events);
    drop(c.functions);
    drop(c.modules);
    drop(c.arrays);
    c.libraries.for_each([&](std::uint64_t, Library& library) {
        std::lock_guard lock(library.state->mutex);
        library.state->modules.erase(context.handle);
    });
    context.memory().take_context(context.handle);
    free_host_memory(context.handle);
    context.session().forget_context(context.id);
}

namespace {

CUresult create(CUcontext* result, unsigned flags, CUdevice ordinal, unsigned api_version) {
    VGPU_TRY(client().ready());
    if (!result || !valid_context_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    Device* device;
    VGPU_TRY(device_of(ordinal, device));
    auto& stack = context_stack();
    if (stack.depth == ContextStack::max_depth)
        return CUDA_ERROR_OUT_OF_MEMORY;
    auto made = client().contexts.make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    WireId id = device->session().new_id();
    if (CUresult status = device->session().call<Call::cuCtxCreate_v2>(no_context, id, flags, device->index);
        status != CUDA_SUCCESS) {
        client().contexts.recycle(made.handle);
        return status;
    }
    Context& context = *made.object;
    context.device = device;
    context.id = id;
    context.handle = std::bit_cast<CUcontext>(made.handle);
    context.active = true;
    context.flags = flags;
    context.api_version = api_version;
    context.number = new_number();
    client().contexts.publish(made.handle);
    (void)stack.push(context.handle);
    *result = context.handle;
    return CUDA_SUCCESS;
}

CUresult destroy(CUcontext handle) {
    VGPU_TRY(client().ready());
    Context* context;
    VGPU_TRY(context_of(handle, context));
    if (context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    auto& table = client().contexts;
    if (!table.close(std::bit_cast<std::uint64_t>(handle)))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context->active = false;
    ContextStack& stack = context_stack();
    if (stack.top() == handle)
        --stack.depth;
    CUresult status = context->session().call<Call::cuCtxDestroy_v2>(no_context, context->id);
    forget_context(*context);
    table.recycle(std::bit_cast<std::uint64_t>(handle));
    return status;
}

CUresult push(CUcontext handle) {
    VGPU_TRY(client().ready());
    Context* context;
    VGPU_TRY(context_of(handle, context));
    return context_stack().push(handle) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult pop(CUcontext* result) {
    VGPU_TRY(client().ready());
    ContextStack& stack = context_stack();
    if (stack.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext top = stack.at[--stack.depth];
    if (result)
        *result = top;
    return CUDA_SUCCESS;
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, 2000);
}

VGPU_API cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, 3020);
}

VGPU_API cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* params, int count, unsigned int flags,
                        CUdevice dev) {
    VGPU_TRY(client().ready());
    if (count < 0 || (count > 0) != (params != nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    if (count > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(pctx, flags, dev, 3020);
}

VGPU_API cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* params, unsigned int flags, CUdevice dev) {
    VGPU_TRY(client().ready());
    if (params && (params->numExecAffinityParams > 0 || params->execAffinityParams))
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (params && params->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(pctx, flags, dev, 3020);
}

VGPU_API cuCtxDestroy(CUcontext ctx) {
    return destroy(ctx);
}
VGPU_API cuCtxDestroy_v2(CUcontext ctx) {
    return destroy(ctx);
}
VGPU_API cuCtxPushCurrent(CUcontext ctx) {
    return push(ctx);
}
VGPU_API cuCtxPushCurrent_v2(CUcontext ctx) {
    return push(ctx);
}
VGPU_API cuCtxPopCurrent(CUcontext* pctx) {
    return pop(pctx);
}
VGPU_API cuCtxPopCurrent_v2(CUcontext* pctx) {
    return pop(pctx);
}

VGPU_API cuCtxSetCurrent(CUcontext ctx) {
    VGPU_TRY(client().ready());
    ContextStack& stack = context_stack();
    if (!ctx) {
        if (stack.depth)
            --stack.depth;
        return CUDA_SUCCESS;
    }
    Context* context;
    VGPU_TRY(context_of(ctx, context));
    if (stack.depth)
        stack.at[stack.depth - 1] = ctx;
    else
        (void)stack.push(ctx);
    return CUDA_SUCCESS;
}

VGPU_API cuCtxGetCurrent(CUcontext* pctx) {
    VGPU_TRY(client().ready());
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = context_stack().top();
    return CUDA_SUCCESS;
}

// Reference counts on contexts: deprecated since CUDA 4, and no more than a way to name the current context.
VGPU_API cuCtxAttach(CUcontext* pctx, unsigned int flags) {
    Context* context;
    VGPU_TRY(current(context));
    if (!pctx || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = context->handle;
    return CUDA_SUCCESS;
}

VGPU_API cuCtxDetach(CUcontext ctx) {
    VGPU_TRY(client().ready());
    Context* context;
    return context_of(ctx, context);
}
