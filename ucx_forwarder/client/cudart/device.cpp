// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cudart/device.h"

#include <cstring>
#include <memory>

#include "ucx_forwarder/client/cudart/runtime.h"

using namespace vgpu::cudart;

VGPU_EXPORT cudaError_t cudaDriverGetVersion(int* version) {
    if (!version)
        return record(cudaErrorInvalidValue);
    *version = 0;
    // Zero, and no error, without a driver: programs ask so whether there is one.
    if (driver().state != CUDA_SUCCESS)
        return cudaSuccess;
    return record(to_error(driver().cuDriverGetVersion(version)));
}

VGPU_EXPORT cudaError_t cudaRuntimeGetVersion(int* version) {
    if (!version)
        return record(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

VGPU_EXPORT cudaError_t cudaGetDeviceCount(int* count) {
    if (!count)
        return record(cudaErrorInvalidValue);
    *count = 0;
    return with_driver([&](const Driver& d) {
        const cudaError_t error = to_error(d.cuDeviceGetCount(count));
        return error == cudaSuccess && *count == 0 ? cudaErrorNoDevice : error;
    });
}

VGPU_EXPORT cudaError_t cudaGetDevice(int* device) {
    if (!device)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver&) { return current_device(*device); });
}

VGPU_EXPORT cudaError_t cudaSetDevice(int device) {
    return with_driver([&](const Driver&) { return select_device(device); });
}

VGPU_EXPORT cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
    if (flags & ~static_cast<unsigned>(cudaInitDeviceFlagsAreValid))
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        if (const cudaError_t error = check_device(device); error != cudaSuccess)
            return error;
        if (flags & cudaInitDeviceFlagsAreValid)
            if (const CUresult result = d.cuDevicePrimaryCtxSetFlags(device, device_flags);
                result != CUDA_SUCCESS)
                return to_error(result);
        CUcontext context = nullptr;
        return primary_context(device, context);
    });
}

// Which devices to try, and in which order, when a program never names one: the first that is usable.
VGPU_EXPORT cudaError_t cudaSetValidDevices(int* devices, int count) {
    if (count < 0 || (count > 0 && !devices))
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver&) {
        for (int i = 0; i < count; ++i)
            if (const cudaError_t error = check_device(devices[i]); error != cudaSuccess)
                return error;
        return count > 0 ? select_device(devices[0]) : cudaSuccess;
    });
}

VGPU_EXPORT cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
    if (!device || !wanted)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        int count = 0;
        if (const CUresult result = d.cuDeviceGetCount(&count); result != CUDA_SUCCESS)
            return to_error(result);
        if (count == 0)
            return cudaErrorNoDevice;
        // Fields that are zero are not asked for; the device that fits most of the others is the one.
        int best_score = -1;
        auto properties = std::make_unique<cudaDeviceProp>();
        for (int i = 0; i < count; ++i) {
            if (const cudaError_t error = read_properties(i, *properties); error != cudaSuccess)
                return error;
            int score = 0;
            if (wanted->name[0])
                score += std::strncmp(wanted->name, properties->name, sizeof wanted->name) == 0;
            score += wanted->totalGlobalMem && properties->totalGlobalMem >= wanted->totalGlobalMem;
            score +=
                wanted->multiProcessorCount && properties->multiProcessorCount >= wanted->multiProcessorCount;
            score += wanted->sharedMemPerBlock && properties->sharedMemPerBlock >= wanted->sharedMemPerBlock;
            score +=
                wanted->maxThreadsPerBlock && properties->maxThreadsPerBlock >= wanted->maxThreadsPerBlock;
            score +=
                wanted->major && (properties->major > wanted->major ||
                                  (properties->major == wanted->major && properties->minor >= wanted->minor));
            if (score > best_score) {
                best_score = score;
                *device = i;
            }
        }
        return cudaSuccess;
    });
}

VGPU_EXPORT cudaError_t cudaDeviceReset() {
    return with_driver([&](const Driver&) {
        int device = 0;
        if (const cudaError_t error = current_device(device); error != cudaSuccess)
            return error;
        last_error = cudaSuccess;
        return reset_device(device);
    });
}

VGPU_EXPORT cudaError_t cudaDeviceSynchronize() {
    return in_context([](const Driver& d) { return d.cuCtxSynchronize(); });
}

VGPU_EXPORT cudaError_t cudaSetDeviceFlags(unsigned int flags) {
    return with_driver([&](const Driver& d) {
        int device = 0;
        if (const cudaError_t error = current_device(device); error != cudaSuccess)
            return error;
        return to_error(d.cuDevicePrimaryCtxSetFlags(device, flags));
    });
}

