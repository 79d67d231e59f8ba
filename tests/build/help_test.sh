#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each command explains itself, and its man page knows every option that its --help knows.
# Environment from make: top_builddir, top_srcdir.
set -u
: "${top_srcdir:?run by make check}" "${top_builddir:?}"
failed=0

explain() { # explain MAN-PAGE PROGRAM [SUBCOMMAND]
    local page=$top_srcdir/man/$1 help option
    shift
    if ! help=$("$@" --help 2>&1) || [[ -z $help ]]; then
        echo "not ok - $* --help fails"
        failed=1
        return
    fi
    # roff writes a minus as \- ; mdoc writes an option as "Fl -name"
    local text
    text=$(sed 's/\\-/-/g; s/Fl -/--/g' "$page")
    for option in $(grep -oE -- '--[a-z][a-z-]+' <<<"$help" | sort -u); do
        if ! grep -qF -- "$option" <<<"$text"; then
            echo "not ok - ${page##*/} does not explain $option of $*"
            failed=1
        fi
    done
    grep -q 'EXAMPLE' "$page" || { echo "not ok - ${page##*/} has no example" && failed=1; }
    echo "ok - $* --help and ${page##*/}"
}

explain vgpuctl.8 "$top_builddir/gres_vgpu/pool/vgpuctl"
for subcommand in status reserve release claim; do
    explain vgpuctl.8 "$top_builddir/gres_vgpu/pool/vgpuctl" "$subcommand"
done
explain vgpuctld.8 "$top_builddir/gres_vgpu/pool/vgpuctld"
explain vgpud.8 "$top_builddir/ucx_forwarder/node/vgpud"
explain minicluster.1 "$top_srcdir/contrib/minicluster/minicluster"
exit $failed
