// SPDX-License-Identifier: BSD-3-Clause
// The options of cuModuleLoadDataEx and cuLinkCreate as they travel: (u32 option, u64 value) each. A value
// that is a pointer (a log buffer) does not travel; its size does, and the log comes back in ModuleSnapshot.
#pragma once

#include "ucx_forwarder/protocol/codec.h"
#include "ucx_forwarder/protocol/snapshot.h"

#include <vector>

namespace vgpu::protocol {

struct JitOption {
    CUjit_option option{};
    std::uint64_t value = 0;
};

/// No log is larger than this, whatever the program's buffer.
constexpr std::uint64_t max_jit_log = 1U << 20;

std::vector<std::byte> encode_jit_options(unsigned count, const CUjit_option* options, void* const* values);
/// False: malformed.
[[nodiscard]] bool decode_jit_options(Bytes encoded, std::vector<JitOption>& options);
/// Writes the logs, their sizes and the wall time where the program's options ask for them.
void return_jit_results(const ModuleSnapshot& from, unsigned count, const CUjit_option* options,
                        void** values);

} // namespace vgpu::protocol
