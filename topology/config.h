// SPDX-License-Identifier: BSD-3-Clause
// vgpu.conf: one file for the whole cluster, the same on every node, in the manner of slurm.conf. See
// vgpu.conf(5).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu {

/// What is wrong in vgpu.conf, where, and what would be right, in one sentence ("vgpu.conf line 3: ...").
struct ConfigError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Settings of one GPU node; a NodeName line, with the file's global values where the line is silent.
struct NodeConfig {
    std::string name;
    std::string address;                       ///< NodeAddr; where vgpud is reached; default: the name
    std::string cuda_library = "libcuda.so.1"; ///< CudaLibrary; the driver that the workers open
    std::map<std::string, std::string>
        cuda_env;            ///< CudaEnv=A=1,B=2; given to processes that open that driver
    std::string net_devices; ///< NetDevices, as UCX_NET_DEVICES; empty: chosen by the route
};

struct Config {
    std::string path;                        ///< the file this was read from
    std::string controller_host;             ///< VgpuctldHost, required: name of vgpuctld's machine
    std::string controller_address;          ///< VgpuctldAddr; default: the host
    std::uint16_t controller_port = 6830;    ///< VgpuctldPort
    std::uint16_t node_port = 6831;          ///< VgpudPort
    unsigned shares_per_gpu = 100;           ///< SharesPerGPU
    std::string munge_socket;                ///< MungeSocket; empty: munge's own default
    std::string slurm_user = "slurm";        ///< SlurmUser; may reserve and release, like root
    std::string state_dir = "/var/lib/vgpu"; ///< StateDir; vgpud's lease database
    std::string run_dir = "/run/vgpu";       ///< RunDir; pid files, and lease files for the tasks of a node
    std::string client_dir;         ///< ClientDir; default: where make install put the client runtime
    std::string worker_program;     ///< WorkerProgram; default: the installed vgpu-worker
    std::string transport = "auto"; ///< Transport=auto|tcp|shm|rdma; anything but auto is a demand
    bool static_redirect = true;    ///< StaticRedirect=yes|no: redirect statically linked cudart
    std::string log_level = "info"; ///< LogLevel=error|warn|info|debug|trace
    std::chrono::milliseconds peer_timeout{
        4000}; ///< PeerTimeout: silence after which a client gives up a worker
    std::chrono::milliseconds node_timeout{
        10000}; ///< NodeTimeout: silence after which vgpuctld counts a vgpud as down
    std::chrono::milliseconds start_grace{
        15000}; ///< StartGrace: how long a new vgpuctld waits for the vgpuds
    std::chrono::milliseconds reconcile_interval{
        10000}; ///< ReconcileInterval: between looks at Slurm's live jobs
    std::chrono::milliseconds job_grace{
        60000};                            ///< JobGrace: a lease is kept so long though its job is not live
    std::string squeue_program = "squeue"; ///< SqueueProgram
    std::vector<NodeConfig> nodes;         ///< the GPU nodes, in the order of the file

    /// The NodeName line for `name`, or null: that node has no GPUs in the pool.
    const NodeConfig* node(const std::string& name) const;

    /// This, as it holds on the node `name`: "%n" in StateDir and RunDir replaced by the name. (In NodeName
    /// lines load_config did so already.) For nodes that share a file system.
    Config on(const std::string& name) const;
};

/// Reads and checks the file. Throws ConfigError. Path: argument, else $VGPU_CONF, else
/// SYSCONFDIR/slurm/vgpu.conf.
Config load_config(const std::string& path = "");

} // namespace vgpu
