// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cudart/runtime.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "ucx_forwarder/client/cudart/device.h"
#include "ucx_forwarder/client/cudart/registry.h"

namespace vgpu::cudart {

thread_local constinit cudaError_t last_error = cudaSuccess;

namespace {

/// The primary contexts this library holds. `generation` moves with each cudaDeviceReset: a thread whose
/// generation is older may have a destroyed context current.
struct Contexts {
    struct Primary {
        CUcontext context = nullptr;
        bool retained = false; // false with a context: that one was destroyed by a reset
    };
    std::mutex mutex;
    std::vector<Primary> held; // by device
    std::atomic<unsigned> generation{1};
};

Contexts& contexts() {
    static auto* const instance = new Contexts;
    return *instance;
}

struct ThreadState {
    int device = 0;
    unsigned generation = 0;
};
thread_local constinit ThreadState thread_state;

cudaError_t start_driver() {
    const Driver& d = driver();
    if (d.state != CUDA_SUCCESS)
        return cudaErrorInsufficientDriver;
    const CUresult result = d.cuInit(0);
    // Handlers run in reverse order: this one before those by which the program's objects unregister their
    // kernels.
    std::atexit([] { Registry::instance().begin_exit(); });
    return to_error(result);
}

cudaError_t bind_context() noexcept {
    const Driver& d = driver();
    Contexts& all = contexts();
    CUcontext current = nullptr;
    if (const CUresult result = d.cuCtxGetCurrent(&current); result != CUDA_SUCCESS)
        return to_error(result);
    const unsigned generation = all.generation.load(std::memory_order_acquire);
    if (current) {
        CUdevice device = 0;
        bool valid = d.cuCtxGetDevice(&device) == CUDA_SUCCESS;
        if (valid) {
            const std::lock_guard lock(all.mutex);
            valid = device >= static_cast<int>(all.held.size()) || all.held[device].context != current ||
                    all.held[device].retained;
        }
        if (valid) {
            thread_state.generation = generation;
            return cudaSuccess;
        }
    }
    CUcontext context = nullptr;
    if (const cudaError_t error = primary_context(thread_state.device, context); error != cudaSuccess)
        return error;
    const CUresult result = d.cuCtxSetCurrent(context);
    if (result == CUDA_SUCCESS)
        thread_state.generation = generation;
    return to_error(result);
}

} // namespace

cudaError_t start() noexcept {
    static const cudaError_t result = start_driver();
    return result;
}

cudaError_t primary_context(int device, CUcontext& context) noexcept {
    if (const cudaError_t error = check_device(device); error != cudaSuccess)
        return error;
    Contexts& all = contexts();
    const std::lock_guard lock(all.mutex);
    if (all.held.size() <= static_cast<std::size_t>(device))
        all.held.resize(device + 1);
    Contexts::Primary& primary = all.held[device];
    if (!primary.retained) {
        CUcontext made = nullptr;
        if (const CUresult result = driver().cuDevicePrimaryCtxRetain(&made, device); result != CUDA_SUCCESS)
            return to_error(result);
        primary = {made, true};
    }
    context = primary.context;
    return cudaSuccess;
}

bool primary_is_current(int device) noexcept {
    CUcontext current = nullptr;
    if (driver().cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
        return false;
    Contexts& all = contexts();
    const std::lock_guard lock(all.mutex);
    const auto index = static_cast<std::size_t>(device);
    return index < all.held.size() && all.held[index].retained && all.held[index].context == current;
}

cudaError_t enter_context() noexcept {
    if (const cudaError_t error = start(); error != cudaSuccess) [[unlikely]]
        return error;
    CUcontext current = nullptr;
    if (driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current &&
        thread_state.generation == contexts().generation.load(std::memory_order_acquire)) [[likely]]
        return cudaSuccess;
    return bind_context();
}

cudaError_t check_device(int device) noexcept {
    int count = 0;
    if (const CUresult result = driver().cuDeviceGetCount(&count); result != CUDA_SUCCESS)
        return to_error(result);
    if (count == 0)
        return cudaErrorNoDevice;
    return device >= 0 && device < count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t current_device(int& device) noexcept {
    CUcontext current = nullptr;
    CUdevice of_context = 0;
    if (driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current &&
        driver().cuCtxGetDevice(&of_context) == CUDA_SUCCESS)
        device = of_context;
    else
        device = thread_state.device;
    return cudaSuccess;
}

cudaError_t select_device(int device) noexcept {
    CUcontext context = nullptr;
    if (const cudaError_t error = primary_context(device, context); error != cudaSuccess)
        return error;
    if (const CUresult result = driver().cuCtxSetCurrent(context); result != CUDA_SUCCESS)
        return to_error(result);
    thread_state.device = device;
    thread_state.generation = contexts().generation.load(std::memory_order_acquire);
    return cudaSuccess;
}

cudaError_t reset_device(int device) noexcept {
    const Driver& d = driver();
    Contexts& all = contexts();
    Registry::instance().forget_addresses(device);
    const std::lock_guard lock(all.mutex);
    const CUresult result = d.cuDevicePrimaryCtxReset(device);
    if (result != CUDA_SUCCESS)
        return to_error(result);
    if (static_cast<std::size_t>(device) < all.held.size() && all.held[device].retained) {
        // A reset leaves the reference that was taken by retaining.
        (void)d.cuDevicePrimaryCtxRelease(device);
        all.held[device].retained = false;
    }
    all.generation.fetch_add(1, std::memory_order_acq_rel);
    (void)d.cuCtxSetCurrent(nullptr);
    thread_state.device = device;
    return cudaSuccess;
}

} // namespace vgpu::cudart
