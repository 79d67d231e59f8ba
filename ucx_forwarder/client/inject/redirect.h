// SPDX-License-Identifier: BSD-3-Clause
// Redirects the CUDA runtime that nvcc links statically into a program or a shared object to our libcudart:
// writes a jump at the entry of each runtime function, so that nothing of the linked runtime runs (facts: it
// would ask the driver for private tables that only NVIDIA's has).
//
// The jump goes through one slot per function. All slots first lead to a resolver, which loads our libcudart
// into the program's own namespace at the program's first runtime call: a program that makes none pays for
// none.
#pragma once

#include <cstddef>

struct link_map;

namespace vgpu::inject {

enum class Redirect {
    none,     ///< no runtime in this object, or a shared one
    done,     ///< every runtime function of the object now leads to ours
    stripped, ///< a static runtime, but no symbol table to find its functions by
    version,  ///< a static runtime of another major version of CUDA than ours: other structures, not
              ///< redirected
    failed    ///< the object's code could not be changed
};

/// Looks at an object that was just mapped, before any of its code runs. `path` is its file, `base` its load
/// address. `runtime` is the path of our libcudart, which must outlive the process's last runtime call.
Redirect redirect_static_runtime(const char* path, std::size_t base, const char* runtime);

} // namespace vgpu::inject
