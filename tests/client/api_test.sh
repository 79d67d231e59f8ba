# SPDX-License-Identifier: BSD-3-Clause
# Sourced by api_direct.sh and api_forwarded.sh in the build directory: a small device in a directory of this test's own,
# and the programs. `run BEFORE...` runs each behind the words given.
softgpu=$PWD/contrib/softgpu/.libs/libcuda.so.1
client=$PWD/ucx_forwarder/client/cuda/.libs/libcuda.so.1
SOFTGPU_DIR=$(mktemp -d "${TMPDIR:-/tmp}/vgpu-api-test.XXXXXX")
trap 'rm -rf "$SOFTGPU_DIR"' EXIT
export SOFTGPU_DIR SOFTGPU_MEMORY=1G SOFTGPU_DEVICES=2 SOFTGPU_THREADS=2

run() {
    status=0
    "$@" ./tests/client/test_driver_api || status=1
    "$@" ./tests/client/test_process || status=1
    return $status
}
