// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_MODULE driver API
#include "tests/client/driver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <stdexcept>

namespace driver {

void* symbol(const char* name) {
    static void* const library = [] {
        const char* path = std::getenv("VGPU_TEST_LIBCUDA");
        if (!path)
            throw std::runtime_error("VGPU_TEST_LIBCUDA is not set: tests/client/api_direct.sh sets it");
        void* handle = dlopen(path, RTLD_NOW);
        if (!handle)
            throw std::runtime_error(dlerror());
        return handle;
    }();
    void* address = dlsym(library, name);
    if (!address)
        throw std::runtime_error(std::string("no such function: ") + name);
    return address;
}

std::ostream& operator<<(std::ostream& out, Result result) {
    const char* name = nullptr;
    if (CU(cuGetErrorName)(result.code, &name) == CUDA_SUCCESS && name)
        return out << name;
    return out << "CUresult " << int(result.code);
}

Primary::Primary() {
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    OK(CU(cuDevicePrimaryCtxRetain)(&context, device));
    OK(CU(cuCtxSetCurrent)(context));
}

Primary::~Primary() {
    FAILS(CUDA_SUCCESS, CU(cuCtxSetCurrent)(nullptr));
    FAILS(CUDA_SUCCESS, CU(cuDevicePrimaryCtxRelease)(device));
}

OwnContext::OwnContext() {
    OK(CU(cuInit)(0));
    OK(CU(cuDeviceGet)(&device, 0));
    using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
    OK(reinterpret_cast<Create>(symbol("cuCtxCreate_v2"))(&context, 0, device));
}

OwnContext::~OwnContext() {
    CU(cuCtxDestroy)(context);
}

Buffer::Buffer(std::size_t size) {
    OK(CU(cuMemAlloc)(&address_, size));
}
Buffer::~Buffer() {
    CU(cuMemFree)(address_);
}

Kernels::Kernels() {
    OK(CU(cuModuleLoadData)(&module, kernels));
}
Kernels::~Kernels() {
    CU(cuModuleUnload)(module);
}

CUfunction Kernels::operator[](const char* name) const {
    CUfunction function = nullptr;
    OK(CU(cuModuleGetFunction)(&function, module, name));
    return function;
}

} // namespace driver
