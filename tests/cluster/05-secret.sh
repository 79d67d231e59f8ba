#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Who does not know a claim's secret gets nothing, and other users do not learn it.
# shellcheck disable=SC2016 # what is quoted is for the cluster's shells
# shellcheck source=tests/cluster/harness.sh
. "$(dirname "$(readlink -f "$0")")/harness.sh"

begin "the claim's file is the user's alone"
srun -w c1 --gres=vgpu:25 bash -c 'stat -c "%a %U" "$VGPU_CLAIM"; stat -c "%a %U" "$(dirname "$VGPU_CLAIM")"'
expect_output '^400 alice$'
expect_output '^711 root$'

begin "another user cannot read it"
background "$scratch/alice" mc run -w c1 --gres=vgpu:25 bash -c 'echo "$VGPU_CLAIM"; sleep 30'
alice=$background_pid
eventually "alice's job runs" grep -q claims "$scratch/alice"
claim=$(grep claims "$scratch/alice")
run mc --user=bob --on=c1 exec cat "$claim"
expect_failure
expect_output 'Permission denied'
run mc --user=bob --on=c1 exec ls "$(dirname "$claim")"
expect_failure
run mc --user=alice --on=c1 exec cat "$claim"
expect_status 0
expect_output '"secret"'

begin "a wrong secret is refused"
forged=$scratch/forged.json
sed -E 's/("secret": *")[0-9a-f]{8}/\100000000/' <<<"$output" >"$forged"
chmod 755 "$scratch" && chmod 644 "$forged"
limit=20
srun -w c1 --gres=none env VGPU_CLAIM="$forged" LD_AUDIT="$(mc run -w c2 --gres=vgpu:5 printenv LD_AUDIT)" ./saxpy
expect_failure
expect_no_output 'max error 0,'
limit=60
! has_session || fault "a session was opened"

begin "the right one works at the same place"
run mc --user=alice --on=c1 exec cat "$claim"
printf '%s\n' "$output" >"$forged"
srun -w c1 env VGPU_CLAIM="$forged" LD_AUDIT="$(mc run -w c2 --gres=vgpu:5 printenv LD_AUDIT)" ./saxpy
expect_status 0

begin "after the job it works no more"
as_root scancel --user=alice
wait "$alice"
eventually "no lease is left" no_lease
limit=20
srun -w c1 env VGPU_CLAIM="$forged" LD_AUDIT="$(mc run -w c2 --gres=vgpu:5 printenv LD_AUDIT)" ./saxpy
expect_failure
[[ $(mc --user=root --on=c1 exec test -e "$claim"; echo $?) == 1 ]] || fault "the claim's file is still there"

begin "status shows no secret"
background "$scratch/again" mc run -w c1 --gres=vgpu:25 ./spinner 10
eventually "the job runs" has_session
run as_root vgpuctl status --json
expect_no_output '"secret": *"[0-9a-f]'
wait "$background_pid"
expect_recovery
finish
