// SPDX-License-Identifier: BSD-3-Clause
// The beginning and the end.
#include "ucx_forwarder/client/cuda/client.h"

#include <algorithm>

using namespace vgpu::client;

VGPU_API cuInit(unsigned int Flags) {
    if (Flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return client().initialize();
}

// Answers also before cuInit: programs compare it with what they were built for. What the API here can do is
// what its headers say; once there is a node, its driver may be older.
VGPU_API cuDriverGetVersion(int* driverVersion) {
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    int version = VGPU_CUDA_API_VERSION;
    if (client().ready() == CUDA_SUCCESS)
        for (const Device& device : client().devices())
            version = std::min(version, device.snapshot->driver_version);
    *driverVersion = version;
    return CUDA_SUCCESS;
}
