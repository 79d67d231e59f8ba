# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Names, places and small helpers that minicluster's scripts share.
# shellcheck disable=SC2034 # used by the scripts that source this

# State directory: everything the cluster makes. Ordinary users can read it, but not secret/.
state=$(realpath -m -- "${VGPU_MINICLUSTER_DIR:-/var/lib/vgpu-minicluster}")
secret=$state/secret         # munge's key, the nodes' private directories, the host's own view of the file system
host=$secret/host            # the host's file system as it is outside the cluster
conf=$state/etc/slurm
logs=$state/log
pids=$state/pid              # NODE.DAEMON: its pid inside the cluster
control=$state/control       # NODE.DAEMON.{stop,start}: wishes to the supervisor
install=$state/install       # make install's DESTDIR

# Node, address, CPUs that Slurm may use, and daemons in the order of their start.
node_table() {
    cat <<'TABLE'
ctl 10.87.0.1 munged slurmctld vgpuctld
g1 10.87.0.21 vgpud slurmd
g2 10.87.0.22 vgpud slurmd
c1 10.87.0.11 slurmd
c2 10.87.0.12 slurmd
TABLE
}
node_names() { node_table | cut -d' ' -f1; }
node_daemons() { node_table | awk -v n="$1" '$1 == n { for (i = 3; i <= NF; i++) print $i }'; }

# The ordinary users: name, uid and gid.
user_table() {
    cat <<'TABLE'
alice 61001
bob 61002
TABLE
}

say() { echo "minicluster: $*" >&2; }
die() {
    say "$*"
    exit 1
}

# start_time PID: when the process started, in clock ticks since boot; with the pid it names one process for good.
start_time() {
    local stat
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    stat=${stat##*) }
    # shellcheck disable=SC2086
    set -- $stat
    echo "${20}"
}

# alive FILE: the file names a process ("PID START_TIME", as the host sees it) and that one still runs.
alive() {
    local pid started
    read -r pid started 2>/dev/null <"$1" || return 1
    [[ $(start_time "$pid") == "$started" ]]
}

# record FILE: writes down the calling shell in alive()'s format. /proc must be the host's.
record() {
    local pid
    read -r pid _ <"/proc/self/stat"
    echo "$pid $(start_time "$pid")" >"$1.new"
    mv "$1.new" "$1"
}

cluster_up() { alive "$state/init"; }
init_pid() { cut -d' ' -f1 "$state/init"; }
holder_pid() { cut -d' ' -f1 "$state/node/$1"; }
