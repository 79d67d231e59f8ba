// SPDX-License-Identifier: BSD-3-Clause
// srun's, sbatch's and salloc's side: the option table, and the options' way into PrologSlurmctld's
// environment.
#pragma once

#include "spank/context.h"

namespace vgpu::spank {

/// In every context that has options. 0, or -1 with a message.
int register_options(spank_t sp);

/// After the command line was read, as the user: checks the variables too. 0, or -1 with a message, which
/// ends the command.
int submit_options(spank_t sp);

} // namespace vgpu::spank
