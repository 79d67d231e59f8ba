// SPDX-License-Identifier: BSD-3-Clause
// The GPUs that a driver library shows.
#pragma once

#include "gres_vgpu/control/messages.h"

#include <string>
#include <vector>

namespace vgpu::worker {

/// Opens the driver and asks it. Throws std::runtime_error with a sentence. For a process that ends soon: the
/// driver stays loaded.
std::vector<control::Gpu> inventory(const std::string& cuda_library);

} // namespace vgpu::worker
