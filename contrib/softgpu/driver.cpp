// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/driver.h"

#include "contrib/softgpu/call.h"
#include "contrib/softgpu/error.h"
#include "contrib/softgpu/memory_pool.h"
#include "contrib/softgpu/module.h"
#include "contrib/softgpu/virtual_memory.h"

#include <pthread.h>
#include <stdexcept>

namespace softgpu {

Driver::Driver() = default;
Driver::~Driver() = default;

Driver& Driver::get() {
    static auto* driver = new Driver; // not destroyed on purpose, see driver.h
    return *driver;
}

CUresult Driver::initialize() {
    const std::lock_guard guard(mutex_);
    if (tried_)
        return state_;
    tried_ = true;
    auto result = CUDA_SUCCESS;
    try {
        config_ = Config::load();
        memory_ = std::make_unique<Memory>();
        virtual_memory_ = std::make_unique<VirtualMemory>(*memory_);
        for (int i = 0; i < config_.devices; ++i) {
            devices_.push_back(std::make_unique<Device>(i, config_));
            memory_->add_device(devices_.back()->shared());
            add_default_pool(*devices_.back());
        }
        ::pthread_atfork(nullptr, nullptr, [] { Driver::get().abandon(); });
    } catch (const ConfigError& error) {
        complain(error.what());
        result = CUDA_ERROR_INVALID_VALUE;
    } catch (const std::bad_alloc&) {
        complain("the addresses that the devices need could not be reserved: 64 GiB, and the memory of all "
                 "devices, "
                 "must fit into the limit of the address space (ulimit -v)");
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        complain(error.what());
        result = CUDA_ERROR_OPERATING_SYSTEM;
    }
    state_.store(result, std::memory_order_release);
    return result;
}

void Driver::abandon() noexcept {
    state_ = CUDA_ERROR_NOT_INITIALIZED;
    for (const auto& device : devices_)
        device->shared().abandon();
}

Device& Driver::device(CUdevice device) const {
    require(device >= 0 && device < device_count(), CUDA_ERROR_INVALID_DEVICE);
    return *devices_[static_cast<std::size_t>(device)];
}

std::shared_ptr<Context> Driver::context(CUcontext handle) const {
    if (auto found = contexts.find(handle))
        return found;
    for (const auto& device : devices_)
        if (device->primary().get() == reinterpret_cast<Context*>(handle))
            return device->primary();
    throw Error(CUDA_ERROR_INVALID_CONTEXT);
}

void Driver::synchronize_all() {
    for (const auto& device : devices_)
        (void)device->primary()->synchronize();
    for (const auto& context : contexts.all())
        (void)context->synchronize();
}

void Driver::remove_modules(const Context& context) {
    functions.remove_if([&](const Function& function) { return &function.module().context() == &context; });
    modules.remove_if([&](const Module& module) { return &module.context() == &context; });
    for (const auto& library : libraries.all())
        library->forget(context);
}

} // namespace softgpu

SOFTGPU_API CUresult cuInit(unsigned int flags) {
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return softgpu::Driver::get().initialize();
}

SOFTGPU_API CUresult cuDriverGetVersion(int* version) {
    if (version == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

// NVIDIA's private tables are none of this library's business: it has the public API only.
SOFTGPU_API CUresult cuGetExportTable(const void** table, const CUuuid* id) {
    if (table == nullptr || id == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    *table = nullptr;
    return CUDA_ERROR_NOT_SUPPORTED;
}

// There is no profiler that these could switch: programs call them around what a profiler should see.
SOFTGPU_API CUresult cuProfilerStart() {
    return softgpu::context_call([](softgpu::Context&) {});
}
SOFTGPU_API CUresult cuProfilerStop() {
    return softgpu::context_call([](softgpu::Context&) {});
}
