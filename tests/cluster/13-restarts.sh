#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Slurm's daemons are restarted while a job runs.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "slurmctld"
background "$scratch/out" mc run -w c1 --gres=vgpu:25 ./spinner 15
eventually "the program runs" grep -q running "$scratch/out"
run mc restart ctl slurmctld
expect_status 0
eventually "slurmctld answers" slurmctld_answers
join "$background_pid" "$scratch/out"
expect_status 0
expect_output ' 0 wrong'
expect_recovery

begin "slurmd of the program's node"
background "$scratch/out" mc run -w c1 --gres=vgpu:25 ./spinner 10
eventually "the program runs" grep -q running "$scratch/out"
run mc restart c1 slurmd
join "$background_pid" "$scratch/out"
expect_status 0
expect_recovery

begin "vgpuctld, in order"
background "$scratch/out" mc run -w c1 --gres=vgpu:25 ./spinner 10
eventually "the program runs" grep -q running "$scratch/out"
run mc restart ctl vgpuctld
eventually "its lease is shown again" has_session
join "$background_pid" "$scratch/out"
expect_status 0
expect_recovery
finish
