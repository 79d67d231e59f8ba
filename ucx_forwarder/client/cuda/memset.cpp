// SPDX-License-Identifier: BSD-3-Clause
// Memsets: sent and not awaited, after their bounds were checked here.
#include "ucx_forwarder/client/cuda/client.h"

namespace vgpu::client {
namespace {

/// The plain call is for the legacy default stream; the per-thread form of it is an asynchronous one on that
/// stream.
template <Call Plain, Call Async, class Value>
CUresult set(CUdeviceptr to, Value value, std::size_t count, CUstream handle, NullStream null, bool async) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    if (count > ~std::size_t{0} / sizeof(Value) || to % sizeof(Value) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (count == 0)
        return CUDA_SUCCESS;
    VGPU_TRY(check_device_range(*context, to, count * sizeof(Value)));
    return async || null == NullStream::per_thread ? context->call<Async>(to, value, count, stream)
                                                   : context->call<Plain>(to, value, count);
}

template <Call Plain, Call Async, class Value>
CUresult set_2d(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width, std::size_t height,
                CUstream handle, NullStream null, bool async) {
    Context* context;
    WireId stream;
    VGPU_TRY(current_stream(handle, null, context, stream));
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    if (width > ~std::size_t{0} / sizeof(Value) || to % sizeof(Value) != 0 ||
        (height > 1 && (pitch % sizeof(Value) != 0 || pitch < width * sizeof(Value))))
        return CUDA_ERROR_INVALID_VALUE;
    std::size_t bytes;
    if (__builtin_mul_overflow(pitch, height - 1, &bytes) ||
        __builtin_add_overflow(bytes, width * sizeof(Value), &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    VGPU_TRY(check_device_range(*context, to, bytes));
    return async || null == NullStream::per_thread
               ? context->call<Async>(to, pitch, value, width, height, stream)
               : context->call<Plain>(to, pitch, value, width, height);
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

#define LEGACY NullStream::legacy
#define PER_THREAD NullStream::per_thread

// Six functions of each, four variants of every one.
#define MEMSET(name, type)                                                                                   \
    VGPU_API name##_v2(CUdeviceptr dst, type value, size_t n) {                                              \
        return set<Call::name##_v2, Call::name##Async>(dst, value, n, nullptr, LEGACY, false);               \
    }                                                                                                        \
    VGPU_API name##_v2_ptds(CUdeviceptr dst, type value, size_t n) {                                         \
        return set<Call::name##_v2, Call::name##Async>(dst, value, n, nullptr, PER_THREAD, false);           \
    }                                                                                                        \
    VGPU_API name##Async(CUdeviceptr dst, type value, size_t n, CUstream s) {                                \
        return set<Call::name##_v2, Call::name##Async>(dst, value, n, s, LEGACY, true);                      \
    }                                                                                                        \
    VGPU_API name##Async_ptsz(CUdeviceptr dst, type value, size_t n, CUstream s) {                           \
        return set<Call::name##_v2, Call::name##Async>(dst, value, n, s, PER_THREAD, true);                  \
    }

#define MEMSET_2D(name, type)                                                                                \
    VGPU_API name##_v2(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height) {             \
        return set_2d<Call::name##_v2, Call::name##Async>(dst, pitch, value, width, height, nullptr, LEGACY, \
                                                          false);                                            \
    }                                                                                                        \
    VGPU_API name##_v2_ptds(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height) {        \
        return set_2d<Call::name##_v2, Call::name##Async>(dst, pitch, value, width, height, nullptr,         \
                                                          PER_THREAD, false);                                \
    }                                                                                                        \
    VGPU_API name##Async(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,             \
                         CUstream s) {                                                                       \
        return set_2d<Call::name##_v2, Call::name##Async>(dst, pitch, value, width, height, s, LEGACY,       \
                                                          true);                                             \
    }                                                                                                        \
    VGPU_API name##Async_ptsz(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,        \
                              CUstream s) {                                                                  \
        return set_2d<Call::name##_v2, Call::name##Async>(dst, pitch, value, width, height, s, PER_THREAD,   \
                                                          true);                                             \
    }

MEMSET(cuMemsetD8, unsigned char)
MEMSET(cuMemsetD16, unsigned short)
MEMSET(cuMemsetD32, unsigned int)
MEMSET_2D(cuMemsetD2D8, unsigned char)
MEMSET_2D(cuMemsetD2D16, unsigned short)
MEMSET_2D(cuMemsetD2D32, unsigned int)
