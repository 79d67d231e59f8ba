// SPDX-License-Identifier: BSD-3-Clause
// cuCtx*.
#include "contrib/softgpu/call.h"

#include <algorithm>

using namespace softgpu;

namespace {

CUresult create(CUcontext* handle, unsigned flags, CUdevice device) {
    return call([&] {
        require(handle != nullptr && (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
        auto& driver = Driver::get();
        auto context = std::make_shared<Context>(driver.device(device), flags, false);
        context_stack().push_back(context);
        *handle = driver.contexts.add<CUcontext>(std::move(context));
    });
}

CUresult destroy(CUcontext handle) {
    return call([&] {
        const auto context = Driver::get().contexts.find(handle);
        require(context != nullptr, CUDA_ERROR_INVALID_CONTEXT);
        context->clear();
        Driver::get().contexts.remove(handle);
        // Other threads that have it as their current context get CONTEXT_IS_DESTROYED.
        auto& stack = context_stack();
        if (!stack.empty() && stack.back() == context)
            stack.pop_back();
    });
}

CUresult push(CUcontext handle) {
    return call([&] { context_stack().push_back(Driver::get().context(handle)); });
}

CUresult pop(CUcontext* handle) {
    return call([&] {
        auto& stack = context_stack();
        require(!stack.empty(), CUDA_ERROR_INVALID_CONTEXT);
        if (handle != nullptr)
            *handle = stack.back() != nullptr ? stack.back()->handle() : nullptr;
        stack.pop_back();
    });
}

// The named context, or the current one if the handle is 0.
template <class F>
CUresult in_context(CUcontext handle, F f) {
    if (handle == nullptr)
        return context_call(f);
    return call([&] { return f(*Driver::get().context(handle)); });
}

} // namespace

SOFTGPU_API CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
    return create(context, flags, device);
}
SOFTGPU_API CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
    return create(context, flags, device);
}
SOFTGPU_API CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count, unsigned int flags,
                                    CUdevice device) {
    return count == 0 ? create(context, flags, device) : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}
#if CUDA_VERSION >= 12050
SOFTGPU_API CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters, unsigned int flags,
                                    CUdevice device) {
    if (parameters != nullptr && (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(context, flags, device);
}
#endif
SOFTGPU_API CUresult cuCtxDestroy(CUcontext context) {
    return destroy(context);
}
SOFTGPU_API CUresult cuCtxDestroy_v2(CUcontext context) {
    return destroy(context);
}
SOFTGPU_API CUresult cuCtxPushCurrent(CUcontext context) {
    return push(context);
}
SOFTGPU_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
    return push(context);
}
SOFTGPU_API CUresult cuCtxPopCurrent(CUcontext* context) {
    return pop(context);
}
SOFTGPU_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
    return pop(context);
}

SOFTGPU_API CUresult cuCtxSetCurrent(CUcontext handle) {
    return call([&] {
        auto context = handle != nullptr ? Driver::get().context(handle) : nullptr;
        auto& stack = context_stack();
        if (!stack.empty())
            stack.pop_back();
        if (context != nullptr)
            stack.push_back(std::move(context));
    });
}

SOFTGPU_API CUresult cuCtxGetCurrent(CUcontext* handle) {
    return call([&] {
        require(handle != nullptr);
        const auto& stack = context_stack();
        *handle = !stack.empty() && stack.back() != nullptr ? stack.back()->handle() : nullptr;
    });
}

SOFTGPU_API CUresult cuCtxGetDevice(CUdevice* device) {
    return context_call([&](Context& context) {
        require(device != nullptr);
        *device = context.device().index();
    });
}

SOFTGPU_API CUresult cuCtxGetFlags(unsigned int* flags) {
    return context_call([&](Context& context) {
        require(flags != nullptr);
        *flags = context.flags();
    });
}

SOFTGPU_API CUresult cuCtxSetFlags(unsigned int flags) {
    return context_call([&](Context& context) {
        require((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
        context.set_flags(flags);
    });
}

SOFTGPU_API CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    return in_context(handle, [&](Context& context) {
        require(id != nullptr);
        *id = context.id();
    });
}

SOFTGPU_API CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
    return in_context(handle, [&](Context&) {
        require(version != nullptr);
        *version = 3020; // what all contexts of cuCtxCreate_v2 and later say
    });
}

SOFTGPU_API CUresult cuCtxSynchronize() {
    return context_call([](Context& context) { return context.synchronize(); });
}

#if CUDA_VERSION >= 13000
SOFTGPU_API CUresult cuCtxSynchronize_v2(CUcontext handle) {
    return in_context(handle, [](Context& context) { return context.synchronize(); });
}
SOFTGPU_API CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    return in_context(handle, [&](Context& context) {
        require(device != nullptr);
        *device = context.device().index();
    });
}
#endif

SOFTGPU_API CUresult cuCtxSetLimit(CUlimit limit, std::size_t value) {
    return context_call([&](Context& context) { context.set_limit(limit, value); });
}

SOFTGPU_API CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit) {
    return context_call([&](Context& context) {
        require(value != nullptr);
        *value = context.limit(limit);
    });
}

SOFTGPU_API CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
    return context_call([&](Context&) {
        require(config != nullptr);
        *config = CU_FUNC_CACHE_PREFER_NONE;
    });
}

// Preferences that hardware may heed; there is nothing here that they could change.
SOFTGPU_API CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
    return context_call([&](Context&) { require(config >= 0 && config <= CU_FUNC_CACHE_PREFER_EQUAL); });
}

SOFTGPU_API CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
    return context_call([&](Context&) {
        require(config != nullptr);
        *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    });
}

SOFTGPU_API CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
    return context_call(
        [&](Context&) { require(config >= 0 && config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE); });
}

SOFTGPU_API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    return context_call([&](Context&) {
        if (least != nullptr)
            *least = 0;
        if (greatest != nullptr)
            *greatest = -5;
    });
}

SOFTGPU_API CUresult cuCtxResetPersistingL2Cache() {
    return context_call([](Context&) {});
}

SOFTGPU_API CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags) {
    return context_call([&](Context& context) {
        require(flags == 0);
        const auto peer = Driver::get().context(handle);
        require(&peer->device() != &context.device(), CUDA_ERROR_INVALID_DEVICE);
        require(context.enable_peer(peer->id(), true), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    });
}

SOFTGPU_API CUresult cuCtxDisablePeerAccess(CUcontext handle) {
    return context_call([&](Context& context) {
        const auto peer = Driver::get().context(handle);
        require(context.enable_peer(peer->id(), false), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
    });
}

SOFTGPU_API CUresult cuCtxAttach(CUcontext* handle, unsigned int flags) {
    return context_call([&](Context& context) {
        require(handle != nullptr && flags == 0);
        *handle = context.handle();
    });
}

SOFTGPU_API CUresult cuCtxDetach(CUcontext handle) {
    return call([&] { (void)Driver::get().context(handle); });
}
