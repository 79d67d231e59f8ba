#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Process 1 of the cluster, in its own pid, mount, network, ipc and uts namespaces: whatever runs in the cluster ends
# with it, by the kernel's hand. Sets the namespaces up, then starts and watches the daemons.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=contrib/minicluster/common.sh
. "$here/common.sh"
umask 022

fail() {
    say "$*"
    echo "$*" >"$state/failed"
    exit 1
}
trap 'fail "set-up failed at line $LINENO of $here/init.sh: $BASH_COMMAND"' ERR

# --- file system ---------------------------------------------------------------------------------------------------
# Mounts made here stay here; mounts made on the host still come in. The copy of the host's tree is made while nothing
# is shared yet, so that the mounts below do not show in it.
mount --rbind / "$host"
record "$state/init" # while /proc is still the host's
mount --make-rshared / # the nodes see what is mounted here later
mount --make-rslave "$host"
mount -t proc proc /proc
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 views "$state/views"
for file in hosts passwd group resolv.conf; do
    [[ ! -e /etc/$file ]] || mount --bind "$state/etc/$file" "/etc/$file"
done
[[ ! -d /etc/slurm ]] || mount --bind "$conf" /etc/slurm
hostname minicluster

# --- nodes ---------------------------------------------------------------------------------------------------------
# A process that does nothing holds each node's namespaces; node.sh makes them and becomes it.
ip link set lo up
ip link add vgpu0 type bridge
ip link set vgpu0 up
while read -r name address _; do
    unshare --net --uts --mount --propagation slave bash "$here/node.sh" "$name" >>"$logs/nodes.log" 2>&1 &
    holder=$!
    until [[ -e $state/node/$name ]]; do
        kill -0 $holder 2>/dev/null || fail "the namespaces of $name could not be made: see $logs/nodes.log"
        sleep 0.02
    done
    echo $holder >"$pids/$name.holder"
    ip link add "to-$name" type veth peer name eth0 netns $holder
    ip link set "to-$name" master vgpu0 up
    nsenter -t $holder --net bash -c "ip link set lo up; ip addr add $address/24 dev eth0; ip link set eth0 up"
done < <(node_table)

# --- daemons -------------------------------------------------------------------------------------------------------
export SLURM_CONF=$conf/slurm.conf VGPU_CONF=$conf/vgpu.conf
sbindir=$(<"$state/sbindir")

daemon_command() { # NODE DAEMON
    case $2 in
        munged) command=(munged --foreground --force --key-file="$secret/munge.key" --socket="$state/munge/socket"
            --pid-file="$state/munge/pid" --log-file="$logs/ctl.munged.log" --seed-file="$secret/munge.seed") ;;
        slurmctld) command=(slurmctld -D) ;;
        slurmd) command=(slurmd -D) ;;
        *) command=("$sbindir/$2" --foreground) ;;
    esac
}

# The project's own daemons are started again when they die, as their systemd units do.
restarts() { [[ $1 == vgpud || $1 == vgpuctld ]]; }

supervise() { # NODE DAEMON
    local command name=$1.$2 holder
    holder=$(<"$pids/$1.holder")
    trap - ERR
    set +e
    daemon_command "$1" "$2"
    while :; do
        nsenter -t "$holder" --net --uts --mount -- "${command[@]}" >>"$logs/$name.log" 2>&1 </dev/null &
        echo $! >"$pids/$name.new" && mv "$pids/$name.new" "$pids/$name"
        wait $!
        echo "minicluster: $2 on $1 ended with status $?" >>"$logs/$name.log"
        rm -f "$pids/$name"
        if ! restarts "$2" || [[ -e $control/$name.stop ]]; then
            until [[ -e $control/$name.start ]]; do sleep 0.2; done
            rm -f "$control/$name.start" "$control/$name.stop"
        else
            sleep 0.5
        fi
    done
}

while read -r name _ daemons; do
    for daemon in $daemons; do
        supervise "$name" "$daemon" &
        if [[ $daemon == munged ]]; then
            for _ in {1..100}; do
                [[ ! -S $state/munge/socket ]] || break
                sleep 0.05
            done
        fi
    done
done < <(node_table)
: >"$state/started"

# --- until down ----------------------------------------------------------------------------------------------------
trap - ERR
set +e
stopping=
trap 'stopping=1' TERM
# Orphans of all daemons and jobs become children of this process: bash reaps them while it waits.
while [[ -z $stopping ]]; do
    sleep 3600 &
    wait $!
done
exit 0
