#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kill -9 of a client, a worker and vgpud: an error and no hang, no lease left, the node usable.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

start() {
    background "$scratch/out" mc run -w c1 --gres=vgpu:25 ./spinner 60
    eventually "the program runs" grep -q running "$scratch/out"
    eventually "its session is shown" has_session
}

begin "kill -9 of the client"
start
as_root bash -c 'kill -9 $(pgrep -x spinner)'
join "$background_pid" "$scratch/out"
expect_failure
eventually "no session is left" no_session
expect_recovery

begin "kill -9 of the worker"
start
as_root bash -c 'kill -9 $(pgrep -x vgpu-worker)'
join "$background_pid" "$scratch/out"
expect_failure
expect_output 'spinner: cuda'
expect_recovery

begin "another session's worker lives on"
background "$scratch/other" mc --user=bob run -w c2 --gres=vgpu:25 ./spinner 12
other=$background_pid
eventually "bob's program runs" grep -q running "$scratch/other"
start
as_root bash -c 'kill -9 $(pgrep -u alice -x vgpu-worker)'
join "$background_pid" "$scratch/out"
expect_failure
join "$other" "$scratch/other"
expect_status 0
expect_output ' 0 wrong'

begin "kill -9 of vgpud"
start
as_root bash -c 'kill -9 $(pgrep -x vgpud)'
join "$background_pid" "$scratch/out"
# The worker may outlive its vgpud or not; what counts is an end, with a result or with an error.
[[ $status != 124 ]] || fault "it hung"
expect_recovery

begin "kill -9 of vgpuctld does not disturb a running job"
background "$scratch/out" mc run -w c1 --gres=vgpu:25 ./spinner 5
eventually "the program runs" grep -q running "$scratch/out"
as_root bash -c 'kill -9 $(pgrep -x vgpuctld)'
join "$background_pid" "$scratch/out"
expect_status 0
expect_output ' 0 wrong'
expect_recovery

begin "kill -9 of slurmstepd"
start
as_root bash -c 'kill -9 $(pgrep -x slurmstepd)'
as_root scancel --user=alice
join "$background_pid" "$scratch/out"
as_root bash -c 'pkill -9 -x spinner; true'
expect_recovery
finish
