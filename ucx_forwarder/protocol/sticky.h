// SPDX-License-Identifier: BSD-3-Clause
// Which errors leave a context useless. Client and worker must agree: each keeps such an error in mind on its
// own.
#pragma once

#include <cuda.h>

namespace vgpu::protocol {

inline bool is_sticky(CUresult status) {
    switch (status) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_ASSERT:
        return true;
    default:
        return false;
    }
}

} // namespace vgpu::protocol
