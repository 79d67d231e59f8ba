#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What Slurm looks for in the plugins is there, and what they want from Slurm is in the Slurm of this machine.
# Environment from make: top_builddir.
set -u
: "${top_builddir:?run by make check}"
failed=0
gres=$top_builddir/gres_vgpu/plugin/.libs/gres_vgpu.so
spank=$top_builddir/spank/.libs/spank_vgpu.so

names() { nm -D "$1" "$2" | awk '{ print $NF }' | sed 's/@.*//' | sort -u; }

want() { # want LIBRARY NAME...
    local library=$1 missing
    shift
    missing=$(comm -23 <(printf '%s\n' "$@" | sort -u) <(names --defined-only "$library"))
    if [[ -n $missing ]]; then
        echo "not ok - $(basename "$library") lacks $(paste -sd' ' <<<"$missing")"
        failed=1
    else
        echo "ok - $(basename "$library") has its $# entry points"
    fi
}

# The hooks of Prolog and Epilog have one name until 22.05 and another since.
prep=prep
grep -q '^#define SLURM_VERSION_NUMBER 0x1605' /usr/include/slurm/slurm_version.h && prep=epilog
want "$gres" plugin_name plugin_type plugin_version init fini gres_p_{node_config_load,job_set_env,step_set_env} \
    gres_p_{task_set_env,send_stepd,recv_stepd,get_devices,step_hardware_init,step_hardware_fini} \
    gres_p_{get_job_info,get_step_info} gres_p_${prep}_{build,set}_env
want "$spank" plugin_name plugin_type plugin_version spank_plugin_version \
    slurm_spank_{init,init_post_opt,task_init_privileged,exit,job_epilog}

slurm=$(find /usr/lib /usr/lib64 -name libslurmfull.so 2>/dev/null | head -n 1)
if [[ -z $slurm ]]; then
    echo "not ok - libslurmfull.so was not found: apt-get install slurm-wlm-basic-plugins"
    failed=1
fi
for library in "$gres" "$spank"; do
    wanted=$(names --undefined-only "$library" | grep -E '^(slurm|spank)_')
    # SPANK's own functions are in the same library.
    missing=$(comm -23 <(echo "$wanted") <(names --defined-only "$slurm"))
    if [[ -z $wanted || -n $missing ]]; then
        echo "not ok - $(basename "$library") wants what this Slurm lacks: $(paste -sd' ' <<<"$missing")"
        failed=1
    else
        echo "ok - $(basename "$library"): $(wc -l <<<"$wanted") names of Slurm's"
    fi
done
exit $failed
