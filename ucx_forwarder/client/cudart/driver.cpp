// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cudart/driver.h"

#include <dlfcn.h>

#include <cstdio>

namespace vgpu::cudart {
namespace {

template <class Function>
struct Missing;

template <class... Arguments>
struct Missing<CUresult (*)(Arguments...)> {
    static CUresult call(Arguments...) { return CUDA_ERROR_NOT_SUPPORTED; }
};

/// One lookup, versioned by the toolkit of the build, so that each pointer has the type that cuda.h declares.
template <class Function>
void resolve(Function& function, const char* name, decltype(&::cuGetProcAddress) lookup) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (lookup &&
        lookup(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found) == CUDA_SUCCESS &&
        address)
        function = reinterpret_cast<Function>(address);
    else
        function = &Missing<Function>::call;
}

Driver* open_driver() {
    auto* table = new Driver;
    decltype(&::cuGetProcAddress) lookup = nullptr;
    if (void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
        lookup = reinterpret_cast<decltype(lookup)>(dlsym(library, "cuGetProcAddress_v2"));
        if (!lookup)
            std::fprintf(stderr, "libcudart: libcuda.so.1 has no cuGetProcAddress_v2: a driver of CUDA 12.0 "
                                 "or later is needed\n");
    }
    // No message when there is no driver at all: programs ask to find out.
    table->state = lookup ? CUDA_SUCCESS : CUDA_ERROR_STUB_LIBRARY;
#define VGPU_CUDART_RESOLVE(name) resolve(table->name, #name, lookup);
    VGPU_CUDART_DRIVER_CALLS(VGPU_CUDART_RESOLVE)
#undef VGPU_CUDART_RESOLVE
    return table;
}

} // namespace

const Driver& driver() noexcept {
    static const Driver* const table = open_driver();
    return *table;
}

} // namespace vgpu::cudart
