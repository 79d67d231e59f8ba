// SPDX-License-Identifier: BSD-3-Clause
// cuda.h as the library that implements it must see it: every variant of every function under its own name
// (cuMemAlloc and cuMemAlloc_v2, cuLaunchKernel and cuLaunchKernel_ptsz), all of them exported.
#pragma once

#ifdef CUDA_VERSION
#error "include ucx_forwarder/client/cuda/api.h before anything that includes cuda.h"
#endif

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <cudaProfiler.h>

#include "ucx_forwarder/client/cuda/newer_api.h"
