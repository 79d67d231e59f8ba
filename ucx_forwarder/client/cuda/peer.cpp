// SPDX-License-Identifier: BSD-3-Clause
// Access from one vGPU to the memory of another: between GPUs of one node as their driver says, never across
// nodes.
#include "ucx_forwarder/client/cuda/client.h"

using namespace vgpu::client;

VGPU_API cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
    Device *device, *peer;
    VGPU_TRY(device_of(dev, device));
    VGPU_TRY(device_of(peerDev, peer));
    if (!canAccessPeer)
        return CUDA_ERROR_INVALID_VALUE;
    *canAccessPeer = 0;
    if (device == peer || device->node != peer->node)
        return CUDA_SUCCESS;
    return device->session().call<Call::cuDeviceCanAccessPeer>(no_context, canAccessPeer, device->index,
                                                               peer->index);
}

VGPU_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                 CUdevice dstDevice) {
    Device *from, *to;
    VGPU_TRY(device_of(srcDevice, from));
    VGPU_TRY(device_of(dstDevice, to));
    if (!value || from == to)
        return CUDA_ERROR_INVALID_VALUE;
    if (from->node != to->node) {
        *value = 0;
        return CUDA_SUCCESS;
    }
    return from->session().call<Call::cuDeviceGetP2PAttribute>(no_context, value, attrib, from->index,
                                                               to->index);
}

VGPU_API cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags) {
    Context *context, *peer;
    VGPU_TRY(current(context));
    VGPU_TRY(context_of(peerContext, peer));
    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (context == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    if (context->device->node != peer->device->node)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    return context->call<Call::cuCtxEnablePeerAccess>(peer->id, Flags);
}

VGPU_API cuCtxDisablePeerAccess(CUcontext peerContext) {
    Context *context, *peer;
    VGPU_TRY(current(context));
    VGPU_TRY(context_of(peerContext, peer));
    if (context->device->node != peer->device->node)
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    return context->call<Call::cuCtxDisablePeerAccess>(peer->id);
}
