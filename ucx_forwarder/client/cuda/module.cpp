// SPDX-License-Identifier: BSD-3-Clause
// Modules: an image loaded into one context. All kernels, their attributes and parameters come with the
// answer to the load, so that looking a function up costs nothing.
#include "ucx_forwarder/client/cuda/module.h"

#include "ucx_forwarder/client/cuda/image.h"
#include "ucx_forwarder/protocol/jit_options.h"

#include <bit>
#include <fstream>
#include <iterator>
#include <utility>

namespace vgpu::client {

CUresult load_module(Context& context, std::span<const std::byte> image, std::span<const std::byte> encoded,
                     CUlibrary library, const JitArguments& report, CUmodule& result) {
    auto made = client().modules.make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    Module& module = *made.object;
    module.context = &context;
    module.id = context.session().new_id();
    module.handle = std::bit_cast<CUmodule>(made.handle);
    module.library = library;
    module.state = std::make_shared<ModuleState>();
    ModuleSnapshot& snapshot = module.state->snapshot;
    CUresult status = context.session().load_module(context.id, module.id, image, encoded, snapshot);
    protocol::return_jit_results(snapshot, report.count, report.options, report.values);
    if (status != CUDA_SUCCESS) {
        client().modules.recycle(made.handle);
        return status;
    }
    for (std::uint32_t i = 0; i < snapshot.kernels.size(); ++i)
        module.state->by_name.emplace(snapshot.kernels[i].name, i);
    module.state->functions.resize(snapshot.kernels.size());
    client().modules.publish(made.handle);
    result = module.handle;
    return CUDA_SUCCESS;
}

CUresult unload_module(CUmodule handle) {
    auto& table = client().modules;
    Module* module = table.find(handle);
    if (!module || !table.close(std::bit_cast<std::uint64_t>(handle)))
        return CUDA_ERROR_INVALID_HANDLE;
    {
        std::lock_guard lock(module->state->mutex);
        for (CUfunction& function : module->state->functions)
            if (function)
                client().functions.remove(std::exchange(function, nullptr));
        for (const auto& [name, global] : module->state->globals)
            module->context->memory().take(global.first,
                                           [](const Range& r) { return r.origin == Range::Origin::symbol; });
    }
    CUresult status = module->context->call<Call::cuModuleUnload>(module->id);
    table.recycle(std::bit_cast<std::uint64_t>(handle));
    return status;
}

CUresult function_at(Module& module, std::uint32_t place, CUfunction& result) {
    ModuleState& state = *module.state;
    std::lock_guard lock(state.mutex);
    if (!state.functions[place]) {
        auto made = client().functions.make();
        if (!made.object)
            return CUDA_ERROR_OUT_OF_MEMORY;
        Function& f = *made.object;
        f.context = module.context;
        f.id = protocol::kernel_id(module.id, place);
        f.module = module.handle;
        f.state = module.state;
        f.info = &state.snapshot.kernels[place];
        f.parameter_bytes = f.info->parameter_bytes();
        f.max_threads = f.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        f.static_shared = f.attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        f.max_dynamic_shared = f.attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        client().functions.publish(made.handle);
        state.functions[place] = std::bit_cast<CUfunction>(made.handle);
    }
    result = state.functions[place];
    return CUDA_SUCCESS;
}

CUresult function_by_name(Module& module, std::string_view name, CUfunction& result) {
    auto found = module.state->by_name.find(name);
    return found == module.state->by_name.end() ? CUDA_ERROR_NOT_FOUND
                                                : function_at(module, found->second, result);
}

CUresult global_of(Module& module, const char* name, CUdeviceptr* pointer, std::size_t* size) {
    ModuleState& state = *module.state;
    std::lock_guard lock(state.mutex);
    auto known = state.globals.find(std::string_view(name));
    if (known == state.globals.end()) {
        CUdeviceptr address = 0;
        std::size_t bytes = 0;
        VGPU_TRY(module.context->call<Call::cuModuleGetGlobal_v2>(&address, &bytes, module.id, name));
        known = state.globals.emplace(name, std::pair(address, bytes)).first;
        if (bytes > 0)
            VGPU_TRY(
                remember(*module.context, {.base = address, .size = bytes, .origin = Range::Origin::symbol}));
    }
    if (pointer)
        *pointer = known->second.first;
    if (size)
        *size = known->second.second;
    return CUDA_SUCCESS;
}

CUresult read_file(const char* path, std::vector<std::byte>& content) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        return CUDA_ERROR_FILE_NOT_FOUND;
    std::vector<char> text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    text.push_back(0);
    auto bytes = std::as_bytes(std::span(text));
    content.assign(bytes.begin(), bytes.end());
    return CUDA_SUCCESS;
}

namespace {

CUresult load(CUmodule* result, const void* data, const JitArguments& jit) {
    Context* context;
    VGPU_TRY(current(context));
    if (!result || !data || (jit.count > 0 && (!jit.options || !jit.values)))
        return CUDA_ERROR_INVALID_VALUE;
    auto image = find_image(data);
    if (!image)
        return CUDA_ERROR_INVALID_IMAGE;
    auto encoded = protocol::encode_jit_options(jit.count, jit.options, jit.values);
    return load_module(*context, *image, encoded, nullptr, jit, *result);
}

CUresult module_of(CUmodule handle, Module*& module) {
    VGPU_TRY(client().ready());
    module = client().modules.find(handle);
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuModuleLoad(CUmodule* module, const char* fname) {
    Context* context;
    VGPU_TRY(current(context));
    if (!module || !fname)
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> content;
    VGPU_TRY(read_file(fname, content));
    return load(module, content.data(), {});
}

VGPU_API cuModuleLoadData(CUmodule* module, const void* image) {
    return load(module, image, {});
}

VGPU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
    return load(module, image, {numOptions, options, optionValues});
}

VGPU_API cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
    return load(module, fatCubin, {});
}

VGPU_API cuModuleUnload(CUmodule hmod) {
    Module* module;
    VGPU_TRY(module_of(hmod, module));
    return module->library ? CUDA_ERROR_NOT_PERMITTED : unload_module(hmod);
}

VGPU_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    VGPU_TRY(client().ready());
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

VGPU_API cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
    Module* module;
    VGPU_TRY(module_of(hmod, module));
    if (!hfunc || !name)
        return CUDA_ERROR_INVALID_VALUE;
    return function_by_name(*module, name, *hfunc);
}

VGPU_API cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
    Module* module;
    VGPU_TRY(module_of(mod, module));
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = unsigned(module->state->snapshot.kernels.size());
    return CUDA_SUCCESS;
}

VGPU_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
    Module* module;
    VGPU_TRY(module_of(mod, module));
    if (!functions && numFunctions > 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < numFunctions && i < module->state->functions.size(); ++i)
        VGPU_TRY(function_at(*module, i, functions[i]));
    return CUDA_SUCCESS;
}

VGPU_API cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
    Module* module;
    VGPU_TRY(module_of(hmod, module));
    if (!name || (!dptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return global_of(*module, name, dptr, bytes);
}
