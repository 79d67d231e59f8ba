// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The public driver API, opened at run time: any libcuda.so.1 will do. Functions are found by
// cuGetProcAddress under the names and versions that cuda.h of the build maps them to.

#include "ucx_forwarder/client/cudart/older_api.h"

namespace vgpu::cudart {

#define VGPU_CUDART_DRIVER_CALLS(CALL)                                                                       \
    CALL(cuInit)                                                                                             \
    CALL(cuDriverGetVersion)                                                                                 \
    CALL(cuGetProcAddress)                                                                                   \
    CALL(cuDeviceGet)                                                                                        \
    CALL(cuDeviceGetCount)                                                                                   \
    CALL(cuDeviceGetName)                                                                                    \
    CALL(cuDeviceGetUuid)                                                                                    \
    CALL(cuDeviceGetAttribute)                                                                               \
    CALL(cuDeviceTotalMem)                                                                                   \
    CALL(cuDeviceGetByPCIBusId)                                                                              \
    CALL(cuDeviceGetPCIBusId)                                                                                \
    CALL(cuDeviceCanAccessPeer)                                                                              \
    CALL(cuDeviceGetP2PAttribute)                                                                            \
    CALL(cuDeviceGetDefaultMemPool)                                                                          \
    CALL(cuDeviceGetMemPool)                                                                                 \
    CALL(cuDeviceSetMemPool)                                                                                 \
    CALL(cuFlushGPUDirectRDMAWrites)                                                                         \
    CALL(cuDevicePrimaryCtxRetain)                                                                           \
    CALL(cuDevicePrimaryCtxRelease)                                                                          \
    CALL(cuDevicePrimaryCtxReset)                                                                            \
    CALL(cuDevicePrimaryCtxGetState)                                                                         \
    CALL(cuDevicePrimaryCtxSetFlags)                                                                         \
    CALL(cuCtxGetCurrent)                                                                                    \
    CALL(cuCtxSetCurrent)                                                                                    \
    CALL(cuCtxGetDevice)                                                                                     \
    CALL(cuCtxGetFlags)                                                                                      \
    CALL(cuCtxSynchronize)                                                                                   \
    CALL(cuCtxGetLimit)                                                                                      \
    CALL(cuCtxSetLimit)                                                                                      \
    CALL(cuCtxGetCacheConfig)                                                                                \
    CALL(cuCtxSetCacheConfig)                                                                                \
    CALL(cuCtxGetStreamPriorityRange)                                                                        \
    CALL(cuCtxResetPersistingL2Cache)                                                                        \
    CALL(cuCtxEnablePeerAccess)                                                                              \
    CALL(cuCtxDisablePeerAccess)                                                                             \
    CALL(cuLibraryLoadData)                                                                                  \
    CALL(cuLibraryLoadFromFile)                                                                              \
    CALL(cuLibraryUnload)                                                                                    \
    CALL(cuLibraryGetKernel)                                                                                 \
    CALL(cuLibraryGetGlobal)                                                                                 \
    CALL(cuLibraryGetManaged)                                                                                \
    CALL(cuLibraryGetKernelCount)                                                                            \
    CALL(cuLibraryEnumerateKernels)                                                                          \
    CALL(cuLibraryGetUnifiedFunction)                                                                        \
    CALL(cuKernelGetFunction)                                                                                \
    CALL(cuKernelGetAttribute)                                                                               \
    CALL(cuKernelSetAttribute)                                                                               \
    CALL(cuKernelSetCacheConfig)                                                                             \
    CALL(cuKernelGetName)                                                                                    \
    CALL(cuKernelGetParamInfo)                                                                               \
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)                                               \
    CALL(cuOccupancyAvailableDynamicSMemPerBlock)                                                            \
    CALL(cuOccupancyMaxPotentialClusterSize)                                                                 \
    CALL(cuOccupancyMaxActiveClusters)                                                                       \
    CALL(cuLaunchKernel)                                                                                     \
    CALL(cuLaunchKernelEx)                                                                                   \
    CALL(cuLaunchCooperativeKernel)                                                                          \
    CALL(cuLaunchHostFunc)                                                                                   \
    CALL(cuMemAlloc)                                                                                         \
    CALL(cuMemAllocPitch)                                                                                    \
    CALL(cuMemAllocManaged)                                                                                  \
    CALL(cuMemFree)                                                                                          \
    CALL(cuMemHostAlloc)                                                                                     \
    CALL(cuMemFreeHost)                                                                                      \
    CALL(cuMemHostRegister)                                                                                  \
    CALL(cuMemHostUnregister)                                                                                \
    CALL(cuMemHostGetDevicePointer)                                                                          \
    CALL(cuMemHostGetFlags)                                                                                  \
    CALL(cuMemGetInfo)                                                                                       \
    CALL(cuPointerGetAttributes)                                                                             \
    CALL(cuMemAdvise)                                                                                        \
    CALL(cuMemPrefetchAsync)                                                                                 \
    CALL(cuMemRangeGetAttribute)                                                                             \
    CALL(cuMemRangeGetAttributes)                                                                            \
    CALL(cuMemAllocAsync)                                                                                    \
    CALL(cuMemAllocFromPoolAsync)                                                                            \
    CALL(cuMemFreeAsync)                                                                                     \
    CALL(cuMemPoolCreate)                                                                                    \
    CALL(cuMemPoolDestroy)                                                                                   \
    CALL(cuMemPoolTrimTo)                                                                                    \
    CALL(cuMemPoolGetAttribute)                                                                              \
    CALL(cuMemPoolSetAttribute)                                                                              \
    CALL(cuMemPoolGetAccess)                                                                                 \
    CALL(cuMemPoolSetAccess)                                                                                 \
    CALL(cuMemcpy)                                                                                           \
    CALL(cuMemcpyAsync)                                                                                      \
    CALL(cuMemcpyHtoD)                                                                                       \
    CALL(cuMemcpyHtoDAsync)                                                                                  \
    CALL(cuMemcpyDtoH)                                                                                       \
    CALL(cuMemcpyDtoHAsync)                                                                                  \
    CALL(cuMemcpyDtoD)                                                                                       \
    CALL(cuMemcpyDtoDAsync)                                                                                  \
    CALL(cuMemcpyPeer)                                                                                       \
    CALL(cuMemcpyPeerAsync)                                                                                  \
    CALL(cuMemcpy2DUnaligned)                                                                                \
    CALL(cuMemcpy2DAsync)                                                                                    \
    CALL(cuMemcpy3D)                                                                                         \
    CALL(cuMemcpy3DAsync)                                                                                    \
    CALL(cuMemcpy3DPeer)                                                                                     \
    CALL(cuMemcpy3DPeerAsync)                                                                                \
    CALL(cuMemsetD8)                                                                                         \
    CALL(cuMemsetD8Async)                                                                                    \
    CALL(cuMemsetD2D8)                                                                                       \
    CALL(cuMemsetD2D8Async)                                                                                  \
    CALL(cuIpcGetEventHandle)                                                                                \
    CALL(cuIpcOpenEventHandle)                                                                               \
    CALL(cuIpcGetMemHandle)                                                                                  \
    CALL(cuIpcOpenMemHandle)                                                                                 \
    CALL(cuIpcCloseMemHandle)                                                                                \
    CALL(cuArray3DCreate)                                                                                    \
    CALL(cuArray3DGetDescriptor)                                                                             \
    CALL(cuArrayDestroy)                                                                                     \
    CALL(cuArrayGetPlane)                                                                                    \
    CALL(cuMipmappedArrayCreate)                                                                             \
    CALL(cuMipmappedArrayDestroy)                                                                            \
    CALL(cuMipmappedArrayGetLevel)                                                                           \
    CALL(cuStreamCreate)                                                                                     \
    CALL(cuStreamCreateWithPriority)                                                                         \
    CALL(cuStreamDestroy)                                                                                    \
    CALL(cuStreamQuery)                                                                                      \
    CALL(cuStreamSynchronize)                                                                                \
    CALL(cuStreamWaitEvent)                                                                                  \
    CALL(cuStreamAddCallback)                                                                                \
    CALL(cuStreamAttachMemAsync)                                                                             \
    CALL(cuStreamGetPriority)                                                                                \
    CALL(cuStreamGetFlags)                                                                                   \
    CALL(cuStreamGetId)                                                                                      \
    CALL(cuStreamGetDevice)                                                                                  \
    CALL(cuStreamCopyAttributes)                                                                             \
    CALL(cuStreamGetAttribute)                                                                               \
    CALL(cuStreamSetAttribute)                                                                               \
    CALL(cuStreamBeginCapture)                                                                               \
    CALL(cuStreamEndCapture)                                                                                 \
    CALL(cuStreamIsCapturing)                                                                                \
    CALL(cuStreamGetCaptureInfo)                                                                             \
    CALL(cuThreadExchangeStreamCaptureMode)                                                                  \
    CALL(cuGraphCreate)                                                                                      \
    CALL(cuGraphDestroy)                                                                                     \
    CALL(cuGraphClone)                                                                                       \
    CALL(cuGraphGetNodes)                                                                                    \
    CALL(cuGraphGetRootNodes)                                                                                \
    CALL(cuGraphDestroyNode)                                                                                 \
    CALL(cuGraphInstantiate)                                                                                 \
    CALL(cuGraphExecDestroy)                                                                                 \
    CALL(cuGraphExecGetFlags)                                                                                \
    CALL(cuGraphLaunch)                                                                                      \
    CALL(cuGraphUpload)                                                                                      \
    CALL(cuGraphAddDependencies)                                                                             \
    CALL(cuGraphAddEmptyNode)                                                                                \
    CALL(cuGraphAddChildGraphNode)                                                                           \
    CALL(cuGraphAddEventRecordNode)                                                                          \
    CALL(cuGraphAddEventWaitNode)                                                                            \
    CALL(cuGraphAddKernelNode)                                                                               \
    CALL(cuGraphAddMemsetNode)                                                                               \
    CALL(cuGraphAddHostNode)                                                                                 \
    CALL(cuGraphDebugDotPrint)                                                                               \
    CALL(cuEventCreate)                                                                                      \
    CALL(cuEventDestroy)                                                                                     \
    CALL(cuEventRecord)                                                                                      \
    CALL(cuEventRecordWithFlags)                                                                             \
    CALL(cuEventQuery)                                                                                       \
    CALL(cuEventSynchronize)                                                                                 \
    CALL(cuEventElapsedTime)

/// One pointer a function, named as cuda.h names it. What the driver lacks answers CUDA_ERROR_NOT_SUPPORTED.
struct Driver {
#define VGPU_CUDART_MEMBER(name) decltype(&::name) name = nullptr;
    VGPU_CUDART_DRIVER_CALLS(VGPU_CUDART_MEMBER)
#undef VGPU_CUDART_MEMBER

    /// CUDA_SUCCESS, or why libcuda.so.1 cannot be used; in that case no pointer is null either.
    CUresult state = CUDA_ERROR_NOT_INITIALIZED;
};

/// Opens libcuda.so.1 at the first call, without cuInit. Thread-safe; never closed, as calls may come while
/// the program's destructors run.
[[nodiscard]] const Driver& driver() noexcept;

} // namespace vgpu::cudart
