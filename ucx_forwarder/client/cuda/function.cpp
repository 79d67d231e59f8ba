// SPDX-License-Identifier: BSD-3-Clause
// What can be asked of a kernel, as a function of a module (CUfunction) or of a library (CUkernel), and set
// in it.
#include "ucx_forwarder/client/cuda/module.h"

namespace vgpu::client {

CUresult function_of(CUfunction handle, Function*& function) {
    function = client().functions.find(handle);
    if (function)
        return CUDA_SUCCESS;
    Kernel* kernel = client().kernels.find(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    Context* context;
    VGPU_TRY(current(context));
    CUfunction resolved;
    VGPU_TRY(kernel_function(*kernel, *context, resolved));
    function = client().functions.find(resolved);
    return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult set_function_attribute(Function& function, CUfunction_attribute attribute, int value) {
    if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        const Device& device = *function.context->device;
        int most = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
        if (value < 0 || value > most - function.static_shared)
            return CUDA_ERROR_INVALID_VALUE;
    }
    VGPU_TRY(function.context->call<Call::cuFuncSetAttribute>(function.id, attribute, value));
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        function.max_dynamic_shared = value;
    return CUDA_SUCCESS;
}

CUresult get_function_attribute(const Function& function, CUfunction_attribute attribute, int* value) {
    if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        *value = function.max_dynamic_shared;
    else if (attribute > CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) // may have been set since the load
        return function.context->call<Call::cuFuncGetAttribute>(value, attribute, function.id);
    else
        *value = function.attribute(attribute);
    return CUDA_SUCCESS;
}

namespace {

CUresult ready_function(CUfunction handle, Function*& function) {
    VGPU_TRY(client().ready());
    return function_of(handle, function);
}

CUresult kernel_of(CUkernel handle, Kernel*& kernel) {
    VGPU_TRY(client().ready());
    kernel = client().kernels.find(handle);
    return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult parameter(const Function& function, std::size_t index, std::size_t* offset, std::size_t* size) {
    if (index >= function.info->parameters.size())
        return CUDA_ERROR_INVALID_VALUE;
    *offset = function.info->parameters[index].offset;
    if (size)
        *size = function.info->parameters[index].size;
    return CUDA_SUCCESS;
}

/// A kernel's function on some device: in the current context where that is the device's, else in its primary
/// one.
class KernelOn {
public:
    ~KernelOn() {
        if (retained_)
            (void)release_primary(*retained_);
    }
    CUresult get(Kernel& kernel, CUdevice ordinal, Function*& function) {
        Device* device;
        VGPU_TRY(device_of(ordinal, device));
        Context* context;
        if (current(context) != CUDA_SUCCESS || context->device != device) {
            VGPU_TRY(retain_primary(*device, context));
            retained_ = device;
        }
        CUfunction handle;
        VGPU_TRY(kernel_function(kernel, *context, handle));
        function = client().functions.find(handle);
        return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }

private:
    Device* retained_ = nullptr;
};

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
    Function* function;
    VGPU_TRY(ready_function(hfunc, function));
    return pi ? get_function_attribute(*function, attrib, pi) : CUDA_ERROR_INVALID_VALUE;
}

VGPU_API cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
    Function* function;
    VGPU_TRY(ready_function(hfunc, function));
    return set_function_attribute(*function, attrib, value);
}

VGPU_API cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
    Function* function;
    VGPU_TRY(ready_function(hfunc, function));
    if (unsigned(config) > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    return function->context->call<Call::cuFuncSetCacheConfig>(function->id, config);
}

VGPU_API cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config) {
    Function* function;
    VGPU_TRY(ready_function(hfunc, function));
    if (unsigned(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        return CUDA_ERROR_INVALID_VALUE;
    return function->context->call<Call::cuFuncSetSharedMemConfig>(function->id, config);
}

VGPU_API cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
    Function* function;
    VGPU_TRY(ready_function(hfunc, function));
    if (!hmod)
        return CUDA_ERROR_INVALID_VALUE;
    *hmod = function->module;
    return CUDA_SUCCESS;
}

VGPU_API cuFuncGetName(const char** name, CUfunction hfunc) {
    Function* function;
    VGPU_TRY(ready_function(hfunc, function));
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = function->info->name.c_str();
    return CUDA_SUCCESS;
}

VGPU_API cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
    Function* function;
    VGPU_TRY(ready_function(func, function));
    return paramOffset ? parameter(*function, paramIndex, paramOffset, paramSize) : CUDA_ERROR_INVALID_VALUE;
}

// Modules are loaded eagerly: every function is.
VGPU_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
    Function* found;
    VGPU_TRY(ready_function(function, found));
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

VGPU_API cuFuncLoad(CUfunction function) {
    Function* found;
    return ready_function(function, found);
}

VGPU_API cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
    Kernel* found;
    VGPU_TRY(kernel_of(kernel, found));
    if (!pFunc)
        return CUDA_ERROR_INVALID_VALUE;
    Context* context;
    VGPU_TRY(current(context));
    return kernel_function(*found, *context, *pFunc);
}

VGPU_API cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
    Kernel* found;
    VGPU_TRY(kernel_of(kernel, found));
    if (!pLib)
        return CUDA_ERROR_INVALID_VALUE;
    *pLib = found->library->handle;
    return CUDA_SUCCESS;
}

VGPU_API cuKernelGetName(const char** name, CUkernel hfunc) {
    Kernel* found;
    VGPU_TRY(kernel_of(hfunc, found));
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = found->name.c_str();
    return CUDA_SUCCESS;
}

VGPU_API cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
    Kernel* found;
    VGPU_TRY(kernel_of(kernel, found));
    if (!pi)
        return CUDA_ERROR_INVALID_VALUE;
    KernelOn device;
    Function* function;
    VGPU_TRY(device.get(*found, dev, function));
    return get_function_attribute(*function, attrib, pi);
}

VGPU_API cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
    Kernel* found;
    VGPU_TRY(kernel_of(kernel, found));
    KernelOn device;
    Function* function;
    VGPU_TRY(device.get(*found, dev, function));
    VGPU_TRY(set_function_attribute(*function, attrib, val));
    std::lock_guard lock(found->mutex);
    found->attributes.emplace_back(dev, attrib, val);
    return CUDA_SUCCESS;
}

VGPU_API cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
    Kernel* found;
    VGPU_TRY(kernel_of(kernel, found));
    if (unsigned(config) > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    KernelOn device;
    Function* function;
    VGPU_TRY(device.get(*found, dev, function));
    return function->context->call<Call::cuFuncSetCacheConfig>(function->id, config);
}

VGPU_API cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
    Kernel* found;
    VGPU_TRY(kernel_of(kernel, found));
    if (!paramOffset)
        return CUDA_ERROR_INVALID_VALUE;
    KernelOn device;
    Function* function;
    Context* context;
    VGPU_TRY(device.get(*found, current(context) == CUDA_SUCCESS ? context->device->ordinal : 0, function));
    return parameter(*function, paramIndex, paramOffset, paramSize);
}
