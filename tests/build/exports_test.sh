#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each shared object exports its interface and nothing else: what leaks into Slurm's daemons or a user's program there
# meets symbols of the same name. Environment from make: top_builddir.
set -u
: "${top_builddir:?run by make check}" "${CUDART_SONUM:?}"
failed=0

only() { # only LIBRARY PATTERN: all exported names match, and there is at least one
    local library=$top_builddir/$1 names strange
    names=$(nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//')
    strange=$(grep -vxE "$2" <<<"$names")
    if [[ -z $names || -n $strange ]]; then
        printf 'not ok - %s exports: %s\n' "$1" "$(tr '\n' ' ' <<<"${strange:-nothing}")"
        failed=1
    else
        printf 'ok - %s: %s names\n' "$1" "$(wc -l <<<"$names")"
    fi
}

only gres_vgpu/plugin/.libs/gres_vgpu.so 'plugin_(name|type|version)|init|fini|gres_p_[a-z_]+'
only spank/.libs/spank_vgpu.so 'plugin_(name|type|version)|spank_plugin_version|slurm_spank_[a-z_]+'
only ucx_forwarder/client/inject/.libs/libvgpu_audit.so 'la_[a-z]+'
only ucx_forwarder/client/cuda/.libs/libcuda.so.1 'cu[A-Z][A-Za-z0-9_]+'
only ucx_forwarder/client/cudart/.libs/libcudart.so."$CUDART_SONUM" '(__)?cuda[A-Z][A-Za-z0-9_]+'
only contrib/softgpu/.libs/libcuda.so.1 'cu[A-Z][A-Za-z0-9_]+'
exit $failed
