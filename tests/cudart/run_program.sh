#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run_program.sh FILE.cu: builds one CUDA program with a shared runtime library and runs it on ours, over softgpu. Options
# for the compiler stand in the program, in a line "// nvcc: OPTIONS"; variables for the run in "// env: NAME=VALUE...".
# Environment, from make check: NVCC, top_builddir.
set -eu
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=$(sed -n 's,^// nvcc: ,,p' "$source")
# The default of CUDA 13: that of CUDA 11 is too old for what the programs use.
case $options in *-arch=*) ;; *) options="-arch=sm_75 $options" ;; esac
# shellcheck disable=SC2086 # one word an option
"$NVCC" -std=c++17 -cudart shared $options "$source" -o "$work/program"
variables=$(sed -n 's,^// env: ,,p' "$source")
status=0
# A device of its own, so that no other test's memory is in it.
# shellcheck disable=SC2086 # one word a variable
env SOFTGPU_DIR="$work/softgpu" $variables LD_LIBRARY_PATH="$top_builddir/ucx_forwarder/client/cudart/.libs:$top_builddir/contrib/softgpu/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
  "$work/program" || status=$?
[ "$status" -eq 0 ] || echo "$(basename "$source"): exit status $status" >&2
exit "$status"
