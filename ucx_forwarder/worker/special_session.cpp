// SPDX-License-Identifier: BSD-3-Clause
// hello, and functions that run on the client.
#include "ucx_forwarder/worker/executor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

namespace vgpu::worker {

namespace {

/// What this worker does not forward, whatever the GPU can do: programs that ask first must take another way.
constexpr CUdevice_attribute not_forwarded[] = {
    CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
    CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
    CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
    CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
    CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
    CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,
    CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
};

std::string text_of(const CUuuid& uuid) {
    std::string text = "GPU-";
    for (int i = 0; i < 16; ++i) {
        char hex[3];
        std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        text += hex;
        if (i == 3 || i == 5 || i == 7 || i == 9) {
            text += '-';
        }
    }
    return text;
}

} // namespace

std::vector<protocol::DeviceSnapshot> Executor::device_snapshots() {
    std::vector<protocol::DeviceSnapshot> devices;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
        const CUdevice device = devices_[i];
        protocol::DeviceSnapshot snapshot;
        char text[256] = {};
        if (driver_->cuDeviceGetName(text, sizeof text, device) == CUDA_SUCCESS) {
            snapshot.name = text;
        }
        if (driver_->cuDeviceGetUuid_v2(&snapshot.uuid, device) == CUDA_SUCCESS &&
            !job_.vgpus[i].uuid.empty() && text_of(snapshot.uuid) != job_.vgpus[i].uuid) {
            throw DriverError("GPU " + std::to_string(job_.vgpus[i].gpu) + " is " + text_of(snapshot.uuid) +
                              " now, but the lease is for " + job_.vgpus[i].uuid +
                              ": the driver's order has changed; restart vgpud on the GPU node");
        }
        char pci[32] = {};
        if (driver_->cuDeviceGetPCIBusId(pci, sizeof pci, device) == CUDA_SUCCESS) {
            snapshot.pci_bus_id = pci;
        }
        if (driver_->cuDeviceGetLuid(snapshot.luid.data(), &snapshot.luid_node_mask, device) !=
            CUDA_SUCCESS) {
            snapshot.luid = {};
            snapshot.luid_node_mask = 0;
        }
        snapshot.total_memory = job_.vgpus[i].memory;
        (void)driver_->cuDriverGetVersion(&snapshot.driver_version);
        snapshot.attributes.resize(CU_DEVICE_ATTRIBUTE_MAX);
        for (int which = 1; which < CU_DEVICE_ATTRIBUTE_MAX; ++which) {
            int value = 0;
            if (driver_->cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(which), device) ==
                CUDA_SUCCESS) {
                snapshot.attributes[static_cast<std::size_t>(which)] = value;
            }
        }
        for (const CUdevice_attribute which : not_forwarded) {
            auto& value = snapshot.attributes[static_cast<std::size_t>(which)];
            if (value) {
                value = 0;
            }
        }
        devices.push_back(std::move(snapshot));
    }
    return devices;
}

template <>
CUresult Executor::special<Call::hello>(const Record&, Arguments<Call::hello>& arguments) {
    auto& [hash, blob] = arguments;
    std::string failure = failure_;
    if (hash.value != protocol::table_hash) {
        failure =
            "the client runtime on this machine and the worker on the GPU node are of different versions; "
            "install the same release of slurm-vgpu on both";
    } else if (failure.empty()) {
        try {
            blob.value = encode(device_snapshots());
            greeted_ = true;
            return CUDA_SUCCESS;
        } catch (const DriverError& error) {
            spdlog::error("{}", error.what());
            failure = error.what();
        }
    }
    const auto text = std::as_bytes(std::span(failure));
    blob.value.assign(text.begin(), text.end());
    return CUDA_ERROR_SYSTEM_NOT_READY;
}

template <>
CUresult Executor::special<Call::host_function>(const Record&, Arguments<Call::host_function>& arguments) {
    auto& [stream, number] = arguments;
    if (kept_by_capture(stream.value)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    void* pointer = host_functions_.add(number.value);
    if (pointer == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const CUresult status = driver_->cuLaunchHostFunc(stream.value, HostFunctions::trampoline, pointer);
    if (status != CUDA_SUCCESS) {
        host_functions_.remove(number.value);
    }
    return status;
}

template <>
CUresult Executor::special<Call::host_function_done>(const Record&,
                                                     Arguments<Call::host_function_done>& arguments) {
    // message() takes these before they are queued; one whose parameters travel in the body ends here.
    host_functions_.done(std::get<0>(arguments).value);
    return CUDA_SUCCESS;
}

} // namespace vgpu::worker
