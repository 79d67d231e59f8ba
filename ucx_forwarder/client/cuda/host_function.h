// SPDX-License-Identifier: BSD-3-Clause
// Functions of the program that run in stream order (cuLaunchHostFunc, cuStreamAddCallback).
#pragma once

namespace vgpu::client {

/// Is there one that was launched and has not returned yet?
bool host_functions_pending();

} // namespace vgpu::client
