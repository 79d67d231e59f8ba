// SPDX-License-Identifier: BSD-3-Clause
// What the plugin knows in the process that loaded it, and the few helpers around Slurm's SPANK calls. A
// SPANK plugin is called by Slurm through C functions that share nothing but the process: hence the one
// static context.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "spank/options.h"

extern "C" {
#include <slurm/spank.h>
}

namespace vgpu::spank {

struct Context {
    /// Texts of the options, as given on this command line or, in slurmstepd and below an allocation, handed
    /// on by Slurm. Checked.
    std::optional<std::string> memory;
    std::optional<std::string> devices;
    std::string config_path; ///< conf= in plugstack.conf; empty: vgpu.conf's usual place
    /// The slurmstepd itself. Tasks are prepared in children of it, which know it by this.
    pid_t stepd = 0;
};

Context& context();

/// A variable of the job's environment (in slurmstepd: the tasks'); nothing if it is not set.
std::optional<std::string> get_variable(spank_t sp, const char* name);

/// Option if given, else twin, else 0. Throws OptionError.
Options effective_options(spank_t sp);

} // namespace vgpu::spank
