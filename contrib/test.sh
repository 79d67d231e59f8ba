#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test.sh: from a fresh clone to the result of all tests. Installs what is missing, builds, runs make check and then the
# end-to-end cases on a Slurm cluster on this machine (see minicluster(1)). The last line is "N passed, N failed". Needs
# root.
set -euo pipefail
# shellcheck source=contrib/setup.sh
. "$(dirname "$(readlink -f "$0")")/setup.sh"
case ${1:-} in
    '') ;;
    -h | --help)
        echo "Usage: test.sh"
        echo "Builds and runs all tests; the last line is 'N passed, N failed'."
        exit 0
        ;;
    *) die "unknown argument '$1'; see --help" ;;
esac

logs=$build/test-logs
passed=0 failed=0

# The last line, whatever happens.
summary() {
    local status=$?
    [[ $status == 0 || $failed -gt 0 ]] || failed=1
    [[ $failed == 0 ]] || say "logs are in $logs"
    echo "$passed passed, $failed failed"
    exit $((failed > 0))
}
trap summary EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

prepare
rm -rf "$logs"
mkdir -p "$logs"

say "make check"
make -C "$build" -k -j"$(nproc)" check >"$logs/check.log" 2>&1 && check=0 || check=1
grep -E '^(PASS|FAIL|ERROR|XPASS|SKIP):' "$logs/check.log" || true
count() { grep -cE "^($1):" "$logs/check.log" || true; }
passed=$(count PASS)
failed=$(count 'FAIL|ERROR|XPASS|SKIP')
if [[ $check != 0 && $failed == 0 || $passed == 0 ]]; then
    grep -m 5 -E 'error|Error' "$logs/check.log" || true
    echo "FAIL: make check itself"
    failed=$((failed + 1))
fi
if [[ -f $build/test-suite.log ]]; then cp "$build/test-suite.log" "$logs/"; fi

say "end-to-end cases on the cluster"
VGPU_TEST_LOGS=$logs/cluster NVCC=$nvcc "$top/tests/cluster/run.sh" 2>&1 | tee "$logs/cluster.log" || true
result=$(grep -E '^cluster: [0-9]+ passed, [0-9]+ failed$' "$logs/cluster.log" | tail -n 1)
if [[ $result =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
else
    echo "FAIL: tests/cluster/run.sh itself"
    failed=$((failed + 1))
fi
