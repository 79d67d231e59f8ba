#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The injection, end to end without Slurm: programs of every make (static, shared and stripped runtime, RPATH, absolute
# dlopen, device code in a shared object) run with libvgpu_audit.so, our libcudart, and softgpu as the driver.
# Environment from make: top_builddir, srcdir, NVCC, CUDART_SONUM.
set -u
: "${top_builddir:?run by make check}" "${NVCC:?}" "${CUDART_SONUM:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

check() { # check NAME EXPECTED-REGEX: the output of the last run, in $out, and its exit code 0
    if [[ $rc -eq ${want_rc:-0} && $out =~ $2 ]]; then
        echo "ok - $1"
        passed=$((passed + 1))
    else
        printf 'not ok - %s: exit code %s, output:\n%s\n' "$1" "$rc" "$out"
        failed=$((failed + 1))
    fi
}

# The client directory as installed, but with softgpu in the place of the forwarding driver.
client=$work/client
mkdir "$client"
cp "$top_builddir"/ucx_forwarder/client/inject/.libs/libvgpu_audit.so "$client"
cp -L "$top_builddir/ucx_forwarder/client/cudart/.libs/libcudart.so.$CUDART_SONUM" "$client"
cp -L "$top_builddir"/contrib/softgpu/.libs/libcuda.so.1 "$client"
export SOFTGPU_DIR=$work/softgpu

run() { # run PROGRAM...: with the injection, as spank_vgpu sets it
    out=$(VGPU_CLAIM=$work/claim LD_AUDIT=$client/libvgpu_audit.so "$@" 2>&1)
    rc=$?
}

cat >"$work/add.cu" <<'EOF'
#include <cstdio>
__global__ void add(int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += i;
}
extern "C" int run_add() {
    const int n = 1000;
    int *x, host[n], bad = 0;
    for (int i = 0; i < n; ++i)
        host[i] = 3 * i;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    add<<<(n + 127) / 128, 128>>>(x, n);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i)
        bad += host[i] != 4 * i;
    printf("add: %d wrong, %s\n", bad, cudaGetErrorString(cudaGetLastError()));
    return bad != 0;
}
#ifndef LIBRARY
int main() { return run_add(); }
#endif
EOF
cat >"$work/open.c" <<'EOF'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
    void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*run_add)(void) = library ? (int (*)(void))dlsym(library, "run_add") : NULL;
    if (!run_add) {
        puts(dlerror());
        return 2;
    }
    return run_add();
}
EOF
cat >"$work/driver.c" <<'EOF'
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void* driver = dlopen("/nowhere/at/all/libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = driver ? (int (*)(unsigned))dlsym(driver, "cuInit") : NULL;
    printf("cuInit: %d\n", init ? init(0) : -1);
    return 0;
}
EOF
cd "$work" || exit 1
"$NVCC" add.cu -o static && "$NVCC" add.cu -cudart shared -o shared &&
    "$NVCC" add.cu -cudart shared -o rpath -Xlinker -rpath="$(dirname "$(dirname "$NVCC")")/lib64" \
        -Xlinker --disable-new-dtags &&
    "$NVCC" -DLIBRARY -shared -Xcompiler -fPIC add.cu -o libadd.so && gcc open.c -o open && gcc driver.c -o driver &&
    "$NVCC" add.cu -Xcompiler -no-pie -Xlinker -no-pie -o nopie && strip -o stripped static || exit 1

run ./static
check "a statically linked runtime is redirected" "add: 0 wrong, no error"
run ./nopie
check "also in a program that is not position independent" "add: 0 wrong, no error"
run ./shared
check "a shared runtime is replaced" "add: 0 wrong, no error"
run ./rpath
check "also against an RPATH" "add: 0 wrong, no error"
run ./open "$work/libadd.so"
check "a static runtime in a shared object that is opened later is redirected" "add: 0 wrong, no error"
run ./driver
check "a driver opened by absolute path is ours" "cuInit: 0"
want_rc=1
run ./stripped
check "a stripped static program gets one clear sentence" "stripped: was linked with NVIDIA's static CUDA runtime and then stripped.*-cudart shared"
want_rc=0
run bash -c './static && ls /'
check "children inherit it" "add: 0 wrong"
run python3 -c 'print("hello")'
check "a program without CUDA runs as ever" "^hello$"
out=$(VGPU_STATIC_REDIRECT=no VGPU_CLAIM=$work/claim LD_AUDIT=$client/libvgpu_audit.so ./stripped 2>&1) rc=$?
want_rc=1
check "the redirect can be switched off" "^add: "
want_rc=0
out=$(LD_AUDIT=$client/libvgpu_audit.so ls -d / 2>&1) rc=$?
check "without a claim it stays out of the way" "^/$"

echo "inject: $passed passed, $failed failed"
[[ $failed -eq 0 ]]
