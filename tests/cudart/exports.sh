#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every function that NVIDIA's runtime library exports must be exported by ours, under the same symbol version.
# Environment, from make check: top_builddir, CUDA_INCLUDEDIR, CUDART_SONUM. The measure is the toolkit's libcudart.so and
# libcudart_static.a.
set -eu
LIBCUDART=$top_builddir/ucx_forwarder/client/cudart/.libs/libcudart.so.$CUDART_SONUM
VERSION=libcudart.so.$CUDART_SONUM
TOOLKIT=${CUDA_INCLUDEDIR%/include}
names() { sed -n 's/.*[ ]\([TWVi]\) \(\(__\)\{0,1\}cuda[A-Z][A-Za-z0-9_]*\)\(@.*\)\{0,1\}$/\2/p' | LC_ALL=C sort -u; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for folder in "$TOOLKIT"/lib64 "$TOOLKIT"/lib/x86_64-linux-gnu; do
  if [ -f "$folder/libcudart.so" ]; then nm -D "$folder/libcudart.so"; fi
  if [ -f "$folder/libcudart_static.a" ]; then nm "$folder/libcudart_static.a" 2>/dev/null; fi
done | names >"$work/theirs"
[ -s "$work/theirs" ] || { echo "there is no libcudart in $TOOLKIT to compare with"; exit 77; }
nm -D "$LIBCUDART" | names >"$work/ours"
count=$(wc -l <"$work/theirs")
[ "$count" -gt 300 ] || { echo "the toolkit lists only $count functions"; exit 1; }
LC_ALL=C comm -23 "$work/theirs" "$work/ours" >"$work/missing"
[ ! -s "$work/missing" ] || { echo "not exported:"; cat "$work/missing"; exit 1; }
unversioned=$(nm -D --defined-only "$LIBCUDART" | grep -c ' [TW] cuda' || true)
versioned=$(nm -D --defined-only "$LIBCUDART" | grep -c " [TW] cuda.*@@$VERSION\$" || true)
[ "$unversioned" = "$versioned" ] || { echo "$versioned of $unversioned functions have the version $VERSION"; exit 1; }
others=$(nm -D --defined-only "$LIBCUDART" | grep -vE " (__)?cuda[A-Za-z0-9_]+@| $VERSION(@|\$)" || true)
[ -z "$others" ] || { echo "exported, but no function of the API:"; echo "$others"; exit 1; }
echo "$count functions compared"
