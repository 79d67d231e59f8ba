#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A cut link and a worker that hangs: an error within PeerTimeout and a bit, no hang.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

start() {
    background_limit=40
    background "$scratch/out" mc run -w c1 --gres=vgpu:25 ./spinner 100
    eventually "the program runs" grep -q running "$scratch/out"
    eventually "its session is shown" has_session
    node=$(pool | grep -oE '"claims":\[\{[^]]*' | grep -oE '"node":"g[12]"' | head -n 1 | grep -oE 'g[12]')
}

begin "SIGSTOP of the worker"
start
as_root bash -c 'kill -STOP $(pgrep -x vgpu-worker)'
began=$SECONDS
join "$background_pid" "$scratch/out"
expect_failure
expect_output 'spinner: cuda'
[[ $((SECONDS - began)) -le 15 ]] || fault "the error came after $((SECONDS - began)) s"
expect_recovery

begin "the link of the GPU node is cut"
start
expect "the GPU's node is known" test -n "$node"
mc --user=root --on="$node" exec ip link set eth0 down
began=$SECONDS
join "$background_pid" "$scratch/out"
expect_failure
expect_output 'spinner: cuda'
[[ $((SECONDS - began)) -le 15 ]] || fault "the error came after $((SECONDS - began)) s"
mc --user=root --on="$node" exec ip link set eth0 up
expect_recovery

begin "the client hangs for a while and its session lives on"
background "$scratch/out" mc run -w c1 --gres=vgpu:25 ./spinner 12
eventually "the program runs" grep -q running "$scratch/out"
as_root bash -c 'kill -STOP $(pgrep -x spinner); sleep 2; kill -CONT $(pgrep -x spinner)'
join "$background_pid" "$scratch/out"
expect_status 0
expect_recovery
finish
