// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/driver.h"

#include <dlfcn.h>

namespace vgpu::worker {

namespace {

/// What stands in for a function that an older driver lacks. One for each signature, so that the call is
/// well-defined.
template <class... A>
CUresult CUDAAPI not_supported(A...) {
    return CUDA_ERROR_NOT_SUPPORTED;
}
template <class... A>
void find(void* library, const char* name, CUresult(CUDAAPI*& function)(A...)) {
    function = reinterpret_cast<CUresult(CUDAAPI*)(A...)>(dlsym(library, name));
    if (function == nullptr) {
        function = not_supported<A...>;
    }
}

} // namespace

void Driver::Close::operator()(void*) const {
    // Never closed: a driver's threads and exit handlers outlive every user of it.
}

Driver::Driver(const std::string& library) : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
        const char* error = dlerror();
        throw DriverError(
            "the CUDA driver library " + library + " cannot be opened (" +
            (error != nullptr ? error : "no reason given") +
            "); check CudaLibrary in vgpu.conf and that the driver is installed on the GPU node");
    }
#define VGPU_DRIVER_FIND(name, ...) find(library_.get(), #name, this->name);
    VGPU_DRIVER_FUNCTIONS(VGPU_DRIVER_FIND)
    VGPU_DRIVER_NEWER_FUNCTIONS(VGPU_DRIVER_FIND)
#undef VGPU_DRIVER_FIND
    for (std::size_t i = 0; i < calls_.size(); ++i) {
        calls_[i] = dlsym(library_.get(), std::string(protocol::call_table[i].name).c_str());
    }
    if (const CUresult status = cuInit(0); status != CUDA_SUCCESS) {
        throw DriverError("the CUDA driver " + library + " does not start: cuInit gives " + name_of(status) +
                          "; run nvidia-smi or the like on the GPU node to see whether it sees its GPUs");
    }
}

std::string Driver::name_of(CUresult status) const {
    const char* name = nullptr;
    if (cuGetErrorName(status, &name) != CUDA_SUCCESS || name == nullptr) {
        return "CUDA error " + std::to_string(static_cast<int>(status));
    }
    return name;
}

} // namespace vgpu::worker
