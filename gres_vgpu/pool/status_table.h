// SPDX-License-Identifier: BSD-3-Clause
// `vgpuctl status` for people.
#pragma once

#include <string>
#include <vector>

#include "gres_vgpu/control/messages.h"

namespace vgpu::pool {

/// Only these GPU nodes and what is on them; all if empty.
control::PoolStatus only_nodes(control::PoolStatus status, const std::vector<std::string>& nodes);

/// A summary line, then the GPUs, the leases and the sessions.
std::string status_table(const control::PoolStatus& status);

} // namespace vgpu::pool
