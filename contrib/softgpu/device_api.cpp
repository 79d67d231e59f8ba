// SPDX-License-Identifier: BSD-3-Clause
// cuDevice*.
#include "contrib/softgpu/call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace softgpu;

namespace {

CUresult total_memory(std::size_t* bytes, CUdevice device) {
    return call([&] {
        require(bytes != nullptr);
        *bytes = Driver::get().device(device).shared().total();
    });
}

CUresult get_uuid(CUuuid* uuid, CUdevice device) {
    return call([&] {
        require(uuid != nullptr);
        *uuid = Driver::get().device(device).uuid();
    });
}

void copy_text(const std::string& text, char* to, int room) {
    require(to != nullptr && room > 0);
    const auto length = std::min(text.size(), static_cast<std::size_t>(room) - 1);
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
}

} // namespace

SOFTGPU_API CUresult cuDeviceGetCount(int* count) {
    return call([&] {
        require(count != nullptr);
        *count = Driver::get().device_count();
    });
}

SOFTGPU_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    return call([&] {
        require(device != nullptr);
        *device = Driver::get().device(ordinal).index();
    });
}

SOFTGPU_API CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    return call([&] { copy_text(Driver::get().device(device).name(), name, length); });
}

SOFTGPU_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    return get_uuid(uuid, device);
}
SOFTGPU_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    return get_uuid(uuid, device);
}
SOFTGPU_API CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
    return total_memory(bytes, device);
}

SOFTGPU_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    return call([&] {
        require(value != nullptr);
        *value = Driver::get().device(device).attribute(attribute);
    });
}

SOFTGPU_API CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    return call([&] {
        require(major != nullptr && minor != nullptr);
        const auto& config = Driver::get().device(device).config();
        *major = config.capability_major;
        *minor = config.capability_minor;
    });
}

SOFTGPU_API CUresult cuDeviceGetProperties(CUdevprop* properties, CUdevice device) {
    return call([&] {
        require(properties != nullptr);
        const auto& found = Driver::get().device(device);
        *properties = {};
        properties->maxThreadsPerBlock = found.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
        for (int i = 0; i < 3; ++i) {
            properties->maxThreadsDim[i] = found.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
            properties->maxGridSize[i] = found.attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
        }
        properties->sharedMemPerBlock = found.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
        properties->totalConstantMemory = found.attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
        properties->SIMDWidth = found.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
        properties->memPitch = found.attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
        properties->regsPerBlock = found.attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
        properties->clockRate = found.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
        properties->textureAlign = found.attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    });
}

SOFTGPU_API CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
    return call([&] {
        const auto text = Driver::get().device(device).pci_bus_id();
        require(length > static_cast<int>(text.size()));
        copy_text(text, id, length);
    });
}

SOFTGPU_API CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id) {
    return call([&] {
        require(device != nullptr && id != nullptr);
        // [domain:]bus:device[.function], in hexadecimal
        std::string wanted = id;
        if (std::count(wanted.begin(), wanted.end(), ':') == 1)
            wanted = "0000:" + wanted;
        if (wanted.find('.') == std::string::npos)
            wanted += ".0";
        std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        auto& driver = Driver::get();
        for (int i = 0; i < driver.device_count(); ++i)
            if (driver.device(i).pci_bus_id() == wanted) {
                *device = i;
                return CUDA_SUCCESS;
            }
        return CUDA_ERROR_INVALID_DEVICE;
    });
}

SOFTGPU_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    return call([&] {
        require(can != nullptr);
        auto& driver = Driver::get();
        *can = driver.device(device).index() != driver.device(peer).index() ? 1 : 0;
    });
}

SOFTGPU_API CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice source,
                                             CUdevice destination) {
    return call([&] {
        require(value != nullptr);
        auto& driver = Driver::get();
        require(driver.device(source).index() != driver.device(destination).index(),
                CUDA_ERROR_INVALID_DEVICE);
        switch (attribute) {
        case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
            *value = 0;
            break;
        case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
        case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
            *value = 1;
            break;
        default:
            require(attribute == CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED);
            *value = 0;
        }
    });
}

SOFTGPU_API CUresult cuDeviceGetTexture1DLinearMaxWidth(std::size_t*, CUarray_format, unsigned, CUdevice) {
    return CUDA_ERROR_NOT_SUPPORTED;
}

SOFTGPU_API CUresult cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType, CUdevice device) {
    return call([&] {
        require(supported != nullptr);
        (void)Driver::get().device(device);
        *supported = 0;
    });
}

// ---- primary contexts ----

SOFTGPU_API CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    return call([&] {
        require(context != nullptr);
        auto& found = Driver::get().device(device);
        found.retain_primary();
        *context = found.primary()->handle();
    });
}

SOFTGPU_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    return call([&] { Driver::get().device(device).release_primary(); });
}
SOFTGPU_API CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    return cuDevicePrimaryCtxRelease_v2(device);
}

SOFTGPU_API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    return call([&] { Driver::get().device(device).reset_primary(); });
}
SOFTGPU_API CUresult cuDevicePrimaryCtxReset(CUdevice device) {
    return cuDevicePrimaryCtxReset_v2(device);
}

SOFTGPU_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    return call([&] {
        require((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0);
        Driver::get().device(device).primary()->set_flags(flags);
    });
}
SOFTGPU_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags) {
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

SOFTGPU_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int* flags, int* active) {
    return call([&] {
        require(flags != nullptr && active != nullptr);
        auto& found = Driver::get().device(device);
        *flags = found.primary()->flags();
        *active = found.primary_active() ? 1 : 0;
    });
}
