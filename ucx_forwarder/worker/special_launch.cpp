// SPDX-License-Identifier: BSD-3-Clause
// Kernel launches.
#include "ucx_forwarder/worker/executor.h"

#include <cstring>

namespace vgpu::worker {

using protocol::LaunchShape;

CUresult Executor::launch(const Record& record, WireId function, const LaunchShape& shape, CUstream stream,
                          Bytes packed, bool cooperative, std::span<CUlaunchAttribute> attributes) {
    const Kernel* kernel = tables_.kernel(function);
    if (kernel == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (packed.size() < kernel->parameter_bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // In the record the parameters lie at any address; the driver may want them aligned.
    scratch_.assign(packed.begin(), packed.end());
    pointers_.clear();
    for (const protocol::KernelParameter& parameter : kernel->parameters) {
        pointers_.push_back(scratch_.data() + parameter.offset);
    }
    const auto& [gx, gy, gz] = shape.grid;
    const auto& [bx, by, bz] = shape.block;
    if (record.call == Call::cuLaunchKernelEx) {
        CUlaunchConfig config{};
        config.gridDimX = gx;
        config.gridDimY = gy;
        config.gridDimZ = gz;
        config.blockDimX = bx;
        config.blockDimY = by;
        config.blockDimZ = bz;
        config.sharedMemBytes = shape.shared_bytes;
        config.hStream = stream;
        config.attrs = attributes.data();
        config.numAttrs = static_cast<unsigned>(attributes.size());
        return driver_->cuLaunchKernelEx(&config, kernel->function, pointers_.data(), nullptr);
    }
    if (cooperative) {
        return driver_->cuLaunchCooperativeKernel(kernel->function, gx, gy, gz, bx, by, bz,
                                                  shape.shared_bytes, stream, pointers_.data());
    }
    return driver_->cuLaunchKernel(kernel->function, gx, gy, gz, bx, by, bz, shape.shared_bytes, stream,
                                   pointers_.data(), nullptr);
}

template <>
CUresult Executor::special<Call::cuLaunchKernel>(const Record& record,
                                                 Arguments<Call::cuLaunchKernel>& arguments) {
    auto& [function, shape, stream, packed] = arguments;
    return launch(record, function.id, shape.value, stream.value, packed.value, false, {});
}

template <>
CUresult
Executor::special<Call::cuLaunchCooperativeKernel>(const Record& record,
                                                   Arguments<Call::cuLaunchCooperativeKernel>& arguments) {
    auto& [function, shape, stream, packed] = arguments;
    return launch(record, function.id, shape.value, stream.value, packed.value, true, {});
}

template <>
CUresult Executor::special<Call::cuLaunchKernelEx>(const Record& record,
                                                   Arguments<Call::cuLaunchKernelEx>& arguments) {
    auto& [function, shape, stream, packed, attributes] = arguments;
    for (CUlaunchAttribute& attribute : attributes.value) {
        switch (attribute.id) {
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: {
            // Where the driver has a handle, the client has put its id.
            const WireId id{reinterpret_cast<std::uint64_t>(attribute.value.programmaticEvent.event)};
            if (!tables_.find(id, attribute.value.programmaticEvent.event)) {
                return CUDA_ERROR_INVALID_HANDLE;
            }
            break;
        }
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
#if CUDA_VERSION >= 12000
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
#endif
            break;
        default:
            return CUDA_ERROR_NOT_SUPPORTED; // its value may hold a handle or a pointer of the client's
        }
    }
    return launch(record, function.id, shape.value, stream.value, packed.value, false, attributes.value);
}

} // namespace vgpu::worker
