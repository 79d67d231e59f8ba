// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The kernels and variables that the program's objects announce before main(), by the address of their host
// twin. Images are handed to the driver at the first use of anything in them.

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ucx_forwarder/client/cudart/driver.h"

namespace vgpu::cudart {

/// One image (a fatbin's wrapper), which lives as long as the object that registered it.
struct Image {
    const void* wrapper = nullptr;
    std::mutex mutex;            // loading
    CUlibrary library = nullptr; // null until the first use
    bool has_managed = false;
};

struct Kernel {
    Image* image = nullptr;
    std::string name;
    std::atomic<CUkernel> handle{nullptr};
};

struct Variable {
    struct Place {
        CUdeviceptr address = 0;
        std::size_t size = 0;
    };
    Image* image = nullptr;
    std::string name;
    std::size_t size = 0;
    void** managed = nullptr;  // where the program keeps the address of a __managed__ variable
    std::vector<Place> places; // in the primary context of each device; address 0 = not looked up
};

class Registry {
public:
    static Registry& instance();

    Image* add_image(const void* wrapper);
    void add_kernel(Image& image, const void* host, const char* name);
    void add_variable(Image& image, const void* host, const char* name, std::size_t size, void** managed);
    /// Forgets everything of `image`; unloads it unless the process is about to end, when the driver cleans
    /// up itself.
    void remove_image(Image& image);

    /// The driver's handle of the kernel whose host function is `host`, loading its image if need be. Takes a
    /// handle made by cudaGetKernel or the library functions as well. cudaErrorInvalidDeviceFunction if it is
    /// neither.
    [[nodiscard]] cudaError_t find_kernel(const void* host, CUkernel& kernel);
    /// The name of a registered kernel, or null.
    [[nodiscard]] const char* kernel_name(const void* host);
    /// Allows `kernel` wherever a function is asked for.
    void allow_kernel(CUkernel kernel);

    /// Address in the current context, and size. A context is current.
    [[nodiscard]] cudaError_t find_variable(const void* host, Variable::Place& place);
    /// Fills in the host pointers of the image's __managed__ variables.
    [[nodiscard]] cudaError_t place_managed(Image& image);
    void forget_addresses(int device);

    void begin_exit() noexcept { exiting_.store(true, std::memory_order_relaxed); }

private:
    Registry() = default;
    [[nodiscard]] cudaError_t load(Image& image);
    [[nodiscard]] cudaError_t resolve(Kernel& kernel, CUkernel& handle);

    std::shared_mutex mutex_;
    std::vector<std::unique_ptr<Image>> images_;
    std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels_;
    std::unordered_map<const void*, std::unique_ptr<Variable>> variables_;
    std::unordered_set<const void*> handles_;
    std::atomic<unsigned> generation_{1}; // moves when a host address may get another meaning
    std::atomic<bool> exiting_{false};
};

} // namespace vgpu::cudart
