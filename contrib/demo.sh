#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh [--keep]: from a fresh clone to CUDA programs on a node that has no GPU. Installs what is missing, builds, starts
# a Slurm cluster on this machine (see minicluster(1)), and runs four programs as an ordinary user. Needs root.
set -euo pipefail
# shellcheck source=contrib/setup.sh
. "$(dirname "$(readlink -f "$0")")/setup.sh"
export VGPU_MINICLUSTER_DIR=${VGPU_MINICLUSTER_DIR:-/var/lib/vgpu-demo}
mc() { "$minicluster" "$@"; }

keep=
case ${1:-} in
    '') ;;
    --keep) keep=1 ;;
    -h | --help)
        echo "Usage: demo.sh [--keep]"
        echo "Builds, starts a Slurm cluster on this machine and runs four CUDA programs on a node without a GPU."
        echo "--keep leaves the cluster up for more."
        exit 0
        ;;
    *) die "unknown argument '$1'; see --help" ;;
esac

prepare

programs=$(mktemp -d)
# shellcheck disable=SC2317 # called by the trap
leave() {
    local status=$?
    trap - EXIT INT TERM
    if [[ -n $keep && $status == 0 ]]; then
        say "the cluster stays up: VGPU_MINICLUSTER_DIR=$VGPU_MINICLUSTER_DIR $minicluster --help"
    else
        mc down
    fi
    rm -rf "$programs"
    exit "$status"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "building the example programs with $nvcc"
make -s -f "$top/contrib/examples/Makefile" -j"$(nproc)" BUILD="$programs" NVCC="$nvcc" >"$build/examples.out" 2>&1 ||
    die "the example programs do not build: see $build/examples.out"
cp "$top/contrib/examples/mlp.sbatch" "$programs/"
chmod 755 "$programs"
cd "$programs"

say "starting the cluster: c1 and c2 without a GPU, g1 and g2 with GPUs in software"
mc down
mc up


# where PROGRAM: the GPU node and the transport of its last session, from vgpud's log.
where() {
    local line file id end=
    line=$(grep -HE "session [0-9]+: worker .* for c1:[0-9]+ $1, claim" "$VGPU_MINICLUSTER_DIR"/log/g?.vgpud.log | tail -n 1) || true
    file=${line%%:*}
    id=$(grep -oE 'session [0-9]+' <<<"$line" | cut -d' ' -f2)
    for ((i = 0; i < 20; i++)); do
        end=$(grep -E "session $id: worker ended" "$file" | tail -n 1) && break
        sleep 0.2
    done
    file=$(basename "$file")
    echo "    -> on node ${file%%.*}, ${end##*; }"
}

# show TITLE PROGRAM: runs it as alice on c1 and prints what it says, and where it ran.
failed=0
show() {
    local title=$1 program=$2
    say "$title"
    echo "    alice@c1 \$ srun -w c1 --gres=vgpu:25 --vgpu-mem=1G ./$program"
    if VGPU_STATS=1 mc run -w c1 --gres=vgpu:25 --vgpu-mem=1G "./$program" 2>&1 | grep -vE '^vgpu: .* [0-9]+ +[0-9]+$|^vgpu: call ' | sed 's/^/    /'; then
        echo "    -> right"
        where "$program"
    else
        echo "    -> FAILED"
        failed=1
    fi
}

say "c1 has no GPU:"
mc exec bash -c 'ls /dev/nvidia* 2>&1; ldconfig -p | grep -w libcuda.so.1 || echo "no libcuda.so.1 is installed"' | sed 's/^/    /'

show "(a) saxpy, built by plain nvcc: static CUDA runtime" saxpy
show "(b) tiled matrix product with shared memory, nvcc -cudart shared" matmul
show "(c) driver API and NVRTC" nvrtc_axpy

output=$VGPU_MINICLUSTER_DIR/mlp.out
install -o 61001 -g 61001 /dev/null "$output" # alice's
say "(d) a batch job trains a small network until its loss is under the bound"
echo "    alice@c1 \$ sbatch -w c1 mlp.sbatch"
job=$(mc exec sbatch --parsable --chdir="$programs" --output="$output" -w c1 "$programs/mlp.sbatch")

in_use() { mc exec vgpuctl status --json 2>/dev/null | grep -q '"calls_awaited": *[1-9]'; }
for ((i = 0; i < 100; i++)); do
    if in_use || [[ -z $(mc exec squeue --noheader --jobs="$job" 2>/dev/null) ]]; then break; fi
    sleep 0.2
done
say "what Slurm and vgpuctl show while it runs"
echo "    \$ squeue --format='%i %j %u %T %N %b'"
mc exec squeue --format='%6i %8j %8u %10T %6N %b' | sed 's/^/    /'
echo "    \$ scontrol show node c1 --details | grep -i gres"
mc exec scontrol show node c1 --details | grep -i gres | sed 's/^ */    /'
echo "    \$ vgpuctl status"
mc exec vgpuctl status | sed 's/^/    /'

state=
for ((i = 0; i < 600; i++)); do
    state=$(mc exec scontrol show job "$job" | grep -oE 'JobState=[A-Z_]+' | cut -d= -f2)
    case $state in PENDING | CONFIGURING | RUNNING | COMPLETING) sleep 0.5 ;; *) break ;; esac
done
sed 's/^/    /' "$output"
if [[ $state == COMPLETED ]] && grep -q '^mlp: .*bound' "$output"; then
    echo "    -> right"
    where mlp
else
    echo "    -> FAILED ($state)"
    failed=1
fi

say "after the jobs, nothing is in use"
for ((i = 0; i < 50; i++)); do
    mc exec vgpuctl status --json | tr -d ' \n' | grep -q '"leases":\[{' || break
    sleep 0.2
done
mc exec vgpuctl status | sed 's/^/    /'

if [[ $failed == 0 ]]; then
    say "all four are right"
else
    say "something failed; logs are in $VGPU_MINICLUSTER_DIR/log"
fi
exit $failed
