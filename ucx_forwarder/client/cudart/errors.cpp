// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

struct Description {
    const char* name;
    const char* text;
};

/// Null name: no error of this toolkit has that code.
constexpr Description describe(cudaError_t error) noexcept {
    // As a number: older headers have not all of them in the enumeration.
    switch (static_cast<int>(error)) {
#define VGPU_CUDART_ERROR(code, text)                                                                        \
    case code:                                                                                               \
        return {#code, text};
#include "ucx_forwarder/client/cudart/errors.def"
#undef VGPU_CUDART_ERROR
    default:
        return {nullptr, nullptr};
    }
}

} // namespace

cudaError_t to_error(CUresult result) noexcept {
    if (result == CUDA_SUCCESS) [[likely]]
        return cudaSuccess;
    const auto error = static_cast<cudaError_t>(result);
    return describe(error).name ? error : cudaErrorUnknown;
}

} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT cudaError_t cudaGetLastError() {
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

VGPU_EXPORT cudaError_t cudaPeekAtLastError() {
    return last_error;
}

VGPU_EXPORT const char* cudaGetErrorName(cudaError_t error) {
    const char* name = describe(error).name;
    return name ? name : "unrecognized error code";
}

VGPU_EXPORT const char* cudaGetErrorString(cudaError_t error) {
    const char* text = describe(error).text;
    return text ? text : "unrecognized error code";
}

/// What the functions answer that are exported but not there yet; see cudart-api.awk.
extern "C" int vgpu_cudart_unsupported(const char* name) {
    (void)name;
    return record(cudaErrorNotSupported);
}
