#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# view.sh open USER DIR, view.sh close DIR: lets an ordinary user of the cluster into a directory of the host that is
# closed to him (below a closed home, or what root's mktemp -d made), without a change to the host's file system. Runs as root in
# the cluster's mount namespace, where the user then finds DIR under its own name.
#   - Where DIR itself is open and one above it is not, that one is covered by an empty one, with DIR bound below it.
#   - Where DIR itself is closed, an overlay covers it: the user sees DIR's files and may write; close brings back to the
#     host what he wrote.
set -euo pipefail
# shellcheck source=contrib/minicluster/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
umask 022
exec 8>"$secret/view.lock"
flock 8

may_enter() { setpriv --reuid "$user" --regid "$user" --init-groups test -x "$1"; }

# The first directory from the top that the user cannot enter.
closed_ancestor() {
    local path='' part parts
    IFS=/ read -ra parts <<<"${1#/}"
    for part in "${parts[@]}"; do
        path+=/$part
        if ! may_enter "$path"; then
            echo "$path"
            return
        fi
    done
}

place_of() { echo "$state/views/$(printf %s "$1" | sha256sum | cut -c1-16)"; }

overlay() { # DIR
    local place
    place=$(place_of "$1")
    rm -rf "$place"
    mkdir -p "$place/upper" "$place/work"
    chown "$user:" "$place/upper"
    chmod 755 "$place/upper"
    if ! mount -t overlay -o "lowerdir=$host$1,upperdir=$place/upper,workdir=$place/work" overlay "$1" 2>/dev/null; then
        # A file system that cannot be under an overlay: the user gets a copy.
        cp -a "$host$1/." "$place/upper"
        chown "$user:" "$place/upper"
        chmod 755 "$place/upper"
        mount --bind "$place/upper" "$1"
    fi
    printf %s "$1" >"$place/dir"
}

open_view() {
    local dir=$1 closed place
    place=$(place_of "$dir")
    if [[ -e $place/dir ]]; then
        # A view that nobody is in is made anew, so that it shows the directory as it is now.
        if umount "$dir" 2>/dev/null; then
            rm -rf "$place"
        else
            mount -o remount "$dir" 2>/dev/null || true # forgets what it had looked up
            return
        fi
    fi
    if [[ -d $dir ]] && may_enter "$dir"; then
        return
    fi
    closed=$(closed_ancestor "$dir")
    [[ $closed == "$dir" || ! -d $closed ]] || mount -t tmpfs -o mode=755 cover "$closed"
    if [[ ! -d $dir ]]; then # it is below a cover
        mkdir -p "$dir"
        mount --bind "$host$dir" "$dir"
    fi
    ! may_enter "$dir" || return 0
    overlay "$dir"
}

close_view() {
    local dir=$1 place
    place=$(place_of "$dir")
    [[ -e $place/dir ]] || return 0
    # Whiteouts (of files the user removed) are character devices.
    (cd "$place/upper" && find . -mindepth 1 ! -type c -print0 | tar --null --no-recursion -T - -cf -) |
        tar -C "$host$dir" --no-same-owner --no-overwrite-dir -xf -
}

case $1 in
    open)
        user=$2
        open_view "$3"
        ;;
    close) close_view "$2" ;;
esac
