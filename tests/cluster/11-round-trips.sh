#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# How many calls of saxpy are awaited.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "at most 6 between cuInit and exit"
run env VGPU_STATS=1 "$MINICLUSTER" run -w c1 --gres=vgpu:25 ./saxpy
expect_status 0
awaited=$(grep -oE '[0-9]+ awaited|awaited[ =:]+[0-9]+' <<<"$output" | grep -oE '[0-9]+' | head -n 1)
[[ -n $awaited ]] || fault "VGPU_STATS=1 prints no number of awaited calls"
[[ ${awaited:-99} -le 6 && ${awaited:-0} -ge 1 ]] || fault "$awaited calls awaited"
finish
