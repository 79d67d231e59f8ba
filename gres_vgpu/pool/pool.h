// SPDX-License-Identifier: BSD-3-Clause
// vgpuctld's knowledge: which GPUs there are, who holds what of them. Bookkeeping only: no I/O, no threads;
// the caller locks. Soft state: all of it comes back from the vgpuds' reports after a restart, but for the
// claims' secrets.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "gres_vgpu/control/messages.h"
#include "topology/config.h"
#include "topology/placement.h"

namespace vgpu::pool {

using Clock = std::chrono::steady_clock;

/// Whether two keys mean the same run of a job. A submit time of 0 is unknown: the id alone counts then.
bool same_job(const control::Job& a, const control::Job& b);

/// "job 42" for sentences.
std::string job_name(const control::Job& job);

struct Node {
    control::NodeStatus status;         ///< the last report; leases, claims and sessions as vgpud sees them
    uid_t uid = static_cast<uid_t>(-1); ///< of the vgpud that reported
    std::optional<Clock::time_point> seen;   ///< last report; none: not since vgpuctld's start
    std::optional<Clock::time_point> failed; ///< a call to it failed after the last report
};

struct LeaseEntry {
    control::Lease lease;
    Clock::time_point changed;                     ///< when it was last sent to the vgpuds
    std::optional<Clock::time_point> orphan_since; ///< Slurm has not known its job since then
};

struct ClaimEntry {
    control::Claim claim;
    Clock::time_point changed;
};

/// What must be said to a vgpud again, because its report shows that it missed it.
struct Repair {
    enum class What { put_lease, delete_lease, put_claim, delete_claim } what;
    std::string node;
    std::string id; ///< of the lease or claim
    control::Job job;
};

class Pool {
public:
    explicit Pool(const Config& config);

    // --- nodes ---
    const Node* node(const std::string& name) const; ///< null: in no NodeName line
    bool up(const Node& node, Clock::time_point now) const;
    /// Names of the nodes that have not reported yet.
    std::vector<std::string> unknown_nodes() const;
    /// Takes a report in: leases and claims that are new to us are adopted. Returns what vgpud missed.
    std::vector<Repair> report(const control::NodeStatus& status, uid_t uid, Clock::time_point now);
    void call_failed(const std::string& node, Clock::time_point now);

    // --- room ---
    /// GPUs of the nodes that are up, in the order of the file, with what is free; `without`: nodes to leave
    /// out; `as_if_gone`: a lease to count as released.
    std::vector<FreeGpu> free_gpus(Clock::time_point now, const std::set<std::string>& without = {},
                                   const std::string& as_if_gone = "") const;
    /// GPUs of all nodes that have ever reported, as if nobody held anything.
    std::vector<FreeGpu> whole_gpus() const;
    /// A lease on these places, with a fresh id; not added.
    control::Lease make_lease(const control::Request& request, const std::vector<FreeGpu>& gpus,
                              const std::vector<Place>& places) const;

    // --- leases and claims ---
    void put(const control::Lease& lease, Clock::time_point now);
    void put(const control::Claim& claim, Clock::time_point now);
    /// Forgets a lease with its claims (or one claim), and remembers that it is to be gone where a vgpud
    /// still has it.
    void erase_lease(const std::string& id);
    void erase_claim(const std::string& id);
    /// vgpud confirmed that it is gone.
    void gone(const std::string& node, const std::string& lease_id);

    std::map<std::string, LeaseEntry>& leases() { return leases_; }
    const std::map<std::string, ClaimEntry>& claims() const { return claims_; }
    /// Leases of the job id (any run of it), on `node` or on all if empty.
    std::vector<control::Lease> leases_of(std::uint32_t job, const std::string& node = "") const;
    std::vector<control::Claim> claims_of(const std::string& lease) const;
    std::string new_claim_id(const control::Request& request) const;

    control::PoolStatus status(Clock::time_point now) const;
    const std::vector<std::string>& order() const { return order_; } ///< node names as in the file

private:
    const Config& config_;
    std::vector<std::string> order_;
    std::map<std::string, Node> nodes_;
    std::map<std::string, LeaseEntry> leases_;
    std::map<std::string, ClaimEntry> claims_;
    void bury(const std::string& id);
    /// Ids of released leases and claims, not to be adopted from a late report, and when that was.
    std::map<std::string, Clock::time_point> dead_;
};

/// The nodes that hold a part of it, each once.
std::vector<std::string> nodes_of(const std::vector<control::Vgpu>& vgpus);

/// What of `lease` a step gets that asks `request`, or nothing: the lease is too small or of another shape.
std::optional<std::vector<control::Vgpu>> carve(const control::Lease& lease, const control::Request& request,
                                                unsigned shares_per_gpu);

/// Prometheus text. `uptime`: of vgpuctld.
std::string metrics(const control::PoolStatus& status, std::chrono::seconds uptime);

} // namespace vgpu::pool
