// SPDX-License-Identifier: BSD-3-Clause
// Allocation: device, pinned and managed memory, and what a pointer is.
#include <atomic>
#include <cstdio>
#include <cstring>

#include "ucx_forwarder/client/cudart/runtime.h"

using namespace vgpu::cudart;

namespace {

void explain_managed_once() {
    static std::atomic<bool> said{false};
    if (!said.exchange(true))
        std::fprintf(stderr, "libcudart: cudaMallocManaged: this driver has no managed memory; use "
                             "cudaMalloc and cudaMemcpy\n");
}

} // namespace

VGPU_EXPORT cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    if (!pointer)
        return record(cudaErrorInvalidValue);
    *pointer = nullptr;
    return in_context([&](const Driver& d) {
        if (bytes == 0)
            return CUDA_SUCCESS;
        return d.cuMemAlloc(reinterpret_cast<CUdeviceptr*>(pointer), bytes);
    });
}

VGPU_EXPORT cudaError_t cudaFree(void* pointer) {
    // cudaFree(0) is the usual way to make the context early.
    return in_context(
        [&](const Driver& d) { return pointer ? d.cuMemFree(device_pointer(pointer)) : CUDA_SUCCESS; });
}

VGPU_EXPORT cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
    if (!pointer || !pitch)
        return record(cudaErrorInvalidValue);
    *pointer = nullptr;
    return in_context([&](const Driver& d) {
        if (width == 0 || height == 0) {
            *pitch = 0;
            return CUDA_SUCCESS;
        }
        return d.cuMemAllocPitch(reinterpret_cast<CUdeviceptr*>(pointer), pitch, width, height, 4);
    });
}

VGPU_EXPORT cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
    if (!pitched)
        return record(cudaErrorInvalidValue);
    const cudaError_t error =
        cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, extent.height * extent.depth);
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return error;
}

VGPU_EXPORT cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
    if (!pointer)
        return record(cudaErrorInvalidValue);
    *pointer = nullptr;
    return in_context([&](const Driver& d) {
        // cudaHostAllocPortable, Mapped and WriteCombined are the driver's bits.
        return bytes == 0 ? CUDA_SUCCESS : d.cuMemHostAlloc(pointer, bytes, flags);
    });
}

VGPU_EXPORT cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

VGPU_EXPORT cudaError_t cudaFreeHost(void* pointer) {
    return in_context([&](const Driver& d) { return pointer ? d.cuMemFreeHost(pointer) : CUDA_SUCCESS; });
}

VGPU_EXPORT cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
    return in_context([&](const Driver& d) { return d.cuMemHostRegister(pointer, bytes, flags); });
}

VGPU_EXPORT cudaError_t cudaHostUnregister(void* pointer) {
    return in_context([&](const Driver& d) { return d.cuMemHostUnregister(pointer); });
}

VGPU_EXPORT cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
    if (!device)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return d.cuMemHostGetDevicePointer(reinterpret_cast<CUdeviceptr*>(device), host, flags);
    });
}

VGPU_EXPORT cudaError_t cudaHostGetFlags(unsigned int* flags, void* host) {
    if (!flags)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuMemHostGetFlags(flags, host); });
}

VGPU_EXPORT cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
    if (!pointer || bytes == 0)
        return record(cudaErrorInvalidValue);
    *pointer = nullptr;
    const cudaError_t error = in_context([&](const Driver& d) {
        return d.cuMemAllocManaged(reinterpret_cast<CUdeviceptr*>(pointer), bytes, flags);
    });
    if (error == cudaErrorNotSupported)
        explain_managed_once();
    return error;
}

VGPU_EXPORT cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    size_t free_now = 0;
    size_t total = 0;
    return in_context([&](const Driver& d) {
        const CUresult result = d.cuMemGetInfo(&free_now, &total);
        if (free_bytes)
            *free_bytes = free_now;
        if (total_bytes)
            *total_bytes = total;
        return result;
    });
}

VGPU_EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    if (!attributes)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        unsigned type = 0;
        unsigned managed = 0;
        int device = cudaInvalidDeviceId;
        void* host = nullptr;
        CUdeviceptr on_device = 0;
        CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                       CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                       CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
        void* values[] = {&type, &managed, &device, &host, &on_device};
        const CUresult result = d.cuPointerGetAttributes(5, asked, values, device_pointer(pointer));
        // A pointer that the driver never saw is no error.
        if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
            return result;
        std::memset(attributes, 0, sizeof *attributes);
        if (result == CUDA_ERROR_INVALID_VALUE || type == 0) {
            attributes->type = cudaMemoryTypeUnregistered;
            attributes->device = cudaInvalidDeviceId;
            attributes->hostPointer = const_cast<void*>(pointer);
            return CUDA_SUCCESS;
        }
        attributes->type = managed                      ? cudaMemoryTypeManaged
                           : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                        : cudaMemoryTypeDevice;
        attributes->device = device;
        attributes->devicePointer = reinterpret_cast<void*>(on_device);
        attributes->hostPointer = host;
        return CUDA_SUCCESS;
    });
}

VGPU_EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
    if (!handle)
        return record(cudaErrorInvalidValue);
    static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
    return in_context([&](const Driver& d) {
        return d.cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), device_pointer(pointer));
    });
}

VGPU_EXPORT cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
    if (!pointer)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUipcMemHandle driver_handle;
        std::memcpy(&driver_handle, &handle, sizeof driver_handle);
        return d.cuIpcOpenMemHandle(reinterpret_cast<CUdeviceptr*>(pointer), driver_handle, flags);
    });
}

VGPU_EXPORT cudaError_t cudaIpcCloseMemHandle(void* pointer) {
    return in_context([&](const Driver& d) { return d.cuIpcCloseMemHandle(device_pointer(pointer)); });
}

#if CUDART_VERSION >= 12000
VGPU_EXPORT cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                                      cudaMemLocation location) {
    return in_context([&](const Driver& d) {
        CUmemLocation place{};
        place.type = static_cast<CUmemLocationType>(location.type);
        place.id = location.id;
        return d.cuMemAdvise(device_pointer(pointer), bytes, static_cast<CUmem_advise>(advice), place);
    });
}

VGPU_EXPORT_BOTH(
    _ptsz, cudaMemPrefetchAsync,
    (const void* pointer, size_t bytes, cudaMemLocation location, unsigned int flags, cudaStream_t stream), {
        return in_context([&](const Driver& d) {
            CUmemLocation place{};
            place.type = static_cast<CUmemLocationType>(location.type);
            place.id = location.id;
            return d.cuMemPrefetchAsync(device_pointer(pointer), bytes, place, flags, on(stream));
        });
    })
#endif // else in older_runtime.cpp

VGPU_EXPORT cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute,
                                                 const void* pointer, size_t bytes) {
    return in_context([&](const Driver& d) {
        return d.cuMemRangeGetAttribute(data, size, static_cast<CUmem_range_attribute>(attribute),
                                        device_pointer(pointer), bytes);
    });
}

VGPU_EXPORT cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes,
                                                  cudaMemRangeAttribute* attributes, size_t count,
                                                  const void* pointer, size_t bytes) {
    return in_context([&](const Driver& d) {
        return d.cuMemRangeGetAttributes(data, sizes, reinterpret_cast<CUmem_range_attribute*>(attributes),
                                         count, device_pointer(pointer), bytes);
    });
}
