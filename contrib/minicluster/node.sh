#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the calling process's namespaces those of one node, and becomes the process that holds them.
set -euo pipefail
# shellcheck source=contrib/minicluster/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
name=$1
hostname "$name"
# A sysfs of its own shows the node's network devices. The host's cgroups are not in it.
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
# What vgpu.conf calls StateDir and RunDir, each node has for itself.
for dir in state run; do
    mkdir -p "$secret/$name/$dir"
    mount --bind "$secret/$name/$dir" "$state/vgpu/$dir"
done
# The pid as the host sees it: from the host's /proc.
read -r pid _ <"$host/proc/self/stat"
echo "$pid" >"$state/node/$name.new"
mv "$state/node/$name.new" "$state/node/$name"
exec sleep infinity
