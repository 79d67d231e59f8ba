// SPDX-License-Identifier: BSD-3-Clause
// vgpud's numbers for Prometheus.
#pragma once

#include "gres_vgpu/control/messages.h"

#include <string>

namespace vgpu::node {

std::string metrics(const control::NodeStatus& status);

} // namespace vgpu::node
