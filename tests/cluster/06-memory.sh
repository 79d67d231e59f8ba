#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The lease's memory limit holds.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "over the limit a program gets cudaErrorMemoryAllocation, exactly"
srun -w c1 --gres=vgpu:25 --vgpu-mem=1G ./oom_probe 1024
expect_status 0
expect_output 'allocated, then cudaErrorMemoryAllocation'

begin "without --vgpu-mem, memory is in proportion to the shares"
srun -w c1 --gres=vgpu:25 ./oom_probe 1024
expect_status 0
srun -w c1 --gres=vgpu:10 ./oom_probe 409
expect_status 0

begin "two processes of a step have one limit"
srun -w c1 -n 2 --gres=vgpu:25 --vgpu-mem=1G bash -c 'if [[ $SLURM_PROCID == 0 ]]; then ./spinner 8 768; else sleep 3; ./spinner 1 512; fi'
expect_failure
expect_output 'cudaErrorMemoryAllocation'
expect_output 'spinner: [0-9]+ launches, 0 wrong'

begin "what a killed process held comes back to its lease"
srun -w c1 --gres=vgpu:25 --vgpu-mem=1G bash -c './spinner 60 768 & sleep 3; kill -9 $!; wait; for i in {1..20}; do ./spinner 1 768 && exit 0; sleep 0.5; done; exit 1'
expect_status 0
finish
