#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What every file of the source tree owes: a licence line, a bounded length, no path of somebody's machine.
# Environment from make: top_srcdir.
set -u
: "${top_srcdir:?run by make check}"
cd "$top_srcdir" || exit 1
failed=0

# The tree's own files: what a release holds, less what autotools and builds made.
sources() {
    find topology gres_vgpu ucx_forwarder spank contrib tests man m4 build-aux/*.awk .ci \
        \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.c' -o -name '*.sh' -o -name '*.def' -o -name '*.awk' \
        -o -name '*.inc' -o -name '*.ptx' -o -name '*.sbatch' -o -name vgpu.m4 -o -name run -o -name minicluster \) -type f
}

complain() { # complain TEXT FILE...
    local text=$1
    shift
    [[ $# -eq 0 ]] && return
    printf 'not ok - %s:\n' "$text"
    printf '    %s\n' "$@"
    failed=1
}

mapfile -t files < <(sources)
[[ ${#files[@]} -gt 50 ]] || complain "too few files found to believe the rest" "${#files[@]}"

mapfile -t bad < <(for f in "${files[@]}"; do head -3 "$f" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' || echo "$f"; done)
complain "no SPDX line in the first three lines" "${bad[@]}"

mapfile -t bad < <(wc -l "${files[@]}" | awk '$2 != "total" && $1 > 650 { print $2 " (" $1 " lines)" }')
complain "longer than one purpose (650 lines)" "${bad[@]}"

mapfile -t bad < <(grep -lE '/(home|work|root)/[a-z]' "${files[@]}" | grep -v tests/build/source_test.sh)
complain "names a path of one machine" "${bad[@]}"

[[ $failed -eq 0 ]] && echo "ok - ${#files[@]} files"
exit $failed
