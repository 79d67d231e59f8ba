// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

namespace vgpu::cudart {

/// Makes the primary context of `device` the thread's current one.
[[nodiscard]] cudaError_t select_device(int device) noexcept;

/// Destroys the primary context of `device`, whoever holds it, and leaves the thread without a current
/// context.
[[nodiscard]] cudaError_t reset_device(int device) noexcept;

/// All of cudaDeviceProp from the driver's attributes. The driver is started.
[[nodiscard]] cudaError_t read_properties(int device, cudaDeviceProp& properties) noexcept;

} // namespace vgpu::cudart
