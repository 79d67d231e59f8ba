#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# vgpuctld and vgpuctl as processes, with a munged of their own and without any vgpud: start, exit statuses, end.
set -u
vgpuctld=gres_vgpu/pool/vgpuctld
vgpuctl=gres_vgpu/pool/vgpuctl
PATH=$PATH:/usr/sbin:/sbin
dir=$(mktemp -d /tmp/vgpu-test-XXXXXX)
pids=()
failed=0

finish() {
    [[ ! -e $dir/run/vgpuctld.pid ]] || kill "$(cat "$dir/run/vgpuctld.pid")" 2>/dev/null
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    rm -rf "$dir"
    exit $failed
}
trap finish EXIT

complain() {
    echo "FAILED: $*" >&2
    failed=1
}

# status, a piece of the output, command...
expect() {
    local want=$1 piece=$2 got output
    shift 2
    output=$("$@" 2>&1)
    got=$?
    [[ $got == "$want" ]] || complain "$* ended with $got, not $want: $output"
    [[ $output == *"$piece"* ]] || complain "$* did not say \"$piece\" but: $output"
}

chmod 755 "$dir"
(umask 077 && head -c 1024 /dev/urandom >"$dir/key")
munged --force --foreground --key-file="$dir/key" --socket="$dir/munge" --pid-file="$dir/munge.pid" \
    --seed-file="$dir/seed" 2>"$dir/munge.log" &
pids+=($!)
for _ in $(seq 500); do [[ -S $dir/munge ]] && break; sleep 0.02; done
[[ -S $dir/munge ]] || { complain "munged does not run: $(cat "$dir/munge.log")"; exit; }

conf() {
    cat >"$dir/vgpu.conf" <<CONF
VgpuctldHost=localhost VgpuctldPort=$1 MungeSocket=$dir/munge SlurmUser=$(id -un)
RunDir=$dir/run StartGrace=1ms SqueueProgram=$dir/squeue
NodeName=g1 NodeAddr=127.0.0.1
CONF
}
export VGPU_CONF=$dir/vgpu.conf

# A port that nobody has: the daemon says so if somebody does.
for _ in $(seq 20); do
    port=$((20000 + RANDOM % 10000))
    conf $port
    $vgpuctld --foreground 2>"$dir/log" &
    daemon=$!
    for _ in $(seq 500); do
        grep -q "listens on" "$dir/log" && break 2
        kill -0 $daemon 2>/dev/null || break
        sleep 0.02
    done
done
pids+=("$daemon")
grep -q "listens on" "$dir/log" || { complain "vgpuctld does not start: $(cat "$dir/log")"; exit; }
[[ $(cat "$dir/run/vgpuctld.pid") =~ ^[0-9]+$ ]] || complain "there is no pid file"

expect 0 "is up for" $vgpuctl ping
expect 0 "0/1 nodes up, 0 GPUs" $vgpuctl status
expect 0 '"shares_per_gpu": 100' $vgpuctl status --json
expect 0 "unknown" $vgpuctl status g1
expect 2 "the node g9 is in no NodeName line" $vgpuctl status g9
expect 0 "" $vgpuctl release --job 42
expect 1 "no room: 25 shares asked, and no GPU is in the pool" \
    $vgpuctl reserve --job 42 --node c1 --shares 25 --uid 1 --wait 0
expect 1 "130 shares cannot be divided" $vgpuctl claim --job 42 --node c1 --shares 130
expect 2 "which job?" env -u SLURM_JOB_ID $vgpuctl reserve
expect 2 "SLURM_JOB_ID" env SLURM_JOB_ID=x $vgpuctl reserve
expect 2 "required" $vgpuctl
expect 2 "not expected" $vgpuctl status --colour
expect 2 "cannot be read" $vgpuctl --config /nonexistent status
expect 0 "vgpuctl " $vgpuctl --version
expect 0 "vgpuctld " $vgpuctld --version
expect 2 "cannot be read" $vgpuctld --config /nonexistent
expect 2 "not expected" $vgpuctld --colour
expect 1 "another one running" $vgpuctld --foreground
expect 1 "another one running" $vgpuctld

# reserve as PrologSlurmctld calls it: what squeue says decides.
squeue() {
    printf '#!/bin/sh\n%s\n' "$1" >"$dir/squeue"
    chmod 755 "$dir/squeue"
}
squeue "echo 42 2026-11-30T17:00:00 0 1000 1000 alice N/A c1"
expect 0 "" env SLURM_JOB_ID=42 $vgpuctl reserve
squeue "echo 42 2026-11-30T17:00:00 0 1000 1000 alice gres:vgpu:25 c1"
expect 1 "no room: 25 shares" env SLURM_JOB_ID=42 $vgpuctl reserve --wait 0
expect 1 "no room: 25 shares with 2048 MiB" env SLURM_JOB_ID=42 SPANK_VGPU_MEM=2G $vgpuctl reserve --wait 0
expect 2 "SPANK_VGPU_DEVICES" env SLURM_JOB_ID=42 SPANK_VGPU_DEVICES=many $vgpuctl reserve --wait 0
expect 1 "knows no job 43" env SLURM_JOB_ID=43 $vgpuctl reserve --wait 0
squeue "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
expect 3 "Unable to contact slurm controller" env SLURM_JOB_ID=42 $vgpuctl reserve --wait 0

kill "$daemon"
wait "$daemon" || complain "vgpuctld ended with $?"
[[ ! -e $dir/run/vgpuctld.pid ]] || complain "the pid file is left behind"
expect 3 "does not answer: Connection refused; is it running?" $vgpuctl ping
expect 3 "does not answer" $vgpuctl release --job 42 --wait 0

# In the background it is ready when the command ends.
expect 0 "" $vgpuctld
expect 0 "is up for" $vgpuctl ping
background=$(cat "$dir/run/vgpuctld.pid")
kill "$background"
for _ in $(seq 1000); do kill -0 "$background" 2>/dev/null || break; sleep 0.02; done
expect 3 "does not answer" $vgpuctl ping

kill "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
expect 3 "is munged running on this machine" $vgpuctl status
