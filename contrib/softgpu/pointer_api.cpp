// SPDX-License-Identifier: BSD-3-Clause
// What is known of a pointer, and hints about managed memory: cuPointer*, cuMemAdvise, cuMemPrefetch*,
// cuMemRange*.
#include "contrib/softgpu/call.h"

#include <algorithm>
#include <cstring>

using namespace softgpu;

namespace {

template <class Value>
void put(void* data, Value value) {
    std::memcpy(data, &value, sizeof value);
}

CUcontext context_of(const Allocation& allocation) {
    auto& driver = Driver::get();
    const auto& primary = driver.device(allocation.device).primary();
    if (primary->id() == allocation.context)
        return primary->handle();
    for (const auto& context : driver.contexts.all())
        if (context->id() == allocation.context)
            return context->handle();
    return nullptr;
}

// False if memory of this kind has no such attribute.
bool get_attribute(void* data, CUpointer_attribute attribute, std::uint64_t address,
                   const Allocation& allocation) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        put(data, context_of(allocation));
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put(data, static_cast<unsigned>(allocation.on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put(data, static_cast<CUdeviceptr>(address));
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!allocation.on_host() && allocation.kind != MemoryKind::managed)
            return false;
        put(data, reinterpret_cast<void*>(address));
        return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        put(data, 0U);
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        put(data, static_cast<unsigned long long>(allocation.id));
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        put(data, static_cast<unsigned char>(allocation.kind == MemoryKind::managed));
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put(data, allocation.device);
        return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        put(data, static_cast<unsigned char>(0));
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        put(data, static_cast<CUdeviceptr>(allocation.base));
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        put(data, static_cast<std::size_t>(allocation.size));
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put(data, static_cast<unsigned char>(1));
        return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put(data, std::uint64_t{0});
        return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put(data, static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
        return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put(data, allocation.pool);
        return true;
    default:
        throw Error(CUDA_ERROR_INVALID_VALUE);
    }
}

// What cuPointerGetAttributes says of a pointer that is not known.
void get_default(void* data, CUpointer_attribute attribute) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put(data, 0U);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put(data, static_cast<int>(CU_DEVICE_INVALID));
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put(data, static_cast<unsigned char>(0));
        break;
    default:
        put(data, std::uint64_t{0});
    }
}

void require_managed(std::uint64_t address, std::size_t bytes) {
    const auto found = Driver::get().memory().find(address);
    require(bytes != 0 && found.has_value() && found->kind == MemoryKind::managed &&
            address + bytes > address && address + bytes <= page_ceil(found->end()));
}

// Advice is taken and forgotten: the memory is everywhere.
void get_range_attribute(void* data, std::size_t size, CUmem_range_attribute attribute) {
    require(data != nullptr && size != 0 && size % sizeof(int) == 0);
    require(attribute >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY &&
            attribute <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
    require(size == sizeof(int) || attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY);
    const int value =
        attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ? 0 : static_cast<int>(CU_DEVICE_INVALID);
    std::fill_n(static_cast<int*>(data), size / sizeof(int), value);
}

CUresult prefetch(CUstream null_stream, CUdeviceptr pointer, std::size_t bytes, CUstream stream) {
    return context_call([&](Context& context) {
        (void)context.stream(stream, null_stream);
        require_managed(pointer, bytes); // it is everywhere already
    });
}

} // namespace

SOFTGPU_API CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
    return call([&] {
        require(data != nullptr);
        const auto found = Driver::get().memory().find(pointer);
        require(found.has_value() && get_attribute(data, attribute, pointer, *found));
    });
}

SOFTGPU_API CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                            CUdeviceptr pointer) {
    return call([&] {
        require(count != 0 && attributes != nullptr && data != nullptr);
        const auto found = Driver::get().memory().find(pointer);
        for (unsigned i = 0; i < count; ++i)
            if (!found.has_value() || !get_attribute(data[i], attributes[i], pointer, *found))
                get_default(data[i], attributes[i]);
    });
}

SOFTGPU_API CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                           CUdeviceptr pointer) {
    return call([&] {
        // Copies that involve device memory are synchronous as it is.
        require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
        require(Driver::get().memory().find(pointer).has_value());
    });
}

SOFTGPU_API CUresult cuMemPrefetchAsync(CUdeviceptr pointer, std::size_t bytes, CUdevice, CUstream stream) {
    return prefetch(CU_STREAM_LEGACY, pointer, bytes, stream);
}
SOFTGPU_API CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, std::size_t bytes, CUdevice,
                                             CUstream stream) {
    return prefetch(CU_STREAM_PER_THREAD, pointer, bytes, stream);
}
SOFTGPU_API CUresult cuMemRangeGetAttribute(void* data, std::size_t size, CUmem_range_attribute attribute,
                                            CUdeviceptr pointer, std::size_t bytes) {
    return call([&] {
        require_managed(pointer, bytes);
        get_range_attribute(data, size, attribute);
    });
}
SOFTGPU_API CUresult cuMemRangeGetAttributes(void** data, std::size_t* sizes,
                                             CUmem_range_attribute* attributes, std::size_t count,
                                             CUdeviceptr pointer, std::size_t bytes) {
    return call([&] {
        require(data != nullptr && sizes != nullptr && attributes != nullptr && count != 0);
        require_managed(pointer, bytes);
        for (std::size_t i = 0; i < count; ++i)
            get_range_attribute(data[i], sizes[i], attributes[i]);
    });
}
SOFTGPU_API CUresult cuMemAdvise(CUdeviceptr pointer, std::size_t bytes, CUmem_advise, CUdevice) {
    return call([&] { require_managed(pointer, bytes); });
}
#if CUDA_VERSION >= 12020
SOFTGPU_API CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, std::size_t bytes, CUmemLocation,
                                           unsigned int, CUstream stream) {
    return prefetch(CU_STREAM_LEGACY, pointer, bytes, stream);
}
SOFTGPU_API CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, std::size_t bytes, CUmemLocation,
                                                unsigned int, CUstream stream) {
    return prefetch(CU_STREAM_PER_THREAD, pointer, bytes, stream);
}
SOFTGPU_API CUresult cuMemAdvise_v2(CUdeviceptr pointer, std::size_t bytes, CUmem_advise, CUmemLocation) {
    return call([&] { require_managed(pointer, bytes); });
}
#endif
