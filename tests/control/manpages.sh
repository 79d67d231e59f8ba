#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every option that a program's --help shows stands in its man page. Arguments: pairs of a program and its page.
set -u
failed=0

# program and subcommand...
options() { "$@" --help | grep -oE -- '(^|[ ,])--?[a-zA-Z][a-z-]*' | tr -d ' ,' | sort -u; }

check() {
    local page=$1 option found=0
    shift
    local text
    text=$(sed 's/\\-/-/g; s/\\f[BIR]//g' "$page")
    for option in $(options "$@"); do
        found=1
        if ! grep -qE -- "(^|[ \"])$option([^a-z-]|\$)" <<<"$text"; then
            echo "$page does not mention $option of: $*" >&2
            failed=1
        fi
    done
    if [[ $found == 0 ]]; then
        echo "$* --help shows no option" >&2
        failed=1
    fi
}

subcommands() { "$1" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p'; }

top=$(cd "${srcdir:-.}" && pwd)
for pair in gres_vgpu/pool/vgpuctl:vgpuctl.8 gres_vgpu/pool/vgpuctld:vgpuctld.8 \
    ucx_forwarder/node/vgpud:vgpud.8; do
    program=${pair%:*} page=$top/man/${pair#*:}
    check "$page" "$program"
    for subcommand in $(subcommands "$program"); do
        check "$page" "$program" "$subcommand"
        grep -q "^\.SS $subcommand\$" "$page" || { echo "$page does not describe $subcommand" >&2; failed=1; }
    done
    for section in DESCRIPTION OPTIONS "EXIT STATUS" EXAMPLES; do
        grep -q "^\.SH $section\$" "$page" || { echo "$page has no $section" >&2; failed=1; }
    done
done

# Every key of vgpu.conf is described.
keys=$(grep -oE '\{"[A-Z][A-Za-z]+"' "$top/topology/config.cpp" | tr -d '{"' | sort -u)
[[ $(wc -l <<<"$keys") -ge 20 ]] || { echo "the keys were not found in topology/config.cpp" >&2; failed=1; }
for key in $keys NodeName NodeAddr; do
    grep -qE "^\.B[IR] $key=" "$top/man/vgpu.conf.5" || { echo "vgpu.conf.5 does not describe $key" >&2; failed=1; }
done
exit $failed
