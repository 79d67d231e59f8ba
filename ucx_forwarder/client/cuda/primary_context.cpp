// SPDX-License-Identifier: BSD-3-Clause
// The primary context of each device. Its handle stays the same for the life of the process: threads keep it
// current while others release, reset and retain it.
#include "ucx_forwarder/client/cuda/client.h"

#include <bit>

namespace vgpu::client {
namespace {

Context* primary_of(Device& device) {
    return client().contexts.find(device.primary);
}

/// With device.mutex held: what is in the context ends, the handle stays.
void deactivate(Context& context) {
    context.active = false;
    forget_context(context);
}

} // namespace

CUresult retain_primary(Device& device, Context*& context) {
    std::lock_guard lock(device.mutex);
    if (!device.primary) {
        auto made = client().contexts.make();
        if (!made.object)
            return CUDA_ERROR_OUT_OF_MEMORY;
        device.primary = std::bit_cast<CUcontext>(made.handle);
        made.object->device = &device;
        made.object->id = device.session().new_id();
        made.object->handle = device.primary;
        made.object->primary = true;
        made.object->api_version = CUDA_VERSION;
        made.object->number = new_number();
        client().contexts.publish(made.handle);
    }
    context = primary_of(device);
    if (!context->active) {
        VGPU_TRY(
            device.session().call<Call::cuDevicePrimaryCtxRetain>(no_context, context->id, device.index));
        context->flags = device.primary_flags;
        ++context->life;
        context->active = true;
    }
    ++device.retains;
    return CUDA_SUCCESS;
}

CUresult release_primary(Device& device) {
    std::lock_guard lock(device.mutex);
    Context* context = primary_of(device);
    if (!context || !context->active || device.retains == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--device.retains > 0)
        return CUDA_SUCCESS;
    deactivate(*context);
    return device.session().call<Call::cuDevicePrimaryCtxRelease_v2>(no_context, device.index);
}

namespace {

CUresult release(CUdevice ordinal) {
    Device* device;
    VGPU_TRY(device_of(ordinal, device));
    return release_primary(*device);
}

CUresult set_flags(CUdevice ordinal, unsigned flags) {
    Device* device;
    VGPU_TRY(device_of(ordinal, device));
    if (!valid_context_flags(flags))
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(device->mutex);
    VGPU_TRY(device->session().call<Call::cuDevicePrimaryCtxSetFlags_v2>(no_context, device->index, flags));
    device->primary_flags = flags;
    if (Context* context = primary_of(*device))
        context->flags = flags;
    return CUDA_SUCCESS;
}

// Ends all that is in the context, whoever retains it.
CUresult reset(CUdevice ordinal) {
    Device* device;
    VGPU_TRY(device_of(ordinal, device));
    std::lock_guard lock(device->mutex);
    if (Context* context = primary_of(*device); context && context->active) {
        device->retains = 0;
        deactivate(*context);
    }
    return device->session().call<Call::cuDevicePrimaryCtxReset_v2>(no_context, device->index);
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

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

VGPU_API cuDevicePrimaryCtxRelease(CUdevice dev) {
    return release(dev);
}
VGPU_API cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
    return release(dev);
}
VGPU_API cuDevicePrimaryCtxReset(CUdevice dev) {
    return reset(dev);
}
VGPU_API cuDevicePrimaryCtxReset_v2(CUdevice dev) {
    return reset(dev);
}
VGPU_API cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags) {
    return set_flags(dev, flags);
}
VGPU_API cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags) {
    return set_flags(dev, flags);
}

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
