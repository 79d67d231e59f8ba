// SPDX-License-Identifier: BSD-3-Clause
// gres/vgpu: makes vgpu a GRES of plain counts, and tells each step how many shares it has on this node.
// Counts come from Gres=vgpu:N in slurm.conf: a ceiling for what jobs on this node may hold of the pool, not
// something that the node owns. What is really free is known to vgpuctld; so nothing is counted or looked up
// here, and nothing can block or fail slurmctld and slurmd.
#include "gres_vgpu/plugin/slurm_abi.h"
#include "gres_vgpu/plugin/step_environment.h"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace vgpu::plugin;

void set_shares(char*** environment, std::uint64_t shares) noexcept {
    if (shares == 0 || shares == NO_VAL64) {
        // A step without shares in a job with some inherits the batch script's environment.
        unsetenv(granted_variable);
        if (environment && *environment)
            slurm_unsetenvp(*environment, shares_variable);
        return;
    }
    char text[24];
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(shares));
    setenv(granted_variable, text, 1);
    if (environment)
        slurm_env_array_overwrite(environment, shares_variable, text);
}

int check_record(void* item, void*) noexcept {
    const auto* record = static_cast<const gres_slurmd_conf_t*>(item);
    if (record->file)
        slurm_error("gres/vgpu: gres.conf names File=%s for vgpu; remove it: vgpu is a plain count, "
                    "and the GPUs are named in vgpu.conf on the GPU nodes",
                    record->file);
    return 0;
}

} // namespace

extern "C" {

#define VGPU_EXPORT __attribute__((visibility("default")))

// Required plugin symbols. Declared before they are defined: a const object has internal linkage otherwise.
extern VGPU_EXPORT const char plugin_name[];
extern VGPU_EXPORT const char plugin_type[];
extern VGPU_EXPORT const std::uint32_t plugin_version;
const char plugin_name[] = "Shares of pooled GPUs (slurm-vgpu)";
const char plugin_type[] = "gres/vgpu";
const std::uint32_t plugin_version = SLURM_VERSION_NUMBER;

VGPU_EXPORT int init() {
    setenv(loaded_variable, "1", 1);
    slurm_debug("gres/vgpu: loaded");
    return SLURM_SUCCESS;
}

VGPU_EXPORT int fini() {
    return SLURM_SUCCESS;
}

VGPU_EXPORT int gres_p_node_config_load(vgpu_slurm_list* records, node_config_load_t*) {
    // The records already hold slurm.conf's count.
    if (records)
        slurm_list_for_each(records, check_record, nullptr);
    return SLURM_SUCCESS;
}

/// slurmstepd, for the batch step.
VGPU_EXPORT void gres_p_job_set_env(char*** environment, void*, std::uint64_t count, int) {
    set_shares(environment, count);
}

/// slurmstepd, for the steps that srun starts.
VGPU_EXPORT void gres_p_step_set_env(char*** environment, void*, std::uint64_t count, int) {
    set_shares(environment, count);
}

/// slurmstepd, as the user, only with task binding: the step's count stands.
VGPU_EXPORT void gres_p_task_set_env(char***, void*, std::uint64_t, void*, int) {}

// slurmd to slurmstepd: nothing to hand over.
VGPU_EXPORT void gres_p_send_stepd(void*) {}
VGPU_EXPORT void gres_p_recv_stepd(void*) {}

VGPU_EXPORT vgpu_slurm_list* gres_p_get_devices() {
    return nullptr; // no device files, so nothing for the device cgroup
}
VGPU_EXPORT void gres_p_step_hardware_init(void*, char*) {}
VGPU_EXPORT void gres_p_step_hardware_fini() {}

// Asked by slurmctld and slurmd for details of a job. Gone since 24.11, where they do no harm.
VGPU_EXPORT int gres_p_get_job_info(void*, std::uint32_t, int, void*) {
    return ESLURM_NOT_SUPPORTED;
}
VGPU_EXPORT int gres_p_get_step_info(void*, std::uint32_t, int, void*) {
    return ESLURM_NOT_SUPPORTED;
}

// Prolog and Epilog on the node: leases are not their business (vgpuctl reserve and release are called beside
// slurmctld), so they are told nothing.
VGPU_EXPORT gres_prep_t* VGPU_GRES_BUILD_ENV(void*) {
    return nullptr;
}
VGPU_EXPORT void VGPU_GRES_SET_ENV(char***, gres_prep_t*, int) {}

} // extern "C"
