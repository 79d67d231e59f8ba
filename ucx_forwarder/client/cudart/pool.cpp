// SPDX-License-Identifier: BSD-3-Clause
// Stream-ordered allocation: cudaMemPool_t is the driver's handle.
#include <cstring>
#include <vector>

#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

CUmemLocation to_driver(const cudaMemLocation& location) noexcept {
    CUmemLocation out{};
    out.type = static_cast<CUmemLocationType>(location.type);
    out.id = location.id;
    return out;
}

} // namespace
} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT_BOTH(_ptsz, cudaMallocAsync, (void** pointer, size_t bytes, cudaStream_t stream), {
    if (!pointer)
        return record(cudaErrorInvalidValue);
    *pointer = nullptr;
    return in_context([&](const Driver& d) {
        if (bytes == 0)
            return CUDA_SUCCESS;
        return d.cuMemAllocAsync(reinterpret_cast<CUdeviceptr*>(pointer), bytes, on(stream));
    });
})

VGPU_EXPORT_BOTH(_ptsz, cudaMallocFromPoolAsync,
                 (void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), {
                     if (!pointer)
                         return record(cudaErrorInvalidValue);
                     *pointer = nullptr;
                     return in_context([&](const Driver& d) {
                         if (bytes == 0)
                             return CUDA_SUCCESS;
                         return d.cuMemAllocFromPoolAsync(reinterpret_cast<CUdeviceptr*>(pointer), bytes,
                                                          pool, on(stream));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaFreeAsync, (void* pointer, cudaStream_t stream), {
    return in_context([&](const Driver& d) {
        return pointer ? d.cuMemFreeAsync(device_pointer(pointer), on(stream)) : CUDA_SUCCESS;
    });
})

VGPU_EXPORT cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    if (!pool)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuDeviceGetDefaultMemPool(pool, device); });
}

VGPU_EXPORT cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    if (!pool)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuDeviceGetMemPool(pool, device); });
}

VGPU_EXPORT cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
    return in_context([&](const Driver& d) { return d.cuDeviceSetMemPool(device, pool); });
}

VGPU_EXPORT cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    if (!pool || !properties)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUmemPoolProps wanted{};
        wanted.allocType = static_cast<CUmemAllocationType>(properties->allocType);
        wanted.handleTypes = static_cast<CUmemAllocationHandleType>(properties->handleTypes);
        wanted.location = to_driver(properties->location);
        wanted.win32SecurityAttributes = properties->win32SecurityAttributes;
#if CUDART_VERSION >= 12000
        wanted.maxSize = properties->maxSize;
        wanted.usage = properties->usage;
#endif
        return d.cuMemPoolCreate(pool, &wanted);
    });
}

VGPU_EXPORT cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return in_context([&](const Driver& d) { return d.cuMemPoolDestroy(pool); });
}

VGPU_EXPORT cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    return in_context([&](const Driver& d) { return d.cuMemPoolTrimTo(pool, bytes); });
}

VGPU_EXPORT cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (!value)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return d.cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
    });
}

VGPU_EXPORT cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    if (!value)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return d.cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(attribute), value);
    });
}

VGPU_EXPORT cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                             cudaMemLocation* location) {
    if (!flags || !location)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUmemAccess_flags found = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        CUmemLocation place = to_driver(*location);
        const CUresult result = d.cuMemPoolGetAccess(&found, pool, &place);
        *flags = static_cast<cudaMemAccessFlags>(found);
        return result;
    });
}

VGPU_EXPORT cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* list,
                                             size_t count) {
    if (count > 0 && !list)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        std::vector<CUmemAccessDesc> wanted(count);
        for (size_t i = 0; i < count; ++i) {
            wanted[i].location = to_driver(list[i].location);
            wanted[i].flags = static_cast<CUmemAccess_flags>(list[i].flags);
        }
        return d.cuMemPoolSetAccess(pool, wanted.data(), count);
    });
}
