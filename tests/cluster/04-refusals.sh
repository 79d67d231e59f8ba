#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Requests that cannot be met end with one clear sentence and status 1, and leave the node in service.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "values that are none"
srun --gres=vgpu:25 --vgpu-mem=lots ./saxpy
expect_failure
expect_output 'vgpu: --vgpu-mem: "lots" is not a size'
srun --gres=vgpu:25 --vgpu-devices=0 ./saxpy
expect_failure
expect_output 'vgpu: --vgpu-devices: "0" is not'
run env VGPU_MEM=lots "$MINICLUSTER" run --gres=vgpu:25 ./saxpy
expect_failure
expect_output 'vgpu: VGPU_MEM: "lots" is not a size'

begin "no room"
background "$scratch/first" mc run -w c1 --gres=vgpu:300 ./spinner 40
first=$background_pid
eventually "the first job holds the pool" has_session
srun -w c2 --gres=vgpu:25 ./saxpy
expect_status 1
expect_output 'vgpu: .*(room|free)'
as_root scancel --user=alice
wait "$first"
expect_recovery

begin "more memory than any GPU has"
srun -w c1 --gres=vgpu:25 --vgpu-mem=1T ./saxpy
expect_status 1
expect_output 'vgpu: '

begin "shares that do not divide over the vGPUs"
srun -w c1 --gres=vgpu:25 --vgpu-devices=2 ./saxpy
expect_status 1
expect_output 'vgpu: '

begin "no vgpuctld"
run mc stop ctl vgpuctld
srun -w c1 --gres=vgpu:25 ./saxpy
expect_status 1
expect_output 'vgpu: vgpuctld on .* does not answer'
srun -w c1 true
expect_status 0
run mc restart ctl vgpuctld
expect_recovery

begin "no gres_vgpu.so on the node"
plugin=$(as_root bash -c 'ls "$(scontrol show config | sed -n "s/^PluginDir *= \([^:]*\):.*/\1/p")/gres_vgpu.so"')
mc --user=root --on=c2 exec mount --bind /dev/null "$plugin"
run mc restart c2 slurmd
eventually "all nodes are idle" all_idle
srun -w c2 --gres=vgpu:25 ./saxpy
expect_status 1
expect_output 'vgpu: gres/vgpu is not loaded on node c2'
srun -w c2 true
expect_status 0
mc --user=root --on=c2 exec umount "$plugin"
run mc restart c2 slurmd
eventually "all nodes are idle" all_idle
srun -w c2 --gres=vgpu:25 ./saxpy
expect_status 0
expect_recovery
finish
