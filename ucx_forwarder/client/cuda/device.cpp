// SPDX-License-Identifier: BSD-3-Clause
// Device queries, all from what the sessions told when they opened.
#include "ucx_forwarder/client/cuda/client.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

namespace vgpu::client {
namespace {

/// What a GPU can do that a program on another machine cannot make use of, or that this library does not
/// offer.
std::optional<int> local_attribute(CUdevice_attribute which) {
    // As a number: older headers have not all of them in the enumeration.
    switch (static_cast<int>(which)) {
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
    case CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS:
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK:
    case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH:
    case CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD:
        return 0;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: // cuMemcpy finds out what a pointer is
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:      // not a memory node of this machine
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID: // nor near one
        return -1;
    default:
        return {};
    }
}

struct PciAddress {
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    bool operator==(const PciAddress&) const = default;
};

/// [domain:]bus:device[.function], in hexadecimal.
std::optional<PciAddress> parse_pci(const char* text) {
    PciAddress a;
    if (std::sscanf(text, "%x:%x:%x.%x", &a.domain, &a.bus, &a.device, &a.function) >= 3)
        return a;
    a = {};
    if (std::sscanf(text, "%x:%x.%x", &a.bus, &a.device, &a.function) >= 2)
        return a;
    return {};
}

/// Copies with a final zero, shortened to what there is room for.
void put_text(const std::string& text, char* to, int room) {
    std::size_t length = std::min(text.size(), std::size_t(room - 1));
    std::memcpy(to, text.data(), length);
    to[length] = 0;
}

CUresult get_uuid(CUuuid* uuid, CUdevice ordinal) {
    Device* device;
    VGPU_TRY(device_of(ordinal, device));
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    *uuid = device->snapshot->uuid;
    return CUDA_SUCCESS;
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuDeviceGet(CUdevice* device, int ordinal) {
    VGPU_TRY(client().ready());
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    Device* found;
    VGPU_TRY(device_of(ordinal, found));
    *device = ordinal;
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetCount(int* count) {
    VGPU_TRY(client().ready());
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = int(client().devices().size());
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetName(char* name, int len, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!name || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    put_text(device->snapshot->name, name, len);
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
    return get_uuid(uuid, dev);
}
VGPU_API cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
    return get_uuid(uuid, dev);
}

VGPU_API cuDeviceGetLuid(char* luid, unsigned int* deviceNodeMask, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!luid || !deviceNodeMask)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED; // a Windows notion
}

VGPU_API cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = device->snapshot->total_memory;
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    int value;
    VGPU_TRY(device->snapshot->attribute(attrib, value));
    *pi = local_attribute(attrib).value_or(value);
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!major || !minor)
        return CUDA_ERROR_INVALID_VALUE;
    *major = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor = device->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetProperties(CUdevprop* prop, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = {
        .maxThreadsPerBlock = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .maxThreadsDim = {device->attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
                          device->attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                          device->attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
        .maxGridSize = {device->attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
                        device->attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                        device->attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
        .sharedMemPerBlock = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = device->attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = device->attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .memPitch = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        .regsPerBlock = device->attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        .clockRate = device->attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .textureAlign = device->attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    };
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!pciBusId || len <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    put_text(device->snapshot->pci_bus_id, pciBusId, len);
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
    VGPU_TRY(client().ready());
    if (!dev || !pciBusId)
        return CUDA_ERROR_INVALID_VALUE;
    auto wanted = parse_pci(pciBusId);
    if (!wanted)
        return CUDA_ERROR_INVALID_VALUE;
    // Several vGPUs may lie on one GPU: the first is meant then.
    for (const Device& device : client().devices())
        if (parse_pci(device.snapshot->pci_bus_id.c_str()) == wanted) {
            *dev = device.ordinal;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

VGPU_API cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType type, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!pi || unsigned(type) >= CU_EXEC_AFFINITY_TYPE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;
    return CUDA_SUCCESS;
}

VGPU_API cuDeviceGetTexture1DLinearMaxWidth(size_t* maxWidthInElements, CUarray_format format,
                                            unsigned numChannels, CUdevice dev) {
    Device* device;
    VGPU_TRY(device_of(dev, device));
    if (!maxWidthInElements || (numChannels != 1 && numChannels != 2 && numChannels != 4) || int(format) <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    *maxWidthInElements = std::size_t(device->attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
    return CUDA_SUCCESS;
}
