// SPDX-License-Identifier: BSD-3-Clause
// Memory pools and cuMemPool*, cuMemAllocAsync, cuMemFreeAsync.
#include "contrib/softgpu/memory_pool.h"

#include "contrib/softgpu/call.h"

#include <algorithm>

namespace softgpu {

void MemoryPool::took(std::uint64_t bytes) {
    const std::lock_guard guard(mutex_);
    used_ += bytes;
    most_used_ = std::max(most_used_, used_);
}

void MemoryPool::gave(std::uint64_t bytes) {
    const std::lock_guard guard(mutex_);
    used_ -= bytes;
}

std::uint64_t MemoryPool::get(CUmemPool_attribute attribute) const {
    const std::lock_guard guard(mutex_);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: {
        const auto found = settings_.find(attribute);
        return found != settings_.end() ? found->second : 1;
    }
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: {
        const auto found = settings_.find(attribute);
        return found != settings_.end() ? found->second : 0;
    }
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return used_;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return most_used_;
    default:
        throw Error(CUDA_ERROR_INVALID_VALUE);
    }
}

void MemoryPool::set(CUmemPool_attribute attribute, std::uint64_t value) {
    const std::lock_guard guard(mutex_);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        settings_[attribute] = value;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        require(value == 0);
        most_used_ = used_;
        break;
    default:
        throw Error(CUDA_ERROR_INVALID_VALUE);
    }
}

void add_default_pool(Device& device) {
    device.default_pool = std::make_shared<MemoryPool>(device);
    device.set_current_pool(device.default_pool);
    Driver::get().pools.add<CUmemoryPool>(device.default_pool);
}

namespace {

std::shared_ptr<MemoryPool> find(CUmemoryPool handle) {
    auto pool = Driver::get().pools.find(handle);
    require(pool != nullptr, CUDA_ERROR_INVALID_VALUE);
    return pool;
}

CUresult allocate(CUstream null_stream, CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool handle,
                  CUstream stream) {
    return context_call([&](Context& context) {
        require(pointer != nullptr);
        auto& target = context.stream(stream, null_stream)->context();
        const auto pool = handle != nullptr ? find(handle) : target.device().current_pool();
        Allocation wanted;
        wanted.size = bytes;
        wanted.device = pool->device().index();
        wanted.context = target.id();
        wanted.pool = pool->handle();
        // The address is free at once, hence also later in the stream's order.
        *pointer = Driver::get().memory().allocate(wanted);
        pool->took(page_ceil(bytes));
    });
}

CUresult allocate_from_current(CUstream null_stream, CUdeviceptr* pointer, std::size_t bytes,
                               CUstream stream) {
    return allocate(null_stream, pointer, bytes, nullptr, stream);
}

CUresult release(CUstream null_stream, CUdeviceptr pointer, CUstream handle) {
    return context_call([&](Context& context) {
        const auto stream = context.stream(handle, null_stream);
        const auto found = Driver::get().memory().find(pointer);
        require(found.has_value() && found->base == pointer && found->kind == MemoryKind::device);
        stream->context().submit(*stream, [allocation = *found] {
            const auto removed = Driver::get().memory().remove(
                allocation.base, [&](const Allocation& other) { return other.id == allocation.id; });
            if (removed && allocation.pool != nullptr)
                if (const auto pool = Driver::get().pools.find(allocation.pool))
                    pool->gave(page_ceil(allocation.size));
            return CUDA_SUCCESS;
        });
    });
}

// The attribute's value is an int for the first three, else 64 bits.
bool is_int(CUmemPool_attribute attribute) {
    return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

} // namespace
} // namespace softgpu

using namespace softgpu;

SOFTGPU_API_PTSZ(cuMemAllocAsync, (CUdeviceptr * pointer, std::size_t bytes, CUstream stream),
                 allocate_from_current, pointer, bytes, stream)
SOFTGPU_API_PTSZ(cuMemAllocFromPoolAsync,
                 (CUdeviceptr * pointer, std::size_t bytes, CUmemoryPool pool, CUstream stream), allocate,
                 pointer, bytes, pool, stream)
SOFTGPU_API_PTSZ(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream), release, pointer, stream)

SOFTGPU_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    return call([&] {
        require(pool != nullptr);
        *pool = Driver::get().device(device).default_pool->handle();
    });
}

SOFTGPU_API CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    return call([&] {
        require(pool != nullptr);
        *pool = Driver::get().device(device).current_pool()->handle();
    });
}

SOFTGPU_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    return call([&] { Driver::get().device(device).set_current_pool(find(pool)); });
}

SOFTGPU_API CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    return call([&] {
        require(pool != nullptr && properties != nullptr);
        require(properties->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
        require(properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                    properties->handleTypes == CU_MEM_HANDLE_TYPE_NONE,
                CUDA_ERROR_NOT_SUPPORTED);
        *pool = Driver::get().pools.add<CUmemoryPool>(
            std::make_shared<MemoryPool>(Driver::get().device(properties->location.id)));
    });
}

SOFTGPU_API CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    return call([&] {
        const auto pool = find(handle);
        auto& device = pool->device();
        require(pool != device.default_pool, CUDA_ERROR_NOT_PERMITTED);
        if (device.current_pool() == pool)
            device.set_current_pool(device.default_pool);
        Driver::get().pools.remove(handle);
    });
}

SOFTGPU_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t) {
    return call([&] { (void)find(pool); });
}

SOFTGPU_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return call([&] {
        require(value != nullptr);
        const auto found = find(pool)->get(attribute);
        if (is_int(attribute))
            *static_cast<int*>(value) = static_cast<int>(found);
        else
            *static_cast<cuuint64_t*>(value) = found;
    });
}

SOFTGPU_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
    return call([&] {
        require(value != nullptr);
        find(pool)->set(attribute, is_int(attribute) ? static_cast<std::uint64_t>(*static_cast<int*>(value))
                                                     : *static_cast<cuuint64_t*>(value));
    });
}

// Every device reaches all memory.
SOFTGPU_API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access, std::size_t count) {
    return call([&] {
        (void)find(pool);
        require(access != nullptr || count == 0);
        for (std::size_t i = 0; i < count; ++i)
            require(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    });
}

SOFTGPU_API CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool,
                                        CUmemLocation* location) {
    return call([&] {
        (void)find(pool);
        require(flags != nullptr && location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE);
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    });
}
