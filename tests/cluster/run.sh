#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh [NAME-PATTERN]...: builds the programs, starts a minicluster of its own and runs the numbered scripts on it. The
# last line is "cluster: N passed, N failed", in cases. Needs root and a built tree.
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
export VGPU_MINICLUSTER_DIR=${VGPU_MINICLUSTER_DIR:-/var/lib/vgpu-test}
export MINICLUSTER=$top/contrib/minicluster/minicluster
export NVCC=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
logs=${VGPU_TEST_LOGS:-$(mktemp -d)}
mkdir -p "$logs"
failed=0 passed=0

PROGRAMS=$(mktemp -d)
export PROGRAMS
chmod 755 "$PROGRAMS"
# shellcheck disable=SC2317 # called by the trap
stop() {
    "$MINICLUSTER" down
    rm -rf "$PROGRAMS"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "# building the programs"
if ! make -s -f "$top/contrib/examples/Makefile" -j"$(nproc)" BUILD="$PROGRAMS" NVCC="$NVCC" >"$logs/programs.log" 2>&1; then
    tail -n 20 "$logs/programs.log"
    echo "cluster: 0 passed, 1 failed"
    exit 1
fi
cp "$top/contrib/examples/mlp.sbatch" "$PROGRAMS/"
"$MINICLUSTER" down
if ! "$MINICLUSTER" up; then
    echo "cluster: 0 passed, 1 failed"
    exit 1
fi

[[ $# -gt 0 ]] || set -- ''
for script in "$here"/[0-9][0-9]-*.sh; do
    name=$(basename "$script" .sh)
    for pattern in "$@"; do
        [[ $name == *"$pattern"* ]] || continue
        echo "# === $name"
        "$script" 2>&1 | tee "$logs/$name.tap"
        ok=$(grep -c '^ok ' "$logs/$name.tap")
        bad=$(grep -c '^not ok ' "$logs/$name.tap")
        # A script that ends before its plan lost its last case, at least.
        grep -q '^1\.\.' "$logs/$name.tap" || bad=$((bad + 1))
        passed=$((passed + ok)) failed=$((failed + bad))
        break
    done
done
if [[ $failed -gt 0 ]]; then
    cp -r "$VGPU_MINICLUSTER_DIR/log" "$logs/daemons"
    echo "# logs are in $logs"
fi
echo "cluster: $passed passed, $failed failed"
exit $((failed > 0))
