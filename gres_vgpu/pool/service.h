// SPDX-License-Identifier: BSD-3-Clause
// What vgpuctld does: answers reserve, claim, release; tells the vgpuds; frees what no live job owns.
// Thread-safe. Calls to vgpuds are made without the lock; work on one job is done one after the other.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "gres_vgpu/control/client.h"
#include "gres_vgpu/control/server.h"
#include "gres_vgpu/pool/pool.h"

namespace vgpu::pool {

/// All jobs that Slurm counts as live (started, not yet cleaned up), or why that is not known.
using LiveJobs = std::function<control::Result<std::vector<control::Job>>()>;

class Service {
public:
    /// `log`: level ("error", "warn", "info", "debug") and sentence; called from any thread.
    using Log = std::function<void(const char* level, const std::string& sentence)>;

    Service(Config config, LiveJobs live_jobs, Log log);
    ~Service(); ///< stops the threads

    /// The routes of vgpuctld (see client.h for what they do).
    void add_routes(control::Server& server);
    /// Starts the repair and the reconcile threads.
    void start();
    void stop(); ///< idempotent

    // What the routes do. They throw control::HttpError.
    std::vector<control::Lease> reserve(const std::vector<control::Request>& requests);
    control::Claim claim(const control::Request& request);
    unsigned release(const control::Job& job, const std::string& node);
    void release_claim(const std::string& id);
    void register_node(const control::NodeStatus& status, uid_t uid);
    control::PoolStatus status() const;
    std::string metrics_text() const;
    bool ready() const;

    /// One comparison with Slurm's live jobs, as the thread does it.
    void reconcile();

private:
    /// One thread at a time works on a job (by id: runs of one id must not overlap either).
    class JobLock {
    public:
        JobLock(Service& service, std::uint32_t job) : service_(service), job_(job) {
            std::unique_lock lock(service_.mutex_);
            service_.changed_.wait(lock, [&] { return !service_.busy_jobs_.contains(job_); });
            service_.busy_jobs_.insert(job_);
        }
        ~JobLock() {
            std::lock_guard lock(service_.mutex_);
            service_.busy_jobs_.erase(job_);
            service_.changed_.notify_all();
        }
        JobLock(const JobLock&) = delete;
        JobLock& operator=(const JobLock&) = delete;

    private:
        Service& service_;
        std::uint32_t job_;
    };
    using Lease = control::Lease;
    using Claim = control::Claim;
    using Request = control::Request;

    void check(const Request& request) const;
    void wait_ready() const; ///< throws 503 while vgpuctld does not know the pool yet
    control::Result<control::Nothing>
    tell(const std::string& node,
         const std::function<control::Result<control::Nothing>(const control::Client&)>& what);
    /// Places and writes down everywhere, or throws and leaves nothing. The job is locked.
    Lease new_lease(const Request& request, const std::string& as_if_gone = "");
    control::Result<control::Nothing> push(const Lease& lease, const std::vector<std::string>& nodes);
    void drop(const Lease& lease, const std::string& why);
    void drop_claim(const Claim& claim);
    void drop_stale(const Request& request);
    /// The lease changed so that the step's request fits in it, or throws. The job is locked.
    Lease enlarge(const Lease& lease, const Request& request);
    std::optional<Lease> grown(const Lease& lease, const Request& request) const;
    Claim make_claim(const Lease& lease, const Request& request);
    void repair(const Repair& repair);
    void repair_loop();
    void reconcile_loop();

    const Config config_;
    const LiveJobs live_jobs_;
    const Log log_;
    const Clock::time_point started_ = Clock::now();

    mutable std::mutex mutex_; ///< pool_, busy_jobs_, repairs_, stopping_
    std::condition_variable changed_;
    Pool pool_;
    std::set<std::uint32_t> busy_jobs_;
    std::vector<Repair> repairs_;
    bool stopping_ = false;
    bool slurm_silent_ = false; ///< reconcile thread only: to say it once
    std::thread repair_thread_, reconcile_thread_;
};

} // namespace vgpu::pool
