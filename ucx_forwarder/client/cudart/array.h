// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

#include "ucx_forwarder/client/cudart/driver.h"

namespace vgpu::cudart {

/// Bytes of one element (all its channels) of an array.
[[nodiscard]] cudaError_t array_element_size(cudaArray_const_t array, std::size_t& bytes) noexcept;

/// The driver's format and number of channels; false if there is no such format.
[[nodiscard]] bool to_array_format(const cudaChannelFormatDesc& channels, CUarray_format& format,
                                   unsigned& count) noexcept;

} // namespace vgpu::cudart
