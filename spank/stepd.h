// SPDX-License-Identifier: BSD-3-Clause
// slurmstepd's side: claims the step's vGPUs, hands them to the tasks, gives them back.
#pragma once

#include "spank/context.h"

namespace vgpu::spank {

/// In the child that becomes a task, as root. Claims for the step if no other task has, and sets the task's
/// environment. 0, or -1 after a message: the step ends with status 1.
int prepare_task(spank_t sp);

/// In slurmstepd, as root, when all tasks have ended: gives the claim back.
void end_step(spank_t sp);

/// On the node, as root, when the job has ended: removes what a killed slurmstepd left.
void end_job(spank_t sp);

} // namespace vgpu::spank
