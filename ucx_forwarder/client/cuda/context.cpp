// SPDX-License-Identifier: BSD-3-Clause
// The contexts of this process: which is current, what they hold, and how they end.
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
        return handle && table.was_made(std::bit_cast<std::uint64_t>(handle)) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                              : CUDA_ERROR_INVALID_CONTEXT;
    return context->active ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult current(Context*& context) {
    VGPU_TRY(client().ready());
    return context_of(context_stack().top(), context);
}

CUresult device_of(CUdevice ordinal, Device*& device) {
    VGPU_TRY(client().ready());
    device = client().device(ordinal);
    return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult retain_primary(Device& device, Context*& context) {
    auto& table = client().contexts;
    std::lock_guard lock(device.mutex);
    if (!device.primary) {
        auto made = table.make();
        if (!made.object)
            return CUDA_ERROR_OUT_OF_MEMORY;
        device.primary = std::bit_cast<CUcontext>(made.handle);
        *made.object = Context{.device = &device,
                               .handle = device.primary,
                               .primary = true,
                               .api_version = CUDA_VERSION,
                               .id = new_object_id()};
        table.publish(made.handle);
    }
    context = table.find(device.primary);
    if (!context->active) {
        context->wire = device.node->session->new_id();
        VGPU_TRY(device.node->session->call<Call::cuDevicePrimaryCtxRetain>(protocol::null_id, context->wire,
                                                                            device.index));
        context->flags = device.primary_flags;
        context->active = true;
    }
    ++device.retains;
    return CUDA_SUCCESS;
}

CUresult release_primary(Device& device) {
    std::lock_guard lock(device.mutex);
    Context* context = client().contexts.find(device.primary);
    if (!context || !context->active || device.retains == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--device.retains > 0)
        return CUDA_SUCCESS;
    context->active = false;
    forget_context(*context);
    return device.node->session->call<Call::cuDevicePrimaryCtxRelease_v2>(protocol::null_id, device.index);
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
    c.libraries.for_each([&](std::uint64_t, Library& library) {
        std::lock_guard lock(library.state->mutex);
        library.state->modules.erase(context.handle);
    });
    context.memory().take_context(context.handle);
    c.host_memory.for_context_end(context.handle);
}

namespace {

CUresult create(CUcontext* result, unsigned flags, CUdevice ordinal, unsigned api_version) {
    Device* device;
    VGPU_TRY(device_of(ordinal, device));
    if (!result || flags & ~unsigned(CU_CTX_FLAGS_MASK))
        return CUDA_ERROR_INVALID_VALUE;
    // CU_CTX_MAP_HOST is accepted and says nothing: see CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY.
    if ((flags & CU_CTX_SCHED_MASK) > CU_CTX_SCHED_BLOCKING_SYNC ||
        std::popcount(flags & unsigned(CU_CTX_SCHED_MASK)) > 1)
        return CUDA_ERROR_INVALID_VALUE;
    auto& table = client().contexts;
    auto made = table.make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    WireId wire = device->node->session->new_id();
    CUresult status = device->node->session->call<Call::cuCtxCreate_v2>(protocol::null_id, wire, flags, device->index);
    auto handle = std::bit_cast<CUcontext>(made.handle);
    if (status == CUDA_SUCCESS && !context_stack().push(handle)) {
        (void)device->node->session->call<Call::cuCtxDestroy_v2>(protocol::null_id, wire);
        status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (status != CUDA_SUCCESS) {
        table.discard(made.handle);
        return status;
    }
    *made.object = Context{.device = device,
                           .wire = wire,
                           .handle = handle,
                           .active = true,
                           .flags = flags,
                           .api_version = api_version,
                           .id = new_object_id()};
    table.publish(made.handle);
    *result = handle;
    return CUDA_SUCCESS;
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuCtxCreate(CUcontext* pctx, unsigned int flags, CUdevice dev) { return create(pctx, flags, dev, 2000); }

VGPU_API cuCtxCreate_v2(CUcontext* pctx, unsigned int flags, CUdevice dev) {
    return create(pctx, flags, dev, 3020);
}

VGPU_API cuCtxCreate_v3(CUcontext* pctx, CUexecAffinityParam* params, int count, unsigned int flags, CUdevice dev) {
    VGPU_TRY(client().ready());
    if (count < 0 || (count > 0) != (params != nullptr))
        return CUDA_ERROR_INVALID_VALUE;
    if (count > 0)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(pctx, flags, dev, 11040);
}

VGPU_API cuCtxCreate_v4(CUcontext* pctx, CUctxCreateParams* params, unsigned int flags, CUdevice dev) {
    VGPU_TRY(client().ready());
    if (params && (params->numExecAffinityParams > 0 || params->execAffinityParams))
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (params && params->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(pctx, flags, dev, 12050);
}

static CUresult destroy(CUcontext ctx) {
    VGPU_TRY(client().ready());
    Context* context;
    VGPU_TRY(context_of(ctx, context));
    if (context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!client().contexts.remove(std::bit_cast<std::uint64_t>(ctx)))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context->active = false;
    forget_context(*context);
    ContextStack& stack = context_stack();
    if (stack.top() == ctx)
        --stack.depth;
    return context->session().call<Call::cuCtxDestroy_v2>(vgpu::protocol::null_id, context->wire);
}

VGPU_API cuCtxDestroy(CUcontext ctx) { return destroy(ctx); }
VGPU_API cuCtxDestroy_v2(CUcontext ctx) { return destroy(ctx); }

static CUresult push(CUcontext ctx) {
    VGPU_TRY(client().ready());
    Context* context;
    VGPU_TRY(context_of(ctx, context));
    return context_stack().push(ctx) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_API cuCtxPushCurrent(CUcontext ctx) { return push(ctx); }
VGPU_API cuCtxPushCurrent_v2(CUcontext ctx) { return push(ctx); }

static CUresult pop(CUcontext* result) {
    VGPU_TRY(client().ready());
    ContextStack& stack = context_stack();
    if (stack.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUcontext top = stack.at[--stack.depth];
    if (result)
        *result = top;
    return CUDA_SUCCESS;
}

VGPU_API cuCtxPopCurrent(CUcontext* pctx) { return pop(pctx); }
VGPU_API cuCtxPopCurrent_v2(CUcontext* pctx) { return pop(pctx); }

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

VGPU_API cuCtxGetDevice(CUdevice* device) {
    Context* context;
    VGPU_TRY(current(context));
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

VGPU_API cuCtxGetDevice_v2(CUdevice* device, CUcontext ctx) {
    if (!ctx)
        return cuCtxGetDevice(device);
    VGPU_TRY(client().ready());
    Context* context;
    VGPU_TRY(context_of(ctx, context));
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = context->device->ordinal;
    return CUDA_SUCCESS;
}

VGPU_API cuDevicePrimaryCtxRetain(CUcontext* pctx, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    Context* context;
    VGPU_TRY(retain_primary(*device, context));
    *pctx = context->handle;
    return CUDA_SUCCESS;
}

static CUresult release(CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    return release_primary(*device);
}

VGPU_API cuDevicePrimaryCtxRelease(CUdevice dev) { return release(dev); }
VGPU_API cuDevicePrimaryCtxRelease_v2(CUdevice dev) { return release(dev); }

static CUresult set_primary_flags(CUdevice dev, unsigned flags) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (flags & ~unsigned(CU_CTX_FLAGS_MASK))
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(device->mutex);
    VGPU_TRY(device->node->session->call<Call::cuDevicePrimaryCtxSetFlags_v2>(vgpu::protocol::null_id, device->index,
                                                                              flags));
    device->primary_flags = flags;
    if (Context* context = client().contexts.find(device->primary))
        context->flags = flags;
    return CUDA_SUCCESS;
}

VGPU_API cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) { return set_primary_flags(dev, flags); }
VGPU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) { return set_primary_flags(dev, flags); }

VGPU_API cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int* flags, int* active) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!flags || !active)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(device->mutex);
    Context* context = client().contexts.find(device->primary);
    *flags = device->primary_flags;
    *active = context && context->active;
    return CUDA_SUCCESS;
}

// Ends all that is in the context. It stays retained, as often as it was, and begins anew when it is retained again.
static CUresult reset_primary(CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    std::lock_guard lock(device->mutex);
    Context* context = client().contexts.find(device->primary);
    if (context && context->active) {
        context->active = false;
        device->retains = 0;
        forget_context(*context);
    }
    return device->node->session->call<Call::cuDevicePrimaryCtxReset_v2>(vgpu::protocol::null_id, device->index);
}

VGPU_API cuDevicePrimaryCtxReset(CUdevice dev) { return reset_primary(dev); }
VGPU_API cuDevicePrimaryCtxReset_v2(CUdevice dev) { return reset_primary(dev); }
