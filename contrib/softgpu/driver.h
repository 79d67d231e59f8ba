// SPDX-License-Identifier: BSD-3-Clause
// The driver of this process: its devices and all that programs hold handles of.
#pragma once

#include "contrib/softgpu/config.h"
#include "contrib/softgpu/context.h"
#include "contrib/softgpu/device.h"
#include "contrib/softgpu/handles.h"
#include "contrib/softgpu/memory.h"
#include "contrib/softgpu/stream.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace softgpu {

class Function;
class Library;
class LibraryKernel;
class LinkState;
class MemoryPool;
class Module;
class PhysicalMemory;
class VirtualMemory;

class Driver {
public:
    // Made at first use and never destroyed: programs call the driver until their very end.
    [[nodiscard]] static Driver& get();

    // cuInit. Further calls give the first one's result.
    [[nodiscard]] CUresult initialize();
    // NOT_INITIALIZED before cuInit and in a child of a process that had called it.
    [[nodiscard]] CUresult state() const { return state_.load(std::memory_order_acquire); }
    void abandon() noexcept; // in the child of a fork

    [[nodiscard]] const Config& config() const { return config_; }
    [[nodiscard]] Memory& memory() { return *memory_; }
    [[nodiscard]] VirtualMemory& virtual_memory() { return *virtual_memory_; }
    [[nodiscard]] int device_count() const { return static_cast<int>(devices_.size()); }
    [[nodiscard]] Device& device(CUdevice device) const; // throws Error
    // Throws Error (INVALID_CONTEXT) if the handle is none.
    [[nodiscard]] std::shared_ptr<Context> context(CUcontext handle) const;
    // Waits for the work of all contexts: memory may then be taken away.
    void synchronize_all();
    void remove_modules(const Context& context);

    Handles<Context> contexts;
    Handles<Stream> streams;
    Handles<Event> events;
    Handles<Module> modules;
    Handles<Function> functions;
    Handles<Library> libraries;
    Handles<LibraryKernel> kernels;
    Handles<LinkState> links;
    Handles<MemoryPool> pools;
    Handles<PhysicalMemory> physical;

private:
    Driver();
    ~Driver();
    std::mutex mutex_;
    std::atomic<CUresult> state_{CUDA_ERROR_NOT_INITIALIZED};
    bool tried_ = false;
    Config config_;
    std::unique_ptr<Memory> memory_;
    std::unique_ptr<VirtualMemory> virtual_memory_;
    std::vector<std::unique_ptr<Device>> devices_;
};

} // namespace softgpu
