# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# What the numbered scripts share: cases in TAP's format, commands that are shown as they run, and questions to the
# cluster. Environment from run.sh: MINICLUSTER (the command), PROGRAMS (folder with the compiled programs), VGPU_TEST_LOGS.
set -u
: "${MINICLUSTER:?run by tests/cluster/run.sh}" "${PROGRAMS:?}"
cd "$PROGRAMS" || exit 1
case_number=0 case_name='' case_faults=() failed_cases=0
output='' status=0

mc() { "$MINICLUSTER" "$@"; }
as_root() { mc --user=root --on=ctl exec "$@"; }

# begin NAME: a new case; what follows belongs to it until the next begin or finish.
begin() {
    end_case
    case_name=$1 case_faults=()
    case_number=$((case_number + 1))
    echo "# --- $1"
}

end_case() {
    [[ -n $case_name ]] || return 0
    if [[ ${#case_faults[@]} == 0 ]]; then
        echo "ok $case_number - $case_name"
    else
        echo "not ok $case_number - $case_name"
        printf '#   %s\n' "${case_faults[@]}"
        failed_cases=$((failed_cases + 1))
    fi
    case_name=''
}

# finish: prints the plan; the script's status says whether all cases were ok.
finish() {
    end_case
    echo "1..$case_number"
    exit $((failed_cases > 0))
}

fault() { case_faults+=("$1"); }

# The words of a command in $words, functions of this file taken apart, for timeout runs programs only.
resolve() {
    case $1 in
        mc) words=("$MINICLUSTER" "${@:2}") ;;
        as_root) words=("$MINICLUSTER" --user=root --on=ctl exec "${@:2}") ;;
        *) words=("$@") ;;
    esac
    shown="${words[*]}"
    shown=${shown//"$MINICLUSTER"/minicluster}
}

show_output() { [[ -z $output ]] || printf '#   %s\n' "${output//$'\n'/$'\n'#   }"; }

# run COMMAND...: shows and runs it; its output (both streams) is in $output, its status in $status. No command may take
# longer than $limit seconds: it is killed then, and status is 124.
limit=60
run() {
    local words shown
    resolve "$@"
    echo "# \$ $shown"
    output=$(timeout -k 5 "$limit" "${words[@]}" 2>&1 </dev/null)
    status=$?
    show_output
    [[ $status != 124 ]] || fault "took longer than $limit s: $shown"
}

# srun as alice, or as $user.
user=alice
srun() { run "$MINICLUSTER" --user="$user" run "$@"; }

expect_status() { [[ $status == "$1" ]] || fault "status is $status, not $1"; }
expect_failure() { [[ $status != 0 && $status != 124 ]] || fault "status is $status: a failure was expected"; }
expect_output() { grep -qE -- "$1" <<<"$output" || fault "output lacks /$1/"; }
expect_no_output() { ! grep -qE -- "$1" <<<"$output" || fault "output has /$1/"; }
expect() { # expect TEXT COMMAND...: the command succeeds
    local text=$1
    shift
    "$@" || fault "$text"
}

# eventually TEXT COMMAND...: the command succeeds within 30 s.
eventually() {
    local text=$1 i
    shift
    for ((i = 0; i < 150; i++)); do
        ! "$@" || return 0
        sleep 0.2
    done
    fault "not within 30 s: $text"
    return 1
}

# background FILE COMMAND...: starts a command whose output goes to FILE; its pid is in $background_pid.
background() {
    local file=$1
    shift
    local words shown
    resolve "$@"
    echo "# \$ $shown &"
    timeout -k 5 "${background_limit:-120}" "${words[@]}" >"$file" 2>&1 </dev/null &
    # shellcheck disable=SC2034
    background_pid=$!
}

# join PID FILE: waits for a background command; sets $output and $status as run does.
join() {
    wait "$1"
    status=$?
    output=$(<"$2")
    show_output
    [[ $status != 124 ]] || fault "took too long"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# --- questions to the cluster --------------------------------------------------------------------------------------

pool() { as_root vgpuctl status --json 2>/dev/null | tr -d ' \n'; }
no_lease() {
    local now
    now=$(pool)
    [[ $now == *'"leases":[]'* && $now != *'"leases":[{'* ]]
}
no_session() {
    local now
    now=$(pool)
    [[ $now == *'"sessions":[]'* && $now != *'"sessions":[{'* ]]
}
has_session() { [[ $(pool) == *'"sessions":[{'* ]]; }
slurmctld_answers() { as_root scontrol ping 2>/dev/null | grep -q UP; }
no_job() { [[ -z $(as_root squeue --noheader 2>/dev/null) ]]; }
all_idle() { [[ $(as_root sinfo --noheader --Node --format=%t 2>/dev/null | sort | uniq -c | tr -d ' ') == 4idle ]]; }
# All GPUs are in the pool.
pool_complete() { [[ $(pool | grep -o '"pci_bus_id"' | wc -l) -ge 3 ]]; }

# The end of a case that hurt something: nothing is left behind, and the cluster works.
expect_recovery() {
    eventually "no job is left" no_job
    eventually "no lease is left" no_lease
    eventually "all nodes are idle" all_idle
    eventually "all GPUs are in the pool" pool_complete
    srun -w c1 --gres=vgpu:25 ./saxpy
    expect_status 0
}
