// SPDX-License-Identifier: BSD-3-Clause
// cuda.h as a driver sees it: every name of the API with its own prototype (cuMemAlloc, cuMemAlloc_v2,
// cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, ...), without the renamings that programs get.
#pragma once

#ifdef __cuda_cuda_h__
#error "cuda_api.h must be included before any other header that includes cuda.h"
#endif
#define __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL_ODR
#include <cuda.h>

#if CUDA_VERSION < 12000
// What libraries need, which headers of CUDA 11 do not know yet.
using CUlibrary = struct CUlib_st*;
using CUkernel = struct CUkern_st*;
using CUlibraryOption = int;
#endif

// In front of the definition of each exported function.
#define SOFTGPU_API extern "C" __attribute__((visibility("default")))
