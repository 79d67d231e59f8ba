// SPDX-License-Identifier: BSD-3-Clause
// The boundary of the library: what each exported function is wrapped in.
#pragma once

#include "contrib/softgpu/driver.h"
#include "contrib/softgpu/error.h"

#include <new>
#include <type_traits>

namespace softgpu {

template <class F, class... Arguments>
CUresult result_of(F& f, Arguments&... arguments) noexcept {
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<F&, Arguments&...>>) {
            f(arguments...);
            return CUDA_SUCCESS;
        } else {
            return f(arguments...);
        }
    } catch (const Error& error) {
        return error.code();
    } catch (const std::bad_alloc&) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        complain(error.what());
        return CUDA_ERROR_UNKNOWN;
    }
}

// Calls that need no context. f is called with none, returns CUresult or nothing, and may throw.
template <class F>
CUresult call(F f) noexcept {
    if (const auto state = Driver::get().state(); state != CUDA_SUCCESS)
        return state;
    if (in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    return result_of(f);
}

// Calls that work in the current context: f is called with it. Its sticky error goes before all else.
template <class F>
CUresult context_call(F f) noexcept {
    return call([&]() -> CUresult {
        auto& stack = context_stack();
        if (stack.empty() || stack.back() == nullptr)
            return CUDA_ERROR_INVALID_CONTEXT;
        // Another thread may destroy the context, and f may change the stack.
        const auto keep = stack.back();
        if (!keep->primary() && Driver::get().contexts.find(keep.get()) == nullptr)
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;
        auto& context = *keep;
        if (const auto error = context.error(); error != CUDA_SUCCESS)
            return error;
        return result_of(f, context);
    });
}

} // namespace softgpu

// A function that comes twice: with the legacy and with the per-thread default stream as its stream 0. The
// implementation gets that stream in front of the parameters.
#define SOFTGPU_API_TWICE(name, suffix, parameters, implementation, ...)                                     \
    SOFTGPU_API CUresult name parameters {                                                                   \
        return implementation(CU_STREAM_LEGACY, __VA_ARGS__);                                                \
    }                                                                                                        \
    SOFTGPU_API CUresult name##suffix parameters {                                                           \
        return implementation(CU_STREAM_PER_THREAD, __VA_ARGS__);                                            \
    }
#define SOFTGPU_API_PTSZ(name, parameters, implementation, ...)                                              \
    SOFTGPU_API_TWICE(name, _ptsz, parameters, implementation, __VA_ARGS__)
#define SOFTGPU_API_PTDS(name, parameters, implementation, ...)                                              \
    SOFTGPU_API_TWICE(name, _ptds, parameters, implementation, __VA_ARGS__)
