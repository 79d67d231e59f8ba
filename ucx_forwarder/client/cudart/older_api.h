// SPDX-License-Identifier: BSD-3-Clause
// What this library knows of both APIs and the headers of CUDA 11.8 do not, so that one source serves both
// toolkits. Driver functions that are declared here are in every libcuda.so.1 since CUDA 12.0 or answer
// CUDA_ERROR_NOT_SUPPORTED; runtime functions that the toolkit has not are compiled, but the version script
// leaves them out. Included in the place of cuda.h by driver.h, and by the driver of the tests.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#if CUDA_VERSION < 12000

using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUlibraryOption = unsigned;

// These names stand for later functions from CUDA 12.0 on.
#undef cuGraphInstantiate
#define cuGraphInstantiate cuGraphInstantiateWithFlags
#undef cuStreamGetCaptureInfo
#define cuStreamGetCaptureInfo cuStreamGetCaptureInfo_v2

extern "C" {
CUresult cuLibraryLoadData(CUlibrary*, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                           unsigned);
CUresult cuLibraryLoadFromFile(CUlibrary*, const char*, CUjit_option*, void**, unsigned, CUlibraryOption*,
                               void**, unsigned);
CUresult cuLibraryUnload(CUlibrary);
CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char*);
CUresult cuLibraryGetGlobal(CUdeviceptr*, size_t*, CUlibrary, const char*);
CUresult cuLibraryGetManaged(CUdeviceptr*, size_t*, CUlibrary, const char*);
CUresult cuLibraryGetKernelCount(unsigned*, CUlibrary);
CUresult cuLibraryEnumerateKernels(CUkernel*, unsigned, CUlibrary);
CUresult cuLibraryGetUnifiedFunction(void**, CUlibrary, const char*);
CUresult cuKernelGetFunction(CUfunction*, CUkernel);
CUresult cuKernelGetAttribute(int*, CUfunction_attribute, CUkernel, CUdevice);
CUresult cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice);
CUresult cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice);
CUresult cuKernelGetName(const char**, CUkernel);
CUresult cuKernelGetParamInfo(CUkernel, size_t, size_t*, size_t*);
CUresult cuStreamGetId(CUstream, unsigned long long*);
CUresult cuStreamGetDevice(CUstream, CUdevice*);
CUresult cuGraphExecGetFlags(CUgraphExec, cuuint64_t*);
}

using cudaLibrary_t = CUlibrary;
using cudaKernel_t = CUkernel;
using cudaJitOption = CUjit_option;
using cudaLibraryOption = CUlibraryOption;
constexpr unsigned cudaInitDeviceFlagsAreValid = 1;

// What a newer driver may answer.
constexpr cudaError_t cudaErrorUnsupportedDevSideSync = static_cast<cudaError_t>(225);
constexpr cudaError_t cudaErrorContained = static_cast<cudaError_t>(226);
constexpr cudaError_t cudaErrorLossyQuery = static_cast<cudaError_t>(402);
constexpr cudaError_t cudaErrorTensorMemoryLeak = static_cast<cudaError_t>(721);
constexpr cudaError_t cudaErrorCdpNotSupported = static_cast<cudaError_t>(811);
constexpr cudaError_t cudaErrorCdpVersionMismatch = static_cast<cudaError_t>(812);
constexpr cudaError_t cudaErrorFunctionNotLoaded = static_cast<cudaError_t>(913);
constexpr cudaError_t cudaErrorInvalidResourceType = static_cast<cudaError_t>(914);
constexpr cudaError_t cudaErrorInvalidResourceConfiguration = static_cast<cudaError_t>(915);

#endif
