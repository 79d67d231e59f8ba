#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two users at once, each with own vGPUs and own workers.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "both get right results"
background "$scratch/alice" mc --user=alice run -w c1 --gres=vgpu:25 ./spinner 6
alice=$background_pid
background "$scratch/bob" mc --user=bob run -w c2 --gres=vgpu:25 ./spinner 6
bob=$background_pid
eventually "alice's program runs" grep -q running "$scratch/alice"
eventually "bob's program runs" grep -q running "$scratch/bob"
run as_root ps -eo user:8,comm
expect_output '^alice .*vgpu-worker'
expect_output '^bob .*vgpu-worker'
expect_no_output '^root .*vgpu-worker'
run mc --user=bob exec vgpuctl status
expect_output 'alice'
expect_output 'bob'
join "$alice" "$scratch/alice"
expect_status 0
expect_output ' 0 wrong'
join "$bob" "$scratch/bob"
expect_status 0
expect_output ' 0 wrong'

begin "neither may reserve, claim or release for the other"
background "$scratch/alice" mc --user=alice run -w c1 --gres=vgpu:25 ./spinner 6
eventually "alice's program runs" grep -q running "$scratch/alice"
job=$(as_root squeue --noheader --user=alice --format=%A)
run mc --user=bob exec vgpuctl release --job "$job"
expect_failure
join "$background_pid" "$scratch/alice"
expect_status 0
expect_recovery
finish
