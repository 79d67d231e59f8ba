// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cudart/registry.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

/// A thread's recent lookups, so that a launch takes no lock.
struct CachedKernel {
    const void* host = nullptr;
    CUkernel kernel = nullptr;
    unsigned generation = 0;
};
constexpr std::size_t kCachedKernels = 64;
thread_local constinit std::array<CachedKernel, kCachedKernels> kernel_cache{};

CachedKernel& cache_slot(const void* host) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(host);
    return kernel_cache[((bits >> 4) ^ (bits >> 10)) % kCachedKernels];
}

} // namespace

Registry& Registry::instance() {
    static auto* const registry = new Registry;
    return *registry;
}

Image* Registry::add_image(const void* wrapper) {
    auto image = std::make_unique<Image>();
    image->wrapper = wrapper;
    const std::unique_lock lock(mutex_);
    return images_.emplace_back(std::move(image)).get();
}

void Registry::add_kernel(Image& image, const void* host, const char* name) {
    auto kernel = std::make_unique<Kernel>();
    kernel->image = &image;
    kernel->name = name;
    const std::unique_lock lock(mutex_);
    // The same template instance in two objects: both images hold it, any of them will do.
    kernels_.try_emplace(host, std::move(kernel));
}

void Registry::add_variable(Image& image, const void* host, const char* name, std::size_t size,
                            void** managed) {
    auto variable = std::make_unique<Variable>();
    variable->image = &image;
    variable->name = name;
    variable->size = size;
    variable->managed = managed;
    if (managed)
        image.has_managed = true;
    const std::unique_lock lock(mutex_);
    variables_.try_emplace(host, std::move(variable));
}

void Registry::remove_image(Image& image) {
    const std::unique_lock lock(mutex_);
    std::erase_if(kernels_, [&](const auto& entry) { return entry.second->image == &image; });
    std::erase_if(variables_, [&](const auto& entry) { return entry.second->image == &image; });
    generation_.fetch_add(1, std::memory_order_acq_rel);
    if (image.library && !exiting_.load(std::memory_order_relaxed))
        (void)driver().cuLibraryUnload(image.library);
    std::erase_if(images_, [&](const auto& held) { return held.get() == &image; });
}

cudaError_t Registry::load(Image& image) {
    const std::lock_guard lock(image.mutex);
    if (image.library)
        return cudaSuccess;
    return to_error(
        driver().cuLibraryLoadData(&image.library, image.wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0));
}

cudaError_t Registry::resolve(Kernel& kernel, CUkernel& handle) {
    handle = kernel.handle.load(std::memory_order_acquire);
    if (handle)
        return cudaSuccess;
    if (const cudaError_t error = load(*kernel.image); error != cudaSuccess)
        return error;
    const CUresult result = driver().cuLibraryGetKernel(&handle, kernel.image->library, kernel.name.c_str());
    if (result == CUDA_ERROR_NOT_FOUND)
        return cudaErrorInvalidDeviceFunction;
    if (result != CUDA_SUCCESS)
        return to_error(result);
    kernel.handle.store(handle, std::memory_order_release);
    return cudaSuccess;
}

cudaError_t Registry::find_kernel(const void* host, CUkernel& kernel) {
    CachedKernel& cached = cache_slot(host);
    const unsigned generation = generation_.load(std::memory_order_acquire);
    if (cached.host == host && cached.generation == generation) [[likely]] {
        kernel = cached.kernel;
        return cudaSuccess;
    }
    const std::shared_lock lock(mutex_);
    if (const auto entry = kernels_.find(host); entry != kernels_.end()) {
        if (const cudaError_t error = resolve(*entry->second, kernel); error != cudaSuccess)
            return error;
    } else if (handles_.contains(host)) {
        kernel = static_cast<CUkernel>(const_cast<void*>(host));
    } else {
        return cudaErrorInvalidDeviceFunction;
    }
    cached = {host, kernel, generation};
    return cudaSuccess;
}

const char* Registry::kernel_name(const void* host) {
    const std::shared_lock lock(mutex_);
    const auto entry = kernels_.find(host);
    return entry == kernels_.end() ? nullptr : entry->second->name.c_str();
}

void Registry::allow_kernel(CUkernel kernel) {
    const std::unique_lock lock(mutex_);
    handles_.insert(kernel);
}

cudaError_t Registry::find_variable(const void* host, Variable::Place& place) {
    int device = 0;
    if (const cudaError_t error = current_device(device); error != cudaSuccess)
        return error;
    // Each context has its own copy. Only that of the primary context is kept: others come and go unseen.
    const bool keep = primary_is_current(device);
    const std::unique_lock lock(mutex_);
    const auto entry = variables_.find(host);
    if (entry == variables_.end())
        return cudaErrorInvalidSymbol;
    Variable& variable = *entry->second;
    if (variable.places.size() <= static_cast<std::size_t>(device))
        variable.places.resize(static_cast<std::size_t>(device) + 1);
    Variable::Place& kept = variable.places[static_cast<std::size_t>(device)];
    if (keep && kept.address) {
        place = kept;
        return cudaSuccess;
    }
    if (const cudaError_t error = load(*variable.image); error != cudaSuccess)
        return error;
    const auto lookup = variable.managed ? driver().cuLibraryGetManaged : driver().cuLibraryGetGlobal;
    const CUresult result =
        lookup(&place.address, &place.size, variable.image->library, variable.name.c_str());
    if (result == CUDA_ERROR_NOT_FOUND)
        return cudaErrorInvalidSymbol;
    if (result == CUDA_SUCCESS && keep)
        kept = place;
    return to_error(result);
}

cudaError_t Registry::place_managed(Image& image) {
    if (!image.has_managed)
        return cudaSuccess;
    std::vector<std::pair<const void*, void**>> wanted;
    {
        const std::shared_lock lock(mutex_);
        for (const auto& [host, variable] : variables_)
            if (variable->image == &image && variable->managed && !*variable->managed)
                wanted.emplace_back(host, variable->managed);
    }
    for (const auto& [host, pointer] : wanted) {
        Variable::Place place;
        if (const cudaError_t error = find_variable(host, place); error != cudaSuccess) {
            std::fprintf(stderr,
                         "libcudart: this program has __managed__ variables, which this driver cannot "
                         "provide (%s); use "
                         "__device__ variables and cudaMemcpyToSymbol instead\n",
                         cudaGetErrorName(error));
            return error;
        }
        *pointer = reinterpret_cast<void*>(place.address);
    }
    return cudaSuccess;
}

void Registry::forget_addresses(int device) {
    const std::unique_lock lock(mutex_);
    for (auto& [host, variable] : variables_)
        if (static_cast<std::size_t>(device) < variable->places.size())
            variable->places[device] = {};
}

} // namespace vgpu::cudart
