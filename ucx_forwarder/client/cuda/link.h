// SPDX-License-Identifier: BSD-3-Clause
// What CUlinkState means.
#pragma once

#include "ucx_forwarder/client/cuda/client.h"

#include <string>
#include <vector>

namespace vgpu::client {

struct Link {
    struct Input {
        CUjitInputType type;
        std::vector<std::byte> data;
        std::string name;
    };
    CUcontext context = nullptr;
    std::vector<CUjit_option> options;
    std::vector<void*> values;
    void** program_values = nullptr; ///< sizes of logs and times are written back there
    std::vector<Input> inputs;
    std::vector<std::byte> cubin; ///< the result, which the program reads until cuLinkDestroy
};

} // namespace vgpu::client
