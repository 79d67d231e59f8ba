#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The audit library asked the loader to forget it where there was no claim. glibc 2.36 then ended every program in an
# assertion (rtld.c, unload_audit_module) if the audit library had another library behind it, as a build without
# optimisation has libstdc++. So: such a build, in a program without a claim.
set -u
: "${top_srcdir:?run by make check}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
g++ -std=c++20 -O0 -fPIC -shared -I"$top_srcdir" -DVGPU_RUNTIME_NAME='"libcudart.so.13"' -fvisibility=hidden \
    -Wl,--no-as-needed "$top_srcdir"/ucx_forwarder/client/inject/*.cpp -o "$work/libvgpu_audit.so" || exit 1
out=$(LD_AUDIT=$work/libvgpu_audit.so ls -d / 2>&1) rc=$?
if [[ $rc != 0 || $out != / ]]; then
    printf 'not ok - exit code %s: %s\n' "$rc" "$out"
    exit 1
fi
echo "ok - a program without a claim runs"
