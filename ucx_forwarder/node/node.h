// SPDX-License-Identifier: BSD-3-Clause
// What vgpud knows and does: the node's GPUs, leases and claims, and who may open a session on them. No HTTP.
#pragma once

#include "gres_vgpu/control/messages.h"
#include "topology/config.h"
#include "ucx_forwarder/node/sessions.h"
#include "ucx_forwarder/node/store.h"
#include "ucx_forwarder/transport/session_key.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace vgpu::node {

/// Any thread. Methods throw control::HttpError (what the asker did wrong) or std::runtime_error (what failed
/// here).
class Node {
public:
    /// Reads the leases of an earlier vgpud. Throws std::runtime_error.
    /// `to_syslog`: the workers log there instead of to standard error.
    Node(const Config& config, const NodeConfig& settings, std::vector<control::Gpu> gpus,
         bool to_syslog = false);

    void put_lease(const control::Lease& lease);
    void remove_lease(const std::string& id);
    void put_claim(const control::Claim& claim);
    void remove_claim(const std::string& id);
    control::NodeStatus status() const;

    /// First step of a client: a nonce for this claim.
    std::string challenge(const std::string& claim) const;
    /// Second step: with the proof, a worker that listens.
    struct OpenRequest {
        transport::SessionNonces nonces;
        std::string proof;          ///< hex
        std::string client;         ///< "c1:4711 saxpy"
        std::string client_address; ///< IP address
    };
    struct Opened {
        std::uint64_t session = 0;
        std::string address; ///< where the worker listens
        std::uint16_t port = 0;
    };
    Opened open(const OpenRequest& request);

    /// Waits until something changed since `seen`, or the time is over; the new count of changes.
    std::uint64_t wait_for_change(std::uint64_t seen, std::chrono::milliseconds longest);
    void wake();

private:
    struct HeldLease {
        control::Lease lease;
        std::vector<control::Vgpu> vgpus; ///< those on this node; the index is the slot in `memory`
        std::shared_ptr<worker::LeaseMemory> memory;
    };

    HeldLease hold(const control::Lease& lease) const;
    SessionPlan plan(const control::Claim& claim, const OpenRequest& request) const;
    std::string image_cache_of(uid_t uid, gid_t gid) const;
    void changed();

    const Config config_;
    const NodeConfig settings_;
    const std::vector<control::Gpu> gpus_;
    const bool to_syslog_;
    const transport::Challenges challenges_;

    mutable std::mutex mutex_; ///< all below but sessions_
    std::condition_variable change_;
    std::uint64_t changes_ = 0;
    Store store_;
    std::map<std::string, HeldLease> leases_;
    std::map<std::string, control::Claim> claims_;
    std::map<std::string, long long> used_nonces_; ///< with a right proof; until they expire
    unsigned opening_ = 0;
    Sessions sessions_; ///< last: its thread calls changed()
};

} // namespace vgpu::node
