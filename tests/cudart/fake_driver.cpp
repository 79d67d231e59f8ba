// SPDX-License-Identifier: BSD-3-Clause
#include "tests/cudart/fake_driver.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "ucx_forwarder/client/cudart/older_api.h"

namespace fake_driver {
namespace {

struct State {
    std::mutex mutex;
    std::vector<std::string> calls;
    std::map<std::string, CUresult> failures;
    std::vector<Launch> launches;
    int resets[2] = {};
    std::uintptr_t next_kernel = 0x100;
};
State& state() {
    static auto* const instance = new State;
    return *instance;
}
thread_local CUcontext current = nullptr;

template <class Handle>
Handle handle(std::uintptr_t value) {
    return reinterpret_cast<Handle>(value);
}

/// A reset device gets another context, so that a stale one is told apart.
CUcontext context_of(int device) {
    return handle<CUcontext>(0x10 + static_cast<std::uintptr_t>(device) + 0x100 * state().resets[device]);
}

CUresult enter(const char* name) {
    const std::lock_guard lock(state().mutex);
    state().calls.emplace_back(name);
    const auto failure = state().failures.find(name);
    if (failure == state().failures.end())
        return CUDA_SUCCESS;
    const CUresult result = failure->second;
    state().failures.erase(failure);
    return result;
}

} // namespace
} // namespace fake_driver

using namespace fake_driver;

/// A function of the driver API: notes the call, fails if told to, else runs the body. Defined by the name
/// that cuda.h maps to the symbol.
#define FAKE(name, parameters, ...)                                                                          \
    extern "C" CUresult CUDAAPI name parameters {                                                            \
        if (const CUresult result = enter(#name); result != CUDA_SUCCESS)                                    \
            return result;                                                                                   \
        __VA_ARGS__                                                                                          \
        return CUDA_SUCCESS;                                                                                 \
    }

FAKE(cuInit, (unsigned))
FAKE(cuDriverGetVersion, (int* version), *version = 13000;)
FAKE(cuDeviceGetCount, (int* count), *count = 2;)
FAKE(cuDeviceGet, (CUdevice * device, int ordinal), *device = ordinal;)
FAKE(cuDeviceGetName, (char* name, int size, CUdevice), std::strncpy(name, "Fake", size);)
FAKE(cuDeviceTotalMem, (size_t * bytes, CUdevice), *bytes = 1 << 20;)
FAKE(cuDeviceGetAttribute, (int* value, CUdevice_attribute attribute, CUdevice),
     *value = attribute == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 1000;)
FAKE(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), *context = context_of(device);)
FAKE(cuDevicePrimaryCtxRelease, (CUdevice))
FAKE(cuDevicePrimaryCtxReset, (CUdevice device), ++state().resets[device];)
FAKE(cuDevicePrimaryCtxSetFlags, (CUdevice, unsigned))
FAKE(cuCtxSynchronize, ())
FAKE(cuMemAlloc, (CUdeviceptr * pointer, size_t bytes),
     *pointer = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));)
FAKE(cuMemFree, (CUdeviceptr pointer), std::free(reinterpret_cast<void*>(pointer));)
FAKE(cuMemcpyHtoD, (CUdeviceptr to, const void* from, size_t bytes),
     std::memcpy(reinterpret_cast<void*>(to), from, bytes);)
FAKE(cuMemcpyDtoH, (void* to, CUdeviceptr from, size_t bytes),
     std::memcpy(to, reinterpret_cast<void*>(from), bytes);)
FAKE(cuMemcpyDtoD, (CUdeviceptr, CUdeviceptr, size_t))
FAKE(cuMemcpy, (CUdeviceptr, CUdeviceptr, size_t))
FAKE(cuMemcpyHtoDAsync, (CUdeviceptr, const void*, size_t, CUstream))
FAKE(cuMemcpyDtoHAsync, (void*, CUdeviceptr, size_t, CUstream))
FAKE(cuMemsetD8, (CUdeviceptr, unsigned char, size_t))
FAKE(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))
FAKE(cuMemsetD2D8, (CUdeviceptr, size_t, unsigned char, size_t, size_t))
FAKE(cuLibraryLoadData,
     (CUlibrary * library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
      unsigned),
     *library = reinterpret_cast<CUlibrary>(const_cast<void*>(code));)
FAKE(cuLibraryUnload, (CUlibrary))
FAKE(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary, const char* name),
     if (std::strcmp(name, "absent") == 0) return CUDA_ERROR_NOT_FOUND;
     *kernel = handle<CUkernel>(state().next_kernel++);)
FAKE(cuLibraryGetGlobal, (CUdeviceptr * address, size_t* bytes, CUlibrary, const char*),
     static int storage[4] = {1, 2, 3, 4};
     *address = reinterpret_cast<CUdeviceptr>(storage); *bytes = sizeof storage;)
FAKE(cuLaunchKernel,
     (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared, CUstream stream, void** arguments, void**),
     state().launches.push_back({function,
                                 {gx, gy, gz},
                                 {bx, by, bz},
                                 shared,
                                 stream,
                                 arguments&& arguments[0] ? *static_cast<int*>(arguments[0]) : 0});)
FAKE(cuStreamSynchronize, (CUstream))
FAKE(cuStreamQuery, (CUstream))
FAKE(cuStreamCreate, (CUstream * stream, unsigned), *stream = handle<CUstream>(0x777);)
FAKE(cuStreamDestroy, (CUstream))
FAKE(cuEventRecord, (CUevent, CUstream))

// Asked at every call: not written down.
extern "C" CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
    *context = current;
    return CUDA_SUCCESS;
}
extern "C" CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
    current = context;
    return enter("cuCtxSetCurrent");
}
extern "C" CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
    *device = static_cast<int>(reinterpret_cast<std::uintptr_t>(current) & 0xf);
    return CUDA_SUCCESS;
}

namespace fake_driver {

std::vector<std::string> calls() {
    const std::lock_guard lock(state().mutex);
    return state().calls;
}
void clear() {
    const std::lock_guard lock(state().mutex);
    state().calls.clear();
    state().failures.clear();
    state().launches.clear();
}
int count(const std::string& name) {
    int found = 0;
    for (const std::string& call : calls())
        found += call == name;
    return found;
}
void fail_next(const std::string& name, CUresult result) {
    const std::lock_guard lock(state().mutex);
    state().failures[name] = result;
}
const std::vector<Launch>& launches() {
    return state().launches;
}

} // namespace fake_driver
