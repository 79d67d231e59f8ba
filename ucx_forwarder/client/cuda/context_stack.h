// SPDX-License-Identifier: BSD-3-Clause
// The stack of current contexts of the calling thread.
#pragma once

#include "ucx_forwarder/client/cuda/api.h"

namespace vgpu::client {

/// Trivially destructible on purpose: threads call the driver from their own thread-local destructors.
struct ContextStack {
    static constexpr unsigned max_depth = 128;
    unsigned depth = 0;
    CUcontext at[max_depth] = {};

    CUcontext top() const { return depth ? at[depth - 1] : nullptr; }
    bool push(CUcontext context) {
        if (depth == max_depth)
            return false;
        at[depth++] = context;
        return true;
    }
};

ContextStack& context_stack();

} // namespace vgpu::client
