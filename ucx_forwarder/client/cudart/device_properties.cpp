// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "ucx_forwarder/client/cudart/device.h"
#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

/// Where one attribute of the driver goes. Attributes a driver does not know are left 0.
struct Source {
    CUdevice_attribute attribute;
    std::size_t offset;
    bool wide; // a size_t, else an int
};

#define INTEGER(field, attribute)                                                                            \
    { CU_DEVICE_ATTRIBUTE_##attribute, offsetof(cudaDeviceProp, field), false }
#define SIZE(field, attribute)                                                                               \
    { CU_DEVICE_ATTRIBUTE_##attribute, offsetof(cudaDeviceProp, field), true }
constexpr Source kSources[] = {
    SIZE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    INTEGER(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    INTEGER(warpSize, WARP_SIZE),
    SIZE(memPitch, MAX_PITCH),
    INTEGER(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    INTEGER(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    INTEGER(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    INTEGER(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    INTEGER(maxGridSize[0], MAX_GRID_DIM_X),
    INTEGER(maxGridSize[1], MAX_GRID_DIM_Y),
    INTEGER(maxGridSize[2], MAX_GRID_DIM_Z),
    SIZE(totalConstMem, TOTAL_CONSTANT_MEMORY),
    INTEGER(major, COMPUTE_CAPABILITY_MAJOR),
    INTEGER(minor, COMPUTE_CAPABILITY_MINOR),
    SIZE(textureAlignment, TEXTURE_ALIGNMENT),
    SIZE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    INTEGER(multiProcessorCount, MULTIPROCESSOR_COUNT),
    INTEGER(integrated, INTEGRATED),
    INTEGER(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    INTEGER(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    INTEGER(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    INTEGER(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
    INTEGER(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
    INTEGER(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    INTEGER(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    INTEGER(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
    INTEGER(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
    INTEGER(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
    INTEGER(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    INTEGER(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    INTEGER(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
    INTEGER(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
    INTEGER(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
    INTEGER(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    INTEGER(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    INTEGER(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
    INTEGER(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    INTEGER(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    INTEGER(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    INTEGER(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    INTEGER(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    INTEGER(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
    INTEGER(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    INTEGER(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
    INTEGER(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
    INTEGER(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
    INTEGER(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
    INTEGER(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
    INTEGER(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
    INTEGER(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
    INTEGER(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    INTEGER(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    INTEGER(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    INTEGER(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    INTEGER(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    INTEGER(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
    INTEGER(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    INTEGER(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
    SIZE(surfaceAlignment, SURFACE_ALIGNMENT),
    INTEGER(concurrentKernels, CONCURRENT_KERNELS),
    INTEGER(ECCEnabled, ECC_ENABLED),
    INTEGER(pciBusID, PCI_BUS_ID),
    INTEGER(pciDeviceID, PCI_DEVICE_ID),
    INTEGER(pciDomainID, PCI_DOMAIN_ID),
    INTEGER(tccDriver, TCC_DRIVER),
    INTEGER(asyncEngineCount, ASYNC_ENGINE_COUNT),
    INTEGER(unifiedAddressing, UNIFIED_ADDRESSING),
    INTEGER(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    INTEGER(l2CacheSize, L2_CACHE_SIZE),
    INTEGER(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    INTEGER(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    INTEGER(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    INTEGER(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    INTEGER(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    SIZE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    INTEGER(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    INTEGER(managedMemory, MANAGED_MEMORY),
    INTEGER(isMultiGpuBoard, MULTI_GPU_BOARD),
    INTEGER(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    INTEGER(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    INTEGER(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    INTEGER(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    INTEGER(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    INTEGER(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    INTEGER(cooperativeLaunch, COOPERATIVE_LAUNCH),
    SIZE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    INTEGER(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    INTEGER(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    INTEGER(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    INTEGER(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    SIZE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
#if CUDART_VERSION >= 12000
    INTEGER(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    INTEGER(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    INTEGER(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    INTEGER(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    INTEGER(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    INTEGER(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    INTEGER(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    INTEGER(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    INTEGER(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    INTEGER(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    INTEGER(ipcEventSupported, IPC_EVENT_SUPPORTED),
    INTEGER(clusterLaunch, CLUSTER_LAUNCH),
    INTEGER(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
    INTEGER(deviceNumaConfig, NUMA_CONFIG),
    INTEGER(deviceNumaId, NUMA_ID),
    INTEGER(mpsEnabled, MPS_ENABLED),
    INTEGER(hostNumaId, HOST_NUMA_ID),
    INTEGER(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    INTEGER(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
    INTEGER(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
#else
    INTEGER(clockRate, CLOCK_RATE),
    INTEGER(deviceOverlap, GPU_OVERLAP),
    INTEGER(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
    INTEGER(computeMode, COMPUTE_MODE),
    INTEGER(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
    INTEGER(memoryClockRate, MEMORY_CLOCK_RATE),
    INTEGER(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    INTEGER(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH),
#endif
};
#undef INTEGER
#undef SIZE

cudaError_t collect(int device, cudaDeviceProp& properties) {
    const Driver& d = driver();
    CUdevice handle = 0;
    if (const CUresult result = d.cuDeviceGet(&handle, device); result != CUDA_SUCCESS)
        return to_error(result);
    CUuuid uuid{};
    const CUresult named = d.cuDeviceGetName(properties.name, sizeof properties.name, handle);
    if (named != CUDA_SUCCESS)
        return to_error(named);
    if (d.cuDeviceGetUuid(&uuid, handle) == CUDA_SUCCESS)
        std::memcpy(&properties.uuid, &uuid, sizeof uuid);
    const CUresult sized = d.cuDeviceTotalMem(&properties.totalGlobalMem, handle);
    if (sized != CUDA_SUCCESS)
        return to_error(sized);
    for (const Source& source : kSources) {
        int value = 0;
        if (d.cuDeviceGetAttribute(&value, source.attribute, handle) != CUDA_SUCCESS)
            value = 0;
        char* const field = reinterpret_cast<char*>(&properties) + source.offset;
        if (source.wide) {
            const std::size_t wide = static_cast<unsigned>(value);
            std::memcpy(field, &wide, sizeof wide);
        } else {
            std::memcpy(field, &value, sizeof value);
        }
    }
    return cudaSuccess;
}

} // namespace

cudaError_t read_properties(int device, cudaDeviceProp& properties) noexcept {
    static auto* const mutex = new std::mutex;
    static auto* const known = new std::map<int, cudaDeviceProp>;
    if (const cudaError_t error = check_device(device); error != cudaSuccess)
        return error;
    const std::lock_guard lock(*mutex);
    const auto entry = known->find(device);
    if (entry != known->end()) {
        properties = entry->second;
        return cudaSuccess;
    }
    std::memset(&properties, 0, sizeof properties);
    const cudaError_t error = collect(device, properties);
    if (error == cudaSuccess)
        known->emplace(device, properties);
    return error;
}

} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (!properties)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver&) { return read_properties(device, *properties); });
}
