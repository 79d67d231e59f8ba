// SPDX-License-Identifier: BSD-3-Clause
// The variables by which a task's programs find their vGPUs. LD_AUDIT may hold libraries of the user's own,
// which stay before ours.
#pragma once

#include <string>
#include <string_view>

namespace vgpu::spank {

inline constexpr const char* claim_variable = "VGPU_CLAIM"; ///< path of the claim's file
inline constexpr const char* audit_variable = "LD_AUDIT";
inline constexpr const char* redirect_variable = "VGPU_STATIC_REDIRECT"; ///< "no", or not set
inline constexpr std::string_view audit_library = "libvgpu_audit.so";

/// A list like LD_AUDIT's (separated by colons) without our library, from whatever directory.
std::string without_ours(std::string_view list);
/// The same list with our library, once, at its end.
std::string with_ours(std::string_view list, const std::string& client_dir);

} // namespace vgpu::spank
