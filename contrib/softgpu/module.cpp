// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/module.h"

#include "contrib/softgpu/driver.h"
#include "contrib/softgpu/error.h"
#include "contrib/softgpu/image.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace softgpu {
namespace {

constexpr int usual_shared_bytes = 48 * 1024;

std::unique_ptr<ptx::Module> compile(std::string_view ptx, const ptx::GlobalAllocator& allocate,
                                     JitOptions& options) {
    try {
        return ptx::Module::load(ptx, allocate);
    } catch (const ptx::ParseError& error) {
        options.error(error.what());
        complain(error.what());
        throw Error(CUDA_ERROR_INVALID_PTX);
    }
}

} // namespace

// ---- JitOptions ----

JitOptions::JitOptions(unsigned count, const CUjit_option* options, void** values) {
    require(count == 0 || (options != nullptr && values != nullptr));
    for (unsigned i = 0; i < count; ++i) {
        const auto size = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(values[i]) & 0xffffffff);
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            info_.buffer = static_cast<char*>(values[i]);
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            info_.size = size;
            info_.filled = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            error_.buffer = static_cast<char*>(values[i]);
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            error_.size = size;
            error_.filled = &values[i];
            break;
        default: // how to optimise: there is one way only
            break;
        }
    }
    info("");
    error("");
}

void JitOptions::write(Log& log, const std::string& text) {
    std::size_t length = 0;
    if (log.buffer != nullptr && log.size > 0) {
        length = std::min(text.size(), log.size - 1);
        std::memcpy(log.buffer, text.data(), length);
        log.buffer[length] = '\0';
    }
    if (log.filled != nullptr)
        *log.filled = reinterpret_cast<void*>(static_cast<std::uintptr_t>(length));
}

std::string ptx_of(const void* image, int capability, JitOptions& options) {
    require(image != nullptr);
    try {
        return find_ptx(image, capability);
    } catch (const ImageError& error) {
        options.error(error.what());
        complain(error.what());
        throw Error(error.code());
    }
}

// ---- attributes of functions ----

int kernel_attribute(const ptx::Kernel& kernel, CUfunction_attribute attribute, const Device& device) {
    switch (static_cast<int>(attribute)) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        return static_cast<int>(std::min<std::uint32_t>(kernel.max_threads, 1024));
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        return static_cast<int>(kernel.static_shared_bytes);
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        return 0;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        return static_cast<int>(kernel.local_bytes);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        return static_cast<int>(std::clamp<std::uint32_t>(kernel.registers, 1, 255));
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        return kernel.target;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        return device.capability();
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
        return 0;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return std::max(0, usual_shared_bytes - static_cast<int>(kernel.static_shared_bytes));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return -1;
    default:
        // Clusters: none are required.
        require(attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
        return 0;
    }
}

void check_settable(const ptx::Kernel& kernel, CUfunction_attribute attribute, int value,
                    const Device& device) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        require(value >= 0 && value <= device.resources().shared_bytes_optin -
                                           static_cast<int>(kernel.static_shared_bytes));
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        require(value >= -1 && value <= 100);
        break;
    default:
        throw Error(CUDA_ERROR_INVALID_VALUE);
    }
}

int Function::attribute(CUfunction_attribute attribute) const {
    {
        const std::lock_guard guard(mutex_);
        if (const auto found = set_.find(attribute); found != set_.end())
            return found->second;
    }
    return kernel_attribute(kernel_, attribute, module_.context().device());
}

void Function::set_attribute(CUfunction_attribute attribute, int value) {
    check_settable(kernel_, attribute, value, module_.context().device());
    const std::lock_guard guard(mutex_);
    set_[attribute] = value;
}

