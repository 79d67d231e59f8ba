// SPDX-License-Identifier: BSD-3-Clause
// The part of Slurm's interface between its daemons and a GRES plugin that libslurm-dev does not declare.
// This is the only file that knows a Slurm version. Written for 22.05 to 25.11; a plugin works with exactly
// the Slurm (major.minor.micro) whose headers it was built with, and Slurm checks that through
// plugin_version.
//
// Symbols are looked up in the daemon that loads the plugin: never link libslurm into it. Memory that is
// handed to Slurm must come from Slurm's own allocator.
#pragma once

#include <cstddef>
#include <cstdint>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(22, 5, 0)
#error "slurm-vgpu needs Slurm 22.05 or newer"
#endif

extern "C" {

/// A record of gres.conf. The same in all versions above.
struct gres_slurmd_conf_t {
    std::uint32_t config_flags;
    std::uint64_t count;
    std::uint32_t cpu_cnt;
    char* cpus;
    void* cpus_bitmap;
    char* file;
    char* links;
    char* name;
    char* type_name;
    char* unique_id;
    std::uint32_t plugin_id;
};

struct node_config_load_t {
    std::uint32_t cpu_cnt;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
    char* gres_name;
#endif
    bool in_slurmd;
    int (*xcpuinfo_mac_to_abs)(char* mac, char** abs);
};

/// What a plugin tells Prolog and Epilog; gres_epilog_info_t in 22.05, gres_prep_t since. Only ever a null
/// pointer of ours.
struct gres_prep_t;

/// A list of Slurm's, opaque: `List` until 24.05, `list_t*` since.
struct vgpu_slurm_list;

// Exported by libslurmfull.so, which is in every daemon and command.
int slurm_list_for_each(vgpu_slurm_list* list, int (*each)(void* item, void* argument), void* argument);
int slurm_env_array_overwrite(char*** environment, const char* name, const char* value);
void slurm_unsetenvp(char** environment, const char* name);
void slurm_error(const char* format, ...) __attribute__((format(printf, 1, 2)));
void slurm_debug(const char* format, ...) __attribute__((format(printf, 1, 2)));

} // extern "C"

/// Prolog's and Epilog's hooks changed their names in 23.02.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#define VGPU_GRES_BUILD_ENV gres_p_prep_build_env
#define VGPU_GRES_SET_ENV gres_p_prep_set_env
#else
#define VGPU_GRES_BUILD_ENV gres_p_epilog_build_env
#define VGPU_GRES_SET_ENV gres_p_epilog_set_env
#endif
