// SPDX-License-Identifier: BSD-3-Clause
// The bodies of two replies: what a client learns of its devices at hello, and of a module when it is loaded.
#pragma once

#include "ucx_forwarder/protocol/codec.h"

#include <cuda.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::protocol {

/// One vGPU as the program shall see it.
struct DeviceSnapshot {
    std::string name;
    CUuuid uuid{};
    std::string pci_bus_id; ///< as cuDeviceGetPCIBusId
    std::array<char, 8> luid{};
    std::uint32_t luid_node_mask = 0;
    std::uint64_t total_memory = 0; ///< bytes; the vGPU's, not the GPU's
    int driver_version = 0;         ///< cuDriverGetVersion of the node's driver
    /// By CUdevice_attribute; nullopt where the node's driver does not know the attribute.
    std::vector<std::optional<int>> attributes;

    /// The attribute's value, or CUDA_ERROR_INVALID_VALUE.
    CUresult attribute(CUdevice_attribute which, int& value) const;
};

/// A kernel's parameter in the packed block that a launch carries.
struct KernelParameter {
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
};

struct KernelSnapshot {
    std::string name;
    /// By CUfunction_attribute; nullopt where the driver does not know it.
    std::vector<std::optional<int>> attributes;
    std::vector<KernelParameter> parameters;
    /// Bytes of the packed block.
    std::uint32_t parameter_bytes() const;
};

/// Globals are not listed: the public API does not enumerate them; they are asked for by name.
struct ModuleSnapshot {
    std::vector<KernelSnapshot> kernels; ///< kernel i has the id kernel_id(module, i)
    std::string info_log;                ///< of the JIT compiler, where asked for
    std::string error_log;
    float wall_time_ms = 0; ///< CU_JIT_WALL_TIME
};

std::vector<std::byte> encode(const std::vector<DeviceSnapshot>& devices);
std::vector<std::byte> encode(const ModuleSnapshot& module);
/// False: malformed.
[[nodiscard]] bool decode(Bytes body, std::vector<DeviceSnapshot>& devices);
[[nodiscard]] bool decode(Bytes body, ModuleSnapshot& module);

} // namespace vgpu::protocol
