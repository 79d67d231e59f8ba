// SPDX-License-Identifier: BSD-3-Clause
// VGPU_STATS=1: what a program's calls cost, printed to stderr when it exits.
#pragma once

namespace vgpu::client {

class Session;

/// Sessions whose calls are counted at exit, if VGPU_STATS is 1.
void add_to_stats(const Session& session);
void remove_from_stats(const Session& session);

} // namespace vgpu::client
