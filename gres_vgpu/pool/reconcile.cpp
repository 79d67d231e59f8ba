// SPDX-License-Identifier: BSD-3-Clause
// The part of Service that runs by itself: says again what a vgpud missed, and frees what no live job owns.
#include "gres_vgpu/pool/service.h"

namespace vgpu::pool {

using control::Client;
using control::Job;

void Service::repair_loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stopping_ || !repairs_.empty(); });
        if (stopping_)
            return;
        auto repairs = std::exchange(repairs_, {});
        lock.unlock();
        for (const auto& one : repairs)
            repair(one);
        lock.lock();
    }
}

void Service::repair(const Repair& repair) {
    using What = Repair::What;
    JobLock job(*this, repair.job.id);
    std::optional<Lease> lease;
    std::optional<Claim> claim;
    {
        // Things may have changed since the report; what is wanted now counts.
        std::lock_guard lock(mutex_);
        if (auto found = pool_.leases().find(repair.id); found != pool_.leases().end()) {
            lease = found->second.lease;
            found->second.changed = Clock::now();
        }
        if (auto found = pool_.claims().find(repair.id); found != pool_.claims().end())
            claim = found->second.claim;
        if (claim && repair.what == What::put_claim)
            pool_.put(*claim, Clock::now());
    }
    auto result = tell(repair.node, [&](const Client& client) -> control::Result<control::Nothing> {
        switch (repair.what) {
        case What::put_lease:
            return lease ? client.put_lease(*lease) : control::Nothing{};
        case What::put_claim:
            return claim ? client.put_claim(*claim) : control::Nothing{};
        case What::delete_lease:
            return lease ? control::Nothing{} : client.delete_lease(repair.id);
        case What::delete_claim:
            return claim ? control::Nothing{} : client.delete_claim(repair.id);
        }
        return control::Nothing{};
    });
    if (!result) {
        log_("warn", "cannot bring " + repair.node + " up to date about " + repair.id + ": " +
                         result.error().message);
        return;
    }
    log_("info", "brought " + repair.node + " up to date about " + repair.id);
    if (repair.what == What::delete_lease && !lease) {
        std::lock_guard lock(mutex_);
        pool_.gone(repair.node, repair.id);
    }
}

void Service::reconcile_loop() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            if (changed_.wait_for(lock, config_.reconcile_interval, [this] { return stopping_; }))
                return;
            if (pool_.leases().empty())
                continue; // nothing to free: Slurm need not be asked
        }
        reconcile();
    }
}

void Service::reconcile() {
    const auto asked = Clock::now();
    auto jobs = live_jobs_();
    if (!jobs) {
        if (!slurm_silent_)
            log_("warn", "nothing is freed until Slurm tells its live jobs again: " + jobs.error().message);
        slurm_silent_ = true;
        return;
    }
    slurm_silent_ = false;
    std::vector<Lease> orphans;
    {
        std::lock_guard lock(mutex_);
        const auto now = Clock::now();
        for (auto& [id, entry] : pool_.leases()) {
            bool live = false;
            for (const auto& job : *jobs)
                live = live || same_job(job, entry.lease.request.job);
            if (live || entry.changed > asked)
                entry.orphan_since.reset();
            else if (!entry.orphan_since)
                entry.orphan_since = now;
            // Slurm may know a job a little later than we do, and forget it a little earlier.
            if (entry.orphan_since && now - *entry.orphan_since >= config_.job_grace)
                orphans.push_back(entry.lease);
        }
    }
    for (const auto& orphan : orphans) {
        JobLock job(*this, orphan.request.job.id);
        {
            std::lock_guard lock(mutex_);
            auto found = pool_.leases().find(orphan.id);
            if (found == pool_.leases().end() || !found->second.orphan_since)
                continue;
        }
        drop(orphan, "Slurm has no live " + job_name(orphan.request.job) + " any more");
    }
}

} // namespace vgpu::pool
