// SPDX-License-Identifier: BSD-3-Clause
// Pools for stream-ordered allocation.
#include "ucx_forwarder/client/cuda/client.h"

#include <bit>
#include <cstring>

namespace vgpu::client {
namespace {

CUresult pool_of(CUmemoryPool handle, MemoryPool*& pool) {
    VGPU_TRY(client().ready());
    pool = client().pools.find(handle);
    return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult make_pool(Device& device, CUmemoryPool* result, const CUmemPoolProps* properties) {
    auto made = client().pools.make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    MemoryPool& pool = *made.object;
    pool.device = &device;
    pool.id = device.session().new_id();
    pool.is_default = !properties;
    CUresult status;
    if (properties) {
        CUmemPoolProps remote = *properties;
        remote.location.id = device.index;
        status = device.session().call<Call::cuMemPoolCreate>(no_context, pool.id, &remote);
    } else {
        status = device.session().call<Call::cuDeviceGetDefaultMemPool>(no_context, pool.id, device.index);
    }
    if (status != CUDA_SUCCESS) {
        client().pools.recycle(made.handle);
        return status;
    }
    client().pools.publish(made.handle);
    *result = std::bit_cast<CUmemoryPool>(made.handle);
    return CUDA_SUCCESS;
}

/// With device.mutex held.
CUresult default_pool(Device& device, CUmemoryPool* result) {
    if (!device.default_pool)
        VGPU_TRY(make_pool(device, &device.default_pool, nullptr));
    *result = device.default_pool;
    return CUDA_SUCCESS;
}

bool is_boolean(CUmemPool_attribute attribute) {
    return attribute == CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
           attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC ||
           attribute == CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device->attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        return CUDA_ERROR_NOT_SUPPORTED;
    std::lock_guard lock(device->mutex);
    return default_pool(*device, pool_out);
}

VGPU_API cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device->attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        return CUDA_ERROR_NOT_SUPPORTED;
    std::lock_guard lock(device->mutex);
    if (!device->current_pool)
        VGPU_TRY(default_pool(*device, &device->current_pool));
    *pool = device->current_pool;
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    MemoryPool* found;
    VGPU_TRY(pool_of(pool, found));
    if (found->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    std::lock_guard lock(device->mutex);
    VGPU_TRY(device->session().call<Call::cuDeviceSetMemPool>(no_context, device->index, found->id));
    device->current_pool = pool;
    return CUDA_SUCCESS;
}

VGPU_API cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
    VGPU_TRY(client().ready());
    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    Device* device;
    VGPU_TRY(device_of(poolProps->location.id, device));
    return make_pool(*device, pool, poolProps);
}

VGPU_API cuMemPoolDestroy(CUmemoryPool pool) {
    MemoryPool* found;
    VGPU_TRY(pool_of(pool, found));
    if (found->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    {
        std::lock_guard lock(found->device->mutex);
        if (found->device->current_pool == pool)
            found->device->current_pool = nullptr;
    }
    VGPU_TRY(found->device->session().call<Call::cuMemPoolDestroy>(no_context, found->id));
    client().pools.remove(pool);
    return CUDA_SUCCESS;
}

VGPU_API cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    MemoryPool* found;
    VGPU_TRY(pool_of(pool, found));
    return found->device->session().call<Call::cuMemPoolTrimTo>(no_context, found->id, minBytesToKeep);
}

VGPU_API cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
    MemoryPool* found;
    VGPU_TRY(pool_of(pool, found));
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t wide = 0;
    if (is_boolean(attr))
        wide = std::uint64_t(*static_cast<const int*>(value) != 0);
    else
        std::memcpy(&wide, value, sizeof wide);
    return found->device->session().call<Call::cuMemPoolSetAttribute>(no_context, found->id, attr, wide);
}

VGPU_API cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
    MemoryPool* found;
    VGPU_TRY(pool_of(pool, found));
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    std::uint64_t wide = 0;
    VGPU_TRY(found->device->session().call<Call::cuMemPoolGetAttribute>(no_context, found->id, attr, &wide));
    if (is_boolean(attr))
        *static_cast<int*>(value) = int(wide != 0);
    else
        std::memcpy(value, &wide, sizeof wide);
    return CUDA_SUCCESS;
}

// A pool's memory is accessible from its own device, and from no other here.
VGPU_API cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
    MemoryPool* found;
    VGPU_TRY(pool_of(pool, found));
    if (!map && count)
        return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
        Device* device;
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        VGPU_TRY(device_of(map[i].location.id, device));
        bool own = device == found->device;
        if (own && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE;
        if (!own && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
            return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

VGPU_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location) {
    MemoryPool* found;
    VGPU_TRY(pool_of(memPool, found));
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    Device* device;
    VGPU_TRY(device_of(location->id, device));
    *flags = device == found->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
