// SPDX-License-Identifier: BSD-3-Clause
// How gres_vgpu.so and spank_vgpu.so, two plugins in one slurmstepd, agree on a step's shares. Slurm has no
// item for it, and the step's environment can be set by the user: the agreement is therefore made in
// slurmstepd's own environment, which the user cannot reach and which tasks do not inherit.
#pragma once

namespace vgpu::plugin {

/// In slurmstepd's own environment: the plugin is loaded there (any value).
inline constexpr const char* loaded_variable = "VGPU_GRES_LOADED";
/// In slurmstepd's own environment: shares of the step on this node, in decimal; not set: none.
inline constexpr const char* granted_variable = "VGPU_GRES_SHARES";
/// In the environment of the step's tasks, for the user to read.
inline constexpr const char* shares_variable = "VGPU_SHARES";

} // namespace vgpu::plugin
