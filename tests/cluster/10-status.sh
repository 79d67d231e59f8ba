#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Slurm's commands and vgpuctl show what is in use, and after the job nothing.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "during a job"
background "$scratch/out" mc run -w c1 --gres=vgpu:25 --vgpu-mem=1G ./spinner 15
eventually "the job runs" has_session
sleep 2 # a worker reports once a second
run as_root vgpuctl status
expect_status 0
expect_output 'alice'
expect_output '\bg[12]\b'
expect_output '\b25\b'
expect_output '1024|1 ?Gi?B?\b'
expect_output 'tcp'
run as_root vgpuctl status --json
expect_output '"user": *"alice"'
expect_output '"shares": *25'
expect_output '"memory_mib": *1024'
expect_output '"transport": *"[^"]*tcp'
expect_output '"calls_sent": *[1-9]'
expect_output '"calls_awaited": *[1-9]'
run as_root squeue --format='%i %u %b %N'
expect_output 'alice .*vgpu:25 c1'
run as_root scontrol show node c1 --details
expect_output 'GresUsed=.*vgpu:25'
join "$background_pid" "$scratch/out"
expect_status 0

begin "after it"
eventually "no lease is left" no_lease
run as_root vgpuctl status
expect_status 0
expect_no_output 'alice'
run as_root scontrol show node c1 --details
expect_output 'GresUsed=.*vgpu:0'
finish
