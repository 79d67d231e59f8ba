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

/// The symbol that cuda.h maps `name` to has the type that cuda.h declares; cuGetProcAddress, asked for this
/// toolkit's version, may give a newer function under the same name with other arguments.
template <class Function>
void resolve(Function& function, void* library, const char* symbol) {
    void* const address = library ? dlsym(library, symbol) : nullptr;
    function = address ? reinterpret_cast<Function>(address) : &Missing<Function>::call;
}

Driver* open_driver() {
    auto* table = new Driver;
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library && dlsym(library, "cuLibraryLoadData")) {
        table->state = CUDA_SUCCESS;
    } else {
        // No message when there is no driver at all: programs ask to find out.
        if (library)
            std::fprintf(stderr, "libcudart: libcuda.so.1 has no cuLibraryLoadData: a driver of CUDA 12.0 or "
                                 "later is needed\n");
        table->state = CUDA_ERROR_STUB_LIBRARY;
    }
#define VGPU_CUDART_STRING(name) #name
#define VGPU_CUDART_RESOLVE(name) resolve(table->name, library, VGPU_CUDART_STRING(name));
    VGPU_CUDART_DRIVER_CALLS(VGPU_CUDART_RESOLVE)
#undef VGPU_CUDART_RESOLVE
#undef VGPU_CUDART_STRING
    return table;
}

} // namespace

const Driver& driver() noexcept {
    static const Driver* const table = open_driver();
    return *table;
}

} // namespace vgpu::cudart
