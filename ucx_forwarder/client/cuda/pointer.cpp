// SPDX-License-Identifier: BSD-3-Clause
// What a pointer is: answered from the ranges that this process allocated and registered.
#include "ucx_forwarder/client/cuda/client.h"

#include <cstring>

namespace vgpu::client {
namespace {

template <class T>
void put(void* to, T value) {
    std::memcpy(to, &value, sizeof value);
}

/// Without a range: nobody's memory, of which cuPointerGetAttributes says so and cuPointerGetAttribute fails.
CUresult get(void* data, CUpointer_attribute attribute, std::uint64_t pointer,
             const std::optional<Range>& range) {
    switch (static_cast<int>(attribute)) { // not all are in the enumeration of older headers
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        put<CUcontext>(data, range ? range->context : nullptr);
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put<unsigned>(data, !range ? 0 : range->on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        put<CUdeviceptr>(data, range && !range->on_host() ? pointer : 0);
        return range && range->on_host() ? CUDA_ERROR_INVALID_VALUE
                                         : CUDA_SUCCESS; // not mapped to any device
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        put<std::uint64_t>(data, range && range->on_host() ? pointer : 0);
        return range && !range->on_host() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        put<unsigned>(data, range && range->sync_memops);
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        put<unsigned long long>(data, range ? range->id : 0);
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        // These are bool, though the documentation says boolean and programs pass int: the first byte is
        // common to both.
        put<bool>(data, false);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        put<int>(data, range ? range->device : CU_DEVICE_INVALID);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        put<std::uint64_t>(data, range ? range->base : 0);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        put<std::size_t>(data, range ? range->size : 0);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        put<bool>(data, range && !range->on_host());
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        put<unsigned long long>(data, 0);
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        put<unsigned>(data, range ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                  : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        put<CUmemoryPool>(data, range ? range->pool : nullptr);
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
    VGPU_TRY(client().ready());
    if (!data)
        return CUDA_ERROR_INVALID_VALUE;
    auto range = find_range(ptr);
    return range ? get(data, attribute, ptr, range) : CUDA_ERROR_INVALID_VALUE;
}

VGPU_API cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                CUdeviceptr ptr) {
    VGPU_TRY(client().ready());
    if (numAttributes == 0 || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    auto range = find_range(ptr);
    for (unsigned i = 0; i < numAttributes; ++i) {
        if (!data[i])
            return CUDA_ERROR_INVALID_VALUE;
        // An attribute that this memory does not have is given as zero, and is no error here. A host pointer
        // that is nobody's is given back as what it is.
        if (!range && attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER &&
            !client().reservation.covers(ptr)) {
            put<std::uint64_t>(data[i], ptr);
            continue;
        }
        CUresult result = get(data[i], attributes[i], ptr, range);
        if (result == CUDA_ERROR_NOT_SUPPORTED || unsigned(attributes[i]) - 1 > 20)
            return result;
    }
    return CUDA_SUCCESS;
}

VGPU_API cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
    VGPU_TRY(client().ready());
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return CUDA_ERROR_INVALID_VALUE;
    // Synchronous copies are synchronous here whatever this says, so it is remembered and no more.
    bool on = *static_cast<const unsigned*>(value) != 0;
    for (Node& node : client().nodes())
        if (node.memory.set_sync_memops(ptr, on))
            return CUDA_SUCCESS;
    return CUDA_ERROR_INVALID_VALUE;
}
