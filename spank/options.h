// SPDX-License-Identifier: BSD-3-Clause
// The options --vgpu-mem and --vgpu-devices and their twins in the environment. Knows nothing of Slurm:
// checked by tests/plugin without a cluster.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace vgpu::spank {

/// One sentence for the user: which option or variable, what is wrong with it, what would be right.
struct OptionError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct OptionName {
    const char* option;   ///< on the command line, without "--"
    const char* variable; ///< its twin in the environment; the command line wins
};

inline constexpr OptionName memory_option{"vgpu-mem", "VGPU_MEM"};
inline constexpr OptionName devices_option{"vgpu-devices", "VGPU_DEVICES"};

/// What the user asks for beside the number of shares.
struct Options {
    std::uint64_t memory_mib = 0; ///< per vGPU; 0: in proportion to the shares
    unsigned devices = 0;         ///< 0: as few as hold the shares
};

/// Each takes the text of the option or the variable, whose name (`--vgpu-mem`, `VGPU_MEM`) is used in the
/// error. Throw OptionError.
std::uint64_t check_memory(const std::string& name, const std::string& text);
unsigned check_devices(const std::string& name, const std::string& text);

} // namespace vgpu::spank
