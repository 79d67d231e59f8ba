// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include "ucx_forwarder/client/cudart/driver.h"

namespace vgpu::cudart {

struct LaunchShape {
    dim3 grid;
    dim3 block;
    std::size_t shared = 0; // bytes of dynamic shared memory
    CUstream stream = nullptr;
    bool cooperative = false;
};

/// Launches in the current context. A shape that the device cannot run is cudaErrorInvalidConfiguration.
[[nodiscard]] cudaError_t launch(CUkernel kernel, const LaunchShape& shape, void** arguments) noexcept;

} // namespace vgpu::cudart
