#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A job array of 20.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "all 20 tasks give right results"
limit=240
# 12 x 25 shares fit into the pool, and c1 may hold as many: Slurm lets the others wait.
run mc exec bash -c "cd && rm -f array-*.out && sbatch --wait --array=1-20 --chdir=$PROGRAMS --output=\$HOME/array-%a.out -w c1 --gres=vgpu:25 --wrap 'srun ./saxpy'; rc=\$?; cat array-*.out; exit \$rc"
expect_status 0
[[ $(grep -c 'max error 0,' <<<"$output") == 20 ]] || fault "$(grep -c 'max error 0,' <<<"$output") of 20 right results"

begin "nothing is left"
expect_recovery
finish
