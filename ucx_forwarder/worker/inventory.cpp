// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/inventory.h"

#include <cstdio>
#include <cuda.h>
#include <dlfcn.h>
#include <stdexcept>

namespace vgpu::worker {
namespace {

class Driver {
public:
    explicit Driver(const std::string& library)
        : library_(library), handle_(dlopen(library.c_str(), RTLD_NOW)) {
        if (handle_ == nullptr)
            throw std::runtime_error("CudaLibrary cannot be opened: " + std::string(dlerror()));
    }
    template <typename Function>
    Function* find(const char* name) const {
        void* address = dlsym(handle_, name);
        if (address == nullptr)
            throw std::runtime_error("CudaLibrary " + library_ + " has no " + name +
                                     ": it is no CUDA driver");
        return reinterpret_cast<Function*>(address);
    }

private:
    std::string library_;
    void* handle_;
};

void check(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS)
        throw std::runtime_error(std::string(what) + " failed with CUDA error " + std::to_string(result));
}

std::string text_of(const CUuuid& uuid) {
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text += '-';
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        text += digits;
    }
    return text;
}

} // namespace

std::vector<control::Gpu> inventory(const std::string& cuda_library) {
    const Driver driver(cuda_library);
    const auto get_name = driver.find<decltype(cuDeviceGetName)>("cuDeviceGetName");
    const auto get_uuid = driver.find<CUresult(CUuuid*, CUdevice)>("cuDeviceGetUuid_v2");
    const auto get_bus_id = driver.find<decltype(cuDeviceGetPCIBusId)>("cuDeviceGetPCIBusId");
    const auto get_memory = driver.find<CUresult(std::size_t*, CUdevice)>("cuDeviceTotalMem_v2");
    const CUresult started = driver.find<decltype(cuInit)>("cuInit")(0);
    if (started == CUDA_ERROR_NO_DEVICE)
        return {};
    check(started, "cuInit");
    int count = 0;
    check(driver.find<decltype(cuDeviceGetCount)>("cuDeviceGetCount")(&count), "cuDeviceGetCount");
    std::vector<control::Gpu> gpus;
    for (int i = 0; i < count; ++i) {
        CUdevice device = 0;
        check(driver.find<decltype(cuDeviceGet)>("cuDeviceGet")(&device, i), "cuDeviceGet");
        control::Gpu gpu;
        gpu.index = i;
        char text[256] = {};
        check(get_name(text, sizeof text - 1, device), "cuDeviceGetName");
        gpu.name = text;
        CUuuid uuid{};
        check(get_uuid(&uuid, device), "cuDeviceGetUuid");
        gpu.uuid = text_of(uuid);
        if (get_bus_id(text, sizeof text - 1, device) == CUDA_SUCCESS)
            gpu.pci_bus_id = text;
        std::size_t bytes = 0;
        check(get_memory(&bytes, device), "cuDeviceTotalMem");
        gpu.memory_mib = bytes >> 20;
        gpus.push_back(gpu);
    }
    return gpus;
}

} // namespace vgpu::worker
