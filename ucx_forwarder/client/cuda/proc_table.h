// SPDX-License-Identifier: BSD-3-Clause
// The table behind cuGetProcAddress, made from the toolkit's headers.
#pragma once

namespace vgpu::client {

struct ProcQuery {
    bool known = false;       ///< there is a function of that name, in some version
    void* function = nullptr; ///< the newest variant whose version is at most the asked one
};

ProcQuery find_proc(const char* name, int version, bool per_thread);

} // namespace vgpu::client
