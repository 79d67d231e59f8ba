// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What every function of the runtime API shares: the thread's last error, and the driver's context it works
// in. A program's constructors reach this library before its own constructors ran: all state is made at first
// use, and is never destroyed, because the program's destructors call too.

#include <cuda_runtime_api.h>

#include <new>
#include <type_traits>

#include "ucx_forwarder/client/cudart/driver.h"

#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

/// Defines `name` and `name##suffix`: the second is what programs call that were compiled with a default
/// stream per thread. In the body that follows, on(stream) is the driver's stream and `per_thread` tells the
/// variants apart.
#define VGPU_EXPORT_BOTH(suffix, name, parameters, ...)                                                      \
    VGPU_EXPORT cudaError_t name parameters {                                                                \
        [[maybe_unused]] constexpr bool per_thread = false;                                                  \
        [[maybe_unused]] const auto on = [](cudaStream_t stream) { return stream; };                         \
        __VA_ARGS__                                                                                          \
    }                                                                                                        \
    VGPU_EXPORT cudaError_t name##suffix parameters {                                                        \
        [[maybe_unused]] constexpr bool per_thread = true;                                                   \
        [[maybe_unused]] const auto on = [](cudaStream_t stream) {                                           \
            return stream ? stream : CU_STREAM_PER_THREAD;                                                   \
        };                                                                                                   \
        __VA_ARGS__                                                                                          \
    }

namespace vgpu::cudart {

/// The codes of both APIs are equal, with few exceptions.
[[nodiscard]] cudaError_t to_error(CUresult result) noexcept;
[[nodiscard]] inline cudaError_t to_error(cudaError_t error) noexcept {
    return error;
}

/// The calling thread's last error, as cudaGetLastError gives it.
extern thread_local constinit cudaError_t last_error;

inline cudaError_t record(cudaError_t error) noexcept {
    if (error != cudaSuccess) [[unlikely]]
        last_error = error;
    return error;
}

/// cuInit, once a process. Sticky: programs that poll for a GPU do not connect again and again.
[[nodiscard]] cudaError_t start() noexcept;

/// start(), and a current context for this thread: the one that is current, else the primary context of the
/// thread's device (0 unless cudaSetDevice chose another).
[[nodiscard]] cudaError_t enter_context() noexcept;

/// The calling thread's device, by its current context if it has one. Makes no context.
[[nodiscard]] cudaError_t current_device(int& device) noexcept;

/// Retains (once a process) the primary context of `device`.
[[nodiscard]] cudaError_t primary_context(int device, CUcontext& context) noexcept;

/// Whether the thread's current context is the primary one of `device`.
[[nodiscard]] bool primary_is_current(int device) noexcept;

/// cudaErrorInvalidDevice unless 0 <= device < count.
[[nodiscard]] cudaError_t check_device(int device) noexcept;

/// Runs `call` (-> CUresult or cudaError_t) with the driver started, and records its error.
template <class Call>
cudaError_t with_driver(Call&& call) noexcept {
    cudaError_t error = start();
    if (error == cudaSuccess) [[likely]] {
        try {
            error = to_error(call(driver()));
        } catch (const std::bad_alloc&) {
            error = cudaErrorMemoryAllocation;
        }
    }
    return record(error);
}

/// Like with_driver, with a current context.
template <class Call>
cudaError_t in_context(Call&& call) noexcept {
    cudaError_t error = enter_context();
    if (error == cudaSuccess) [[likely]] {
        try {
            error = to_error(call(driver()));
        } catch (const std::bad_alloc&) {
            error = cudaErrorMemoryAllocation;
        }
    }
    return record(error);
}

[[nodiscard]] inline CUdeviceptr device_pointer(const void* pointer) noexcept {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

} // namespace vgpu::cudart