VGPU_EXPORT cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
    if (!flags)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        CUcontext current = nullptr;
        if (d.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current)
            return d.cuCtxGetFlags(flags);
        int device = 0;
        int active = 0;
        (void)current_device(device);
        return d.cuDevicePrimaryCtxGetState(device, flags, &active);
    });
}

VGPU_EXPORT cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (!value)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        if (const cudaError_t error = check_device(device); error != cudaSuccess)
            return error;
        return to_error(d.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device));
    });
}

VGPU_EXPORT cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    return in_context([&](const Driver& d) { return d.cuCtxSetLimit(static_cast<CUlimit>(limit), value); });
}

VGPU_EXPORT cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    if (!value)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) { return d.cuCtxGetLimit(value, static_cast<CUlimit>(limit)); });
}

VGPU_EXPORT cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
    if (!config)
        return record(cudaErrorInvalidValue);
    return in_context(
        [&](const Driver& d) { return d.cuCtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(config)); });
}

VGPU_EXPORT cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
    return in_context(
        [&](const Driver& d) { return d.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config)); });
}

// Bank sizes have had no effect since compute capability 5.0.
VGPU_EXPORT cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
    if (!config)
        return record(cudaErrorInvalidValue);
    *config = cudaSharedMemBankSizeFourByte;
    return in_context([](const Driver&) { return cudaSuccess; });
}

VGPU_EXPORT cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
    if (config < cudaSharedMemBankSizeDefault || config > cudaSharedMemBankSizeEightByte)
        return record(cudaErrorInvalidValue);
    return in_context([](const Driver&) { return cudaSuccess; });
}

VGPU_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return in_context([&](const Driver& d) { return d.cuCtxGetStreamPriorityRange(least, greatest); });
}

VGPU_EXPORT cudaError_t cudaCtxResetPersistingL2Cache() {
    return in_context([](const Driver& d) { return d.cuCtxResetPersistingL2Cache(); });
}

VGPU_EXPORT cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
    if (!text || length <= 0)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        if (const cudaError_t error = check_device(device); error != cudaSuccess)
            return error;
        return to_error(d.cuDeviceGetPCIBusId(text, length, device));
    });
}

VGPU_EXPORT cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
    if (!device || !text)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) { return d.cuDeviceGetByPCIBusId(device, text); });
}

VGPU_EXPORT cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width,
                                                             const cudaChannelFormatDesc* format,
                                                             int device) {
    if (!width || !format)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        const int bytes = (format->x + format->y + format->z + format->w) / 8;
        int elements = 0;
        const CUresult result =
            d.cuDeviceGetAttribute(&elements, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, device);
        if (bytes == 0)
            return CUDA_ERROR_INVALID_VALUE;
        *width = static_cast<size_t>(elements);
        return result;
    });
}

VGPU_EXPORT cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    if (!can)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        if (const cudaError_t error = check_device(device); error != cudaSuccess)
            return error;
        if (const cudaError_t error = check_device(peer); error != cudaSuccess)
            return error;
        return to_error(d.cuDeviceCanAccessPeer(can, device, peer));
    });
}

VGPU_EXPORT cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source,
                                                  int destination) {
    if (!value)
        return record(cudaErrorInvalidValue);
    return with_driver([&](const Driver& d) {
        if (const cudaError_t error = check_device(source); error != cudaSuccess)
            return error;
        if (const cudaError_t error = check_device(destination); error != cudaSuccess)
            return error;
        return to_error(d.cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute),
                                                  source, destination));
    });
}

VGPU_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    return in_context([&](const Driver& d) {
        CUcontext context = nullptr;
        if (const cudaError_t error = primary_context(peer, context); error != cudaSuccess)
            return error;
        return to_error(d.cuCtxEnablePeerAccess(context, flags));
    });
}

VGPU_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    return in_context([&](const Driver& d) {
        CUcontext context = nullptr;
        if (const cudaError_t error = primary_context(peer, context); error != cudaSuccess)
            return error;
        return to_error(d.cuCtxDisablePeerAccess(context));
    });
}

VGPU_EXPORT cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                                           cudaFlushGPUDirectRDMAWritesScope scope) {
    return in_context([&](const Driver& d) {
        return d.cuFlushGPUDirectRDMAWrites(static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                                            static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
    });
}

// The profiler's window: nothing here profiles.
VGPU_EXPORT cudaError_t cudaProfilerStart() {
    return cudaSuccess;
}
VGPU_EXPORT cudaError_t cudaProfilerStop() {
    return cudaSuccess;
}
