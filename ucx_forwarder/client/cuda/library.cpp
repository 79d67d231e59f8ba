// SPDX-License-Identifier: BSD-3-Clause
// Libraries: images that belong to no context. They are loaded into a context when something of them is first
// used there; at cuLibraryLoadData only if a context is current, so that a bad image is found at once where
// it can be.
#include "ucx_forwarder/client/cuda/module.h"

#include "ucx_forwarder/client/cuda/image.h"
#include "ucx_forwarder/protocol/jit_options.h"

#include <algorithm>
#include <bit>

namespace vgpu::client {
namespace {

/// With library.mutex held.
CUresult module_locked(LibraryState& library, Context& context, const JitArguments& report, Module*& module) {
    auto& slot = library.modules[context.handle];
    if (!slot) {
        if (CUresult status =
                load_module(context, library.image, library.options, library.handle, report, slot);
            status != CUDA_SUCCESS) {
            library.modules.erase(context.handle);
            return status;
        }
    }
    module = client().modules.find(slot);
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Some context in which the library is or can be loaded: for questions whose answer is the same in all of
/// them. A program need not have a context for those; then it is the first device's primary one.
class AnyContext {
public:
    ~AnyContext() {
        if (retained_)
            (void)release_primary(*retained_);
    }
    CUresult get(Context*& context) {
        if (current(context) == CUDA_SUCCESS)
            return CUDA_SUCCESS;
        Device& first = client().devices().front();
        VGPU_TRY(retain_primary(first, context));
        retained_ = &first;
        return CUDA_SUCCESS;
    }

private:
    Device* retained_ = nullptr;
};

CUresult library_of(CUlibrary handle, std::shared_ptr<LibraryState>& state) {
    VGPU_TRY(client().ready());
    Library* library = client().libraries.find(handle);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    state = library->state;
    return CUDA_SUCCESS;
}

CUresult load(CUlibrary* result, const void* code, const JitArguments& jit, CUlibraryOption* options,
              void** values, unsigned count, bool preserved) {
    VGPU_TRY(client().ready());
    if (!result || !code || (jit.count > 0 && (!jit.options || !jit.values)) || (count > 0 && !options))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
        if (unsigned(options[i]) >= CU_LIBRARY_NUM_OPTIONS)
            return CUDA_ERROR_INVALID_VALUE;
        if (options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
            preserved = !values || values[i] != nullptr;
    }
    auto image = find_image(code);
    if (!image)
        return CUDA_ERROR_INVALID_IMAGE;
    auto made = client().libraries.make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    auto state = std::make_shared<LibraryState>();
    state->handle = std::bit_cast<CUlibrary>(made.handle);
    if (preserved) {
        state->image = *image;
    } else {
        state->copy.assign(image->begin(), image->end());
        state->image = state->copy;
    }
    state->options = protocol::encode_jit_options(jit.count, jit.options, jit.values);
    if (Context * context; current(context) == CUDA_SUCCESS) {
        Module* module;
        std::lock_guard lock(state->mutex);
        if (CUresult status = module_locked(*state, *context, jit, module); status != CUDA_SUCCESS) {
            client().libraries.recycle(made.handle);
            return status;
        }
    }
    made.object->state = std::move(state);
    client().libraries.publish(made.handle);
    *result = std::bit_cast<CUlibrary>(made.handle);
    return CUDA_SUCCESS;
}

/// With library.mutex held; the name is one of the library's.
CUresult kernel_locked(const std::shared_ptr<LibraryState>& library, const std::string& name,
                       CUkernel& result) {
    auto [entry, fresh] = library->kernels.try_emplace(name, nullptr);
    if (fresh) {
        auto made = client().kernels.make();
        if (!made.object) {
            library->kernels.erase(entry);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        made.object->library = library;
        made.object->name = name;
        client().kernels.publish(made.handle);
        entry->second = std::bit_cast<CUkernel>(made.handle);
    }
    result = entry->second;
    return CUDA_SUCCESS;
}

} // namespace

CUresult library_module(LibraryState& library, Context& context, Module*& module) {
    std::lock_guard lock(library.mutex);
    return module_locked(library, context, {}, module);
}

CUresult kernel_function(Kernel& kernel, Context& context, CUfunction& result) {
    CUfunction last = kernel.last.load(std::memory_order_acquire);
    if (Function* f = last ? client().functions.find(last) : nullptr; f && f->context == &context) {
        result = last;
        return CUDA_SUCCESS;
    }
    Module* module;
    VGPU_TRY(library_module(*kernel.library, context, module));
    bool fresh;
    {
        auto place = module->state->by_name.find(kernel.name);
        if (place == module->state->by_name.end())
            return CUDA_ERROR_NOT_FOUND;
        std::lock_guard lock(module->state->mutex);
        fresh = !module->state->functions[place->second];
    }
    VGPU_TRY(function_by_name(*module, kernel.name, result));
    if (fresh) {
        std::lock_guard lock(kernel.mutex);
        for (auto [device, attribute, value] : kernel.attributes)
            if (device == context.device->ordinal)
                VGPU_TRY(set_function_attribute(*client().functions.find(result), attribute, value));
    }
    kernel.last.store(result, std::memory_order_release);
    return CUDA_SUCCESS;
}

} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions,
                           void** jitOptionsValues, unsigned int numJitOptions,
                           CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned int numLibraryOptions) {
    return load(library, code, {numJitOptions, jitOptions, jitOptionsValues}, libraryOptions,
                libraryOptionValues, numLibraryOptions, false);
}

VGPU_API cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions,
                               CUlibraryOption* libraryOptions, void** libraryOptionValues,
                               unsigned int numLibraryOptions) {
    VGPU_TRY(client().ready());
    if (!library || !fileName)
        return CUDA_ERROR_INVALID_VALUE;
    // Here the image is ours and goes: only a copy can be preserved.
    for (unsigned i = 0; libraryOptions && i < numLibraryOptions; ++i)
        if (libraryOptions[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
            return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> content;
    VGPU_TRY(read_file(fileName, content));
    return load(library, content.data(), {numJitOptions, jitOptions, jitOptionsValues}, libraryOptions,
                libraryOptionValues, numLibraryOptions, false);
}

VGPU_API cuLibraryUnload(CUlibrary library) {
    std::shared_ptr<LibraryState> state;
    VGPU_TRY(library_of(library, state));
    if (!client().libraries.remove(library))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult first = CUDA_SUCCESS;
    std::lock_guard lock(state->mutex);
    for (const auto& [context, module] : state->modules)
        if (CUresult status = unload_module(module); first == CUDA_SUCCESS)
            first = status;
    for (const auto& [name, kernel] : state->kernels)
        client().kernels.remove(kernel);
    state->modules.clear();
    return first;
}

VGPU_API cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
    std::shared_ptr<LibraryState> state;
    VGPU_TRY(library_of(library, state));
    if (!pKernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    {
        std::lock_guard lock(state->mutex);
        if (auto known = state->kernels.find(std::string_view(name)); known != state->kernels.end()) {
            *pKernel = known->second;
            return CUDA_SUCCESS;
        }
    }
    AnyContext any; // not under the lock: the end of a context takes it, with the device's lock held
    Context* context;
    VGPU_TRY(any.get(context));
    std::lock_guard lock(state->mutex);
    Module* module;
    VGPU_TRY(module_locked(*state, *context, {}, module));
    if (!module->state->by_name.contains(name))
        return CUDA_ERROR_NOT_FOUND;
    return kernel_locked(state, name, *pKernel);
}

VGPU_API cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
    std::shared_ptr<LibraryState> state;
    VGPU_TRY(library_of(lib, state));
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    AnyContext any;
    Context* context;
    VGPU_TRY(any.get(context));
    Module* module;
    VGPU_TRY(library_module(*state, *context, module));
    *count = unsigned(module->state->snapshot.kernels.size());
    return CUDA_SUCCESS;
}

VGPU_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
    std::shared_ptr<LibraryState> state;
    VGPU_TRY(library_of(lib, state));
    if (!kernels && numKernels > 0)
        return CUDA_ERROR_INVALID_VALUE;
    AnyContext any;
    Context* context;
    VGPU_TRY(any.get(context));
    std::lock_guard lock(state->mutex);
    Module* module;
    VGPU_TRY(module_locked(*state, *context, {}, module));
    const auto& list = module->state->snapshot.kernels;
    for (unsigned i = 0; i < numKernels && i < list.size(); ++i)
        VGPU_TRY(kernel_locked(state, list[i].name, kernels[i]));
    return CUDA_SUCCESS;
}

VGPU_API cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
    std::shared_ptr<LibraryState> state;
    VGPU_TRY(library_of(library, state));
    if (!pMod)
        return CUDA_ERROR_INVALID_VALUE;
    Context* context;
    VGPU_TRY(current(context));
    Module* module;
    VGPU_TRY(library_module(*state, *context, module));
    *pMod = module->handle;
    return CUDA_SUCCESS;
}

VGPU_API cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
    std::shared_ptr<LibraryState> state;
    VGPU_TRY(library_of(library, state));
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    Context* context;
    VGPU_TRY(current(context));
    Module* module;
    VGPU_TRY(library_module(*state, *context, module));
    return global_of(*module, name, dptr, bytes);
}

// Managed memory is not offered (CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY is 0): no library has such a variable.
VGPU_API cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
    std::shared_ptr<LibraryState> state;
    VGPU_TRY(library_of(library, state));
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_FOUND;
}
