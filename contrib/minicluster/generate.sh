# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Writes the cluster's configuration below the state directory. Sourced by minicluster, after common.sh, with
# $plugindir, $clientdir, $softgpudir, $workerprogram, $bindir, $sbindir and $transport set.
# shellcheck disable=SC2154

generate_hosts() {
    echo "127.0.0.1 localhost"
    node_table | while read -r name address _; do echo "$address $name"; done
}

# The host's users but for the names and numbers that are ours.
generate_passwd() {
    local name id
    awk -F: '
        NR == FNR { names[$1]; ids[$2]; next }
        !($1 in names) && !($3 in ids)' <(user_table | tr ' ' :) "/etc/$1"
    user_table | while read -r name id; do
        case $1 in
            passwd) echo "$name:x:$id:$id:minicluster user:$state/home/$name:/bin/bash" ;;
            group) echo "$name:x:$id:" ;;
        esac
    done
}

generate_slurm_conf() {
    local spool=$state/spool
    cat <<CONF
# Made by minicluster up.
ClusterName=minicluster
SlurmctldHost=ctl(10.87.0.1)
AuthType=auth/munge
AuthInfo=socket=$state/munge/socket
SlurmUser=slurm
StateSaveLocation=$state/slurmctld
SlurmdSpoolDir=$spool/%n
SlurmctldPidFile=$state/slurmctld/pid
SlurmdPidFile=$spool/%n.pid
SlurmctldLogFile=$logs/ctl.slurmctld.log
SlurmdLogFile=$logs/%n.slurmd.log
SlurmctldDebug=info
SlurmdDebug=info
PluginDir=$plugindir:$slurm_plugindir
PlugStackConfig=$conf/plugstack.conf
PrologSlurmctld=$conf/reserve.sh
EpilogSlurmctld=$conf/release.sh
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=50000
ReturnToService=2
SlurmdTimeout=60
InactiveLimit=0
KillWait=5
MinJobAge=300
# The nodes are as large as the tests want them, whatever machine they are on.
SlurmdParameters=config_overrides
GresTypes=vgpu
# Gres is a ceiling, not a possession: any node may hold all shares of the pool, whose 3 GPUs have 100 each.
NodeName=DEFAULT CPUs=8 RealMemory=1000 Gres=vgpu:300
CONF
    node_table | awk '$1 != "ctl" { print "NodeName=" $1 " NodeAddr=" $2 }'
    cat <<CONF
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
}

generate_vgpu_conf() {
    cat <<CONF
# Made by minicluster up. See vgpu.conf(5).
VgpuctldHost=ctl
VgpuctldAddr=10.87.0.1
MungeSocket=$state/munge/socket
SlurmUser=slurm
StateDir=$state/vgpu/state
RunDir=$state/vgpu/run
ClientDir=$clientdir
WorkerProgram=$workerprogram
Transport=$transport
SharesPerGPU=100
NodeName=g1 NodeAddr=10.87.0.21 NetDevices=eth0 CudaLibrary=$softgpudir/libcuda.so.1 CudaEnv=SOFTGPU_DEVICES=2,SOFTGPU_MEMORY=4G,SOFTGPU_DIR=/dev/shm/softgpu-g1,SOFTGPU_NAME=SoftGPU-of-g1
NodeName=g2 NodeAddr=10.87.0.22 NetDevices=eth0 CudaLibrary=$softgpudir/libcuda.so.1 CudaEnv=SOFTGPU_DEVICES=1,SOFTGPU_MEMORY=4G,SOFTGPU_DIR=/dev/shm/softgpu-g2,SOFTGPU_NAME=SoftGPU-of-g2
CONF
}

# A failing PrologSlurmctld makes srun end without a reason. Where there is no room now, the step asks again and says
# why it cannot start.
generate_prolog() { # HOOK SUBCOMMAND SECONDS
    cat <<CONF
#!/bin/bash
# Made by minicluster up: $1 for vgpuctl $2.
export VGPU_CONF=$conf/vgpu.conf SLURM_CONF=$conf/slurm.conf PATH=$bindir:$sbindir:\$PATH
{
    echo "job \$SLURM_JOB_ID on \$SLURM_JOB_NODELIST"
    vgpuctl $2 --wait=$3
} >>$logs/ctl.$2.log 2>&1
exit 0
CONF
}

generate_all() {
    generate_hosts >"$state/etc/hosts"
    generate_passwd passwd >"$state/etc/passwd"
    generate_passwd group >"$state/etc/group"
    : >"$state/etc/resolv.conf"
    generate_slurm_conf >"$conf/slurm.conf"
    # Slurm 22.05 looks for the cgroup version at start even where no plugin uses cgroups.
    echo "CgroupPlugin=cgroup/v1" >"$conf/cgroup.conf"
    generate_vgpu_conf >"$conf/vgpu.conf"
    echo "required $plugindir/spank_vgpu.so conf=$conf/vgpu.conf" >"$conf/plugstack.conf"
    generate_prolog PrologSlurmctld reserve 15 >"$conf/reserve.sh"
    generate_prolog EpilogSlurmctld release 10 >"$conf/release.sh"
    chmod 755 "$conf/reserve.sh" "$conf/release.sh"
}