std::uint32_t Function::max_dynamic_shared() const {
    return static_cast<std::uint32_t>(attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
}

// ---- Module ----

std::shared_ptr<Module> Module::load(Context& context, std::string_view ptx, JitOptions& options) {
    auto& driver = Driver::get();
    const std::shared_ptr<Module> module(new Module(context));
    const auto allocate = [&](std::uint64_t bytes, std::uint64_t, bool constant) -> std::uint64_t {
        // Page-aligned, which is more than any variable can ask for.
        Allocation wanted;
        wanted.size = std::max<std::uint64_t>(bytes, 1);
        wanted.kind = constant ? MemoryKind::constant : MemoryKind::device;
        wanted.device = context.device().index();
        wanted.context = context.id();
        const auto address = driver.memory().allocate(wanted);
        module->memory_.emplace_back(address, driver.memory().find(address)->id);
        return address;
    };
    module->code_ = compile(ptx, allocate, options);
    // Only then does a context need a heap. The name may stand in a comment, which costs a little memory.
    module->uses_heap_ = ptx.find("malloc") != std::string_view::npos;
    for (const auto& kernel : module->code_->kernels()) {
        auto& function = module->functions_.emplace_back(*module, kernel);
        driver.functions.add<CUfunction>(std::shared_ptr<Function>(module, &function));
    }
    return module;
}

Module::~Module() {
    code_ = nullptr;
    for (const auto& [address, id] : memory_)
        // A context that was cleared has freed it already.
        (void)Driver::get().memory().remove(address,
                                            [id = id](const Allocation& other) { return other.id == id; });
}

Function* Module::find(std::string_view name) {
    const auto found = std::find_if(functions_.begin(), functions_.end(),
                                    [&](const Function& function) { return function.kernel().name == name; });
    return found != functions_.end() ? &*found : nullptr;
}

void Module::unlist() {
    auto& driver = Driver::get();
    for (const auto& function : functions_)
        driver.functions.remove(&function);
    driver.modules.remove(this);
}

// ---- Library ----

std::shared_ptr<Library> Library::load(Context* context, const void* image, int capability,
                                       JitOptions& options) {
    auto library = std::make_shared<Library>();
    library->ptx_ = ptx_of(image, capability, options);
    std::vector<std::vector<std::byte>> scratch; // variables that nobody will ever use
    std::unique_ptr<ptx::Module> alone;
    if (context != nullptr) {
        const auto module = Module::load(*context, library->ptx_, options);
        Driver::get().modules.add<CUmodule>(module);
        library->modules_[context->id()] = module;
        for (const auto& function : module->functions())
            library->kernels_.emplace_back(*library, function.kernel());
    } else {
        const auto allocate = [&](std::uint64_t bytes, std::uint64_t align, bool) {
            auto& room = scratch.emplace_back(bytes + align);
            const auto address = reinterpret_cast<std::uint64_t>(room.data());
            return (address + align - 1) / align * align;
        };
        alone = compile(library->ptx_, allocate, options);
        for (const auto& kernel : alone->kernels())
            library->kernels_.emplace_back(*library, kernel);
    }
    for (auto& kernel : library->kernels_)
        Driver::get().kernels.add<CUkernel>(std::shared_ptr<LibraryKernel>(library, &kernel));
    return library;
}

std::shared_ptr<Module> Library::module(Context& context) {
    const std::lock_guard guard(mutex_);
    auto& module = modules_[context.id()];
    if (!module) {
        JitOptions options;
        module = Module::load(context, ptx_, options);
        Driver::get().modules.add<CUmodule>(module);
    }
    return module;
}

LibraryKernel* Library::find(std::string_view name) {
    const auto found = std::find_if(kernels_.begin(), kernels_.end(), [&](const LibraryKernel& kernel) {
        return kernel.kernel().name == name;
    });
    return found != kernels_.end() ? &*found : nullptr;
}

void Library::forget(const Context& context) {
    const std::lock_guard guard(mutex_);
    modules_.erase(context.id());
}

void Library::unlist() {
    auto& driver = Driver::get();
    for (const auto& kernel : kernels_)
        driver.kernels.remove(&kernel);
    driver.libraries.remove(this);
    const std::lock_guard guard(mutex_);
    for (const auto& [context, module] : modules_)
        module->unlist();
}

std::shared_ptr<Function> LibraryKernel::function(Context& context) {
    const auto module = library_.module(context);
    auto* found = module->find(kernel_.name);
    require(found != nullptr, CUDA_ERROR_NOT_FOUND);
    const std::lock_guard guard(mutex_);
    for (const auto& [key, value] : set_)
        if (key.first == context.device().index())
            found->set_attribute(static_cast<CUfunction_attribute>(key.second), value);
    return {module, found};
}

int LibraryKernel::attribute(CUfunction_attribute attribute, Device& device) {
    {
        const std::lock_guard guard(mutex_);
        if (const auto found = set_.find({device.index(), attribute}); found != set_.end())
            return found->second;
    }
    return kernel_attribute(kernel_, attribute, device);
}

void LibraryKernel::set_attribute(CUfunction_attribute attribute, int value, Device& device) {
    check_settable(kernel_, attribute, value, device);
    const std::lock_guard guard(mutex_);
    set_[{device.index(), attribute}] = value;
}

std::shared_ptr<Function> find_function(const void* handle, Context& context) {
    auto& driver = Driver::get();
    if (auto function = driver.functions.find(handle))
        return function;
    const auto kernel = driver.kernels.find(handle);
    require(kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return kernel->function(context);
}

} // namespace softgpu
