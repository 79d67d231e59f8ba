// SPDX-License-Identifier: BSD-3-Clause
// cuModule*, cuLibrary*, cuKernel* that name code.
#include "contrib/softgpu/call.h"
#include "contrib/softgpu/module.h"

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace softgpu;

namespace {

std::shared_ptr<Module> find_module(CUmodule handle) {
    auto module = Driver::get().modules.find(handle);
    require(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return module;
}

std::shared_ptr<Library> find_library(CUlibrary handle) {
    auto library = Driver::get().libraries.find(handle);
    require(library != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return library;
}

std::shared_ptr<LibraryKernel> find_kernel(CUkernel handle) {
    auto kernel = Driver::get().kernels.find(handle);
    require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return kernel;
}

// The contents, with a NUL behind them: PTX text is read up to one.
std::string read_file(const char* path) {
    require(path != nullptr);
    std::ifstream file(path, std::ios::binary);
    require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
    return {std::istreambuf_iterator<char>(file), {}};
}

CUresult load(CUmodule* handle, const void* image, unsigned count, CUjit_option* names, void** values) {
    return context_call([&](Context& context) {
        require(handle != nullptr);
        JitOptions options(count, names, values);
        const auto ptx = ptx_of(image, context.device().capability(), options);
        *handle = Driver::get().modules.add<CUmodule>(Module::load(context, ptx, options));
    });
}

CUresult get_global(CUdeviceptr* pointer, std::size_t* bytes, const ptx::Global* global) {
    require(global != nullptr, CUDA_ERROR_NOT_FOUND);
    if (pointer != nullptr)
        *pointer = global->address;
    if (bytes != nullptr)
        *bytes = global->size;
    return CUDA_SUCCESS;
}

CUresult load_library(CUlibrary* handle, const void* image, CUjit_option* names, void** values,
                      unsigned count) {
    return call([&] {
        require(handle != nullptr);
        JitOptions options(count, names, values);
        auto& stack = context_stack();
        const auto context = stack.empty() ? nullptr : stack.back();
        // All devices are of one compute capability.
        *handle = Driver::get().libraries.add<CUlibrary>(
            Library::load(context != nullptr && context->error() == CUDA_SUCCESS ? context.get() : nullptr,
                          image, Driver::get().device(0).capability(), options));
    });
}

} // namespace

// ---- modules ----

SOFTGPU_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return load(module, image, 0, nullptr, nullptr);
}
SOFTGPU_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int count,
                                        CUjit_option* options, void** values) {
    return load(module, image, count, options, values);
}
SOFTGPU_API CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
    return load(module, image, 0, nullptr, nullptr);
}
SOFTGPU_API CUresult cuModuleLoad(CUmodule* module, const char* path) {
    return context_call([&](Context&) { return load(module, read_file(path).c_str(), 0, nullptr, nullptr); });
}

SOFTGPU_API CUresult cuModuleUnload(CUmodule handle) {
    return context_call([&](Context&) {
        const auto module = find_module(handle);
        (void)module->context().synchronize();
        module->unlist();
    });
}

SOFTGPU_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
    return context_call([&](Context&) {
        require(function != nullptr && name != nullptr);
        auto* found = find_module(handle)->find(name);
        require(found != nullptr, CUDA_ERROR_NOT_FOUND);
        *function = reinterpret_cast<CUfunction>(found);
    });
}

SOFTGPU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* pointer, std::size_t* bytes, CUmodule handle,
                                          const char* name) {
    return context_call([&](Context&) {
        require(name != nullptr);
        return get_global(pointer, bytes, find_module(handle)->find_global(name));
    });
}

SOFTGPU_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    return call([&] {
        require(mode != nullptr);
        *mode = CU_MODULE_EAGER_LOADING;
    });
}

SOFTGPU_API CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
    return context_call([&](Context&) {
        require(count != nullptr);
        *count = static_cast<unsigned>(find_module(handle)->functions().size());
    });
}

SOFTGPU_API CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int room, CUmodule handle) {
    return context_call([&](Context&) {
        require(functions != nullptr || room == 0);
        const auto module = find_module(handle);
        const auto count = std::min<std::size_t>(room, module->functions().size());
        for (std::size_t i = 0; i < count; ++i)
            functions[i] = reinterpret_cast<CUfunction>(const_cast<Function*>(&module->functions()[i]));
    });
}

