// SPDX-License-Identifier: BSD-3-Clause
// All functions of the driver API by name and version, for cuGetProcAddress.
#pragma once

namespace softgpu {

enum class ProcQuery { found, no_such_symbol, version_too_old };

// The newest variant of a function that is not newer than `version` (1000 * major + 10 * minor); nullptr if
// there is none. `per_thread`: in its per-thread-stream form, where it has one.
[[nodiscard]] void* find_proc(const char* name, int version, bool per_thread, ProcQuery& query);

} // namespace softgpu
