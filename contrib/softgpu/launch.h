// SPDX-License-Identifier: BSD-3-Clause
// Kernel launches, and how many blocks fit.
#pragma once

#include "contrib/softgpu/module.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace softgpu {

struct LaunchShape {
    ptx::Dim3 grid;
    ptx::Dim3 block;
    std::uint32_t dynamic_shared = 0; // bytes
    bool cooperative = false;
};

// Checks the launch and queues it; its own errors come later, from the context. Throws Error.
void launch(Stream& stream, const std::shared_ptr<Function>& function, const LaunchShape& shape,
            void** parameters, void** extra);

// How many blocks of that many threads are on one multiprocessor at a time; 0 where not even one fits.
[[nodiscard]] int resident_blocks(const Function& function, std::uint64_t threads,
                                  std::size_t dynamic_shared);

} // namespace softgpu
