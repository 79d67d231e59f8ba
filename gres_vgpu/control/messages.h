// SPDX-License-Identifier: BSD-3-Clause
// What the processes of the control plane say to each other. Every struct has to_json/from_json (nlohmann);
// unknown fields are ignored, missing ones keep their defaults, so that neighbours of different versions
// understand each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::control {

/// One GPU of a node, as vgpud found it. Index: the driver's device ordinal on that node.
struct Gpu {
    int index = 0;
    std::string uuid; ///< "GPU-xxxxxxxx-..."
    std::string name;
    std::string pci_bus_id;
    std::uint64_t memory_mib = 0;
};

/// A job as Slurm knows it. An id can be used again (facts/slurm.md), hence the time and the count.
struct Job {
    std::uint32_t id = 0;
    std::int64_t submit_time = 0; ///< seconds since the epoch; 0 where the caller cannot know it
    std::uint32_t restarts = 0;
};

/// What is asked for on one node of a job.
struct Request {
    Job job;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string user;       ///< name, for people to read
    std::string node;       ///< the node the tasks run on
    std::uint32_t step = 0; ///< claim only; Slurm's step id (4294967291 is the batch step)
    unsigned shares = 0;
    unsigned devices = 0;         ///< 0: as few vGPUs as hold the shares
    std::uint64_t memory_mib = 0; ///< per vGPU; 0: in proportion to the shares
};

/// A part of one GPU, in a lease.
struct Vgpu {
    std::string node;    ///< GPU node
    std::string address; ///< where its vgpud listens
    std::uint16_t port = 0;
    int gpu = 0; ///< index on that node
    std::string uuid;
    std::string gpu_name;
    unsigned shares = 0;
    std::uint64_t memory_mib = 0;
};

/// What a job holds on one of its nodes. Made by reserve, or by the first claim where no reserve came before.
struct Lease {
    std::string id; ///< "JOBID.NODE.n"
    Request request;
    std::vector<Vgpu> vgpus; ///< in the order of the program's device numbers
};

/// What a step got to use of its job's lease. The secret never appears in a status.
struct Claim {
    std::string id; ///< "JOBID.STEP.NODE.n"
    std::string lease;
    std::string secret;      ///< 32 random bytes in hex
    Request request;         ///< of the step
    std::vector<Vgpu> vgpus; ///< with the step's own limits
};

/// A client process at work, as its vgpud sees it.
struct Session {
    std::uint64_t id = 0;
    std::string claim;
    std::string lease;
    std::int64_t pid = 0;                   ///< of the worker
    std::string client;                     ///< "c1:4711 saxpy" host, pid, program
    std::string transport;                  ///< as UCX names it: "tcp/eth0", "posix+cma", "rc_mlx5/mlx5_0:1"
    std::uint64_t calls_sent = 0;           ///< all calls that went to the worker
    std::uint64_t calls_awaited = 0;        ///< of these, with a round trip
    std::vector<std::uint64_t> memory_used; ///< bytes, per vGPU of the lease
};

/// vgpud -> vgpuctld, every few seconds, and at once when something changed.
struct NodeStatus {
    std::string node;
    std::string address;
    std::uint16_t port = 0;
    std::vector<Gpu> gpus;
    std::vector<Lease> leases;
    std::vector<Claim> claims; ///< without their secrets
    std::vector<Session> sessions;
    std::string version; ///< of vgpud
    std::string state;   ///< set by vgpuctld in a PoolStatus: "up", "down" (silent), "unknown" (not seen yet)
};

/// vgpuctld -> anyone.
struct PoolStatus {
    unsigned shares_per_gpu = 100;
    std::vector<NodeStatus> nodes;
};

} // namespace vgpu::control
