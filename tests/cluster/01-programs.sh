#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The four kinds of programs give right results on a node without a GPU.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "saxpy, static runtime, built by plain nvcc"
srun -w c1 --gres=vgpu:25 --vgpu-mem=1G ./saxpy
expect_status 0
expect_output 'saxpy: 1048576 elements, max error 0,'

begin "tiled matrix product, shared runtime"
srun -w c1 --gres=vgpu:25 --vgpu-mem=1G ./matmul
expect_status 0
expect_output 'matmul: 256 x 256, max error'

begin "driver API and NVRTC"
srun -w c1 --gres=vgpu:25 --vgpu-mem=1G ./nvrtc_axpy
expect_status 0
expect_output 'nvrtc_axpy: [0-9]+ elements, max error 0,'

begin "a small network is trained by a batch job"
limit=240
run mc exec bash -c "cd && rm -f mlp-*.out && sbatch --wait --chdir=$PROGRAMS --output=\$HOME/mlp-%j.out -w c2 $PROGRAMS/mlp.sbatch && cat mlp-*.out"
expect_status 0
expect_output 'mlp: .* epochs, loss [0-9.]+ -> [0-9.]+ \(bound'
limit=60

begin "device query, printf in kernels, streams and events"
for program in device_query vector_add_printf streams_events; do
    srun -w c1 --gres=vgpu:25 "./$program"
    expect_status 0
done

begin "on a node with GPUs of its own, too"
srun -w g2 --gres=vgpu:25 ./saxpy
expect_status 0

begin "several tasks of one step share its claim"
srun -w c1 -n 3 --gres=vgpu:30 ./saxpy
expect_status 0
[[ $(grep -c 'max error 0,' <<<"$output") == 3 ]] || fault "not 3 results"

begin "tasks on two nodes have a claim on each"
srun -w c1,c2 -N 2 --gres=vgpu:30 ./saxpy
expect_status 0
[[ $(grep -c 'max error 0,' <<<"$output") == 2 ]] || fault "not 2 results"

begin "nothing is left"
eventually "no lease is left" no_lease
finish