// ---- libraries ----

SOFTGPU_API CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options,
                                       void** jit_values, unsigned int jit_count, CUlibraryOption*, void**,
                                       unsigned int) {
    return load_library(library, code, jit_options, jit_values, jit_count);
}

SOFTGPU_API CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                                           void** jit_values, unsigned int jit_count, CUlibraryOption*,
                                           void**, unsigned int) {
    return call(
        [&] { return load_library(library, read_file(path).c_str(), jit_options, jit_values, jit_count); });
}

SOFTGPU_API CUresult cuLibraryUnload(CUlibrary handle) {
    return call([&] {
        const auto library = find_library(handle);
        Driver::get().synchronize_all();
        library->unlist();
    });
}

SOFTGPU_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
    return call([&] {
        require(kernel != nullptr && name != nullptr);
        auto* found = find_library(handle)->find(name);
        require(found != nullptr, CUDA_ERROR_NOT_FOUND);
        *kernel = reinterpret_cast<CUkernel>(found);
    });
}

SOFTGPU_API CUresult cuLibraryGetModule(CUmodule* module, CUlibrary handle) {
    return context_call([&](Context& context) {
        require(module != nullptr);
        *module = reinterpret_cast<CUmodule>(find_library(handle)->module(context).get());
    });
}

SOFTGPU_API CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary handle,
                                        const char* name) {
    return context_call([&](Context& context) {
        require(name != nullptr);
        return get_global(pointer, bytes, find_library(handle)->module(context)->find_global(name));
    });
}

SOFTGPU_API CUresult cuLibraryGetManaged(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary handle,
                                         const char* name) {
    return context_call([&](Context& context) {
        require(name != nullptr);
        const auto* global = find_library(handle)->module(context)->find_global(name);
        require(global != nullptr && global->managed, CUDA_ERROR_NOT_FOUND);
        return get_global(pointer, bytes, global);
    });
}

SOFTGPU_API CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
    return call([&] {
        require(count != nullptr);
        *count = static_cast<unsigned>(find_library(handle)->kernels().size());
    });
}

SOFTGPU_API CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int room, CUlibrary handle) {
    return call([&] {
        require(kernels != nullptr || room == 0);
        const auto library = find_library(handle);
        const auto count = std::min<std::size_t>(room, library->kernels().size());
        for (std::size_t i = 0; i < count; ++i)
            kernels[i] = reinterpret_cast<CUkernel>(&library->kernels()[i]);
    });
}

// ---- kernels of libraries ----

SOFTGPU_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel handle) {
    return context_call([&](Context& context) {
        require(function != nullptr);
        *function = reinterpret_cast<CUfunction>(find_kernel(handle)->function(context).get());
    });
}

SOFTGPU_API CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                          CUdevice device) {
    return call([&] {
        require(value != nullptr);
        *value = find_kernel(handle)->attribute(attribute, Driver::get().device(device));
    });
}

SOFTGPU_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                          CUdevice device) {
    return call([&] { find_kernel(handle)->set_attribute(attribute, value, Driver::get().device(device)); });
}

SOFTGPU_API CUresult cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice device) {
    return call([&] {
        (void)find_kernel(handle);
        (void)Driver::get().device(device);
    });
}

SOFTGPU_API CUresult cuKernelGetName(const char** name, CUkernel handle) {
    return call([&] {
        require(name != nullptr);
        *name = find_kernel(handle)->kernel().name.c_str();
    });
}

SOFTGPU_API CUresult cuKernelGetParamInfo(CUkernel handle, std::size_t index, std::size_t* offset,
                                          std::size_t* size) {
    return call([&] {
        const auto kernel = find_kernel(handle);
        const auto& parameters = kernel->kernel().parameters;
        require(offset != nullptr && index < parameters.size());
        *offset = parameters[index].offset;
        if (size != nullptr)
            *size = parameters[index].size;
    });
}

SOFTGPU_API CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel handle) {
    return call([&] {
        require(library != nullptr);
        *library = reinterpret_cast<CUlibrary>(&find_kernel(handle)->library());
    });
}
