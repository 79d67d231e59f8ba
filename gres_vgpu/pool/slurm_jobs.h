// SPDX-License-Identifier: BSD-3-Clause
// What Slurm knows of its jobs, asked through squeue: the way that works from outside slurmctld with every
// version. The columns asked for hold nothing that a user can choose freely (a job's name, say).
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "gres_vgpu/control/messages.h"
#include "gres_vgpu/control/result.h"
#include "topology/config.h"

namespace vgpu::pool {

/// A job's request for vGPUs.
struct SlurmJob {
    control::Job job;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string user;
    std::vector<std::string> nodes; ///< empty before it has been given any
    unsigned shares = 0;            ///< on each node
};

/// The standard output of a program that ended with 0. It is killed after `timeout`, or when *stop becomes
/// true.
control::Result<std::string> run_program(const std::vector<std::string>& arguments,
                                         std::chrono::milliseconds timeout,
                                         const std::atomic<bool>* stop = nullptr);

/// Jobs that have nodes: running, configuring, suspended, completing.
control::Result<std::vector<control::Job>> live_jobs(const Config& config,
                                                     const std::atomic<bool>* stop = nullptr);

/// Refused if Slurm does not know the job.
control::Result<SlurmJob> slurm_job(const Config& config, std::uint32_t id);

/// The vgpu shares in a gres list as Slurm prints it: "gres:vgpu:25", "gres/vgpu:a100:10,gres/gpu:1", "vgpu"
/// (1), "gres:vgpu=2K". 0 if there are none. Nothing if it cannot be understood.
std::optional<unsigned> vgpu_shares(const std::string& gres);

} // namespace vgpu::pool
