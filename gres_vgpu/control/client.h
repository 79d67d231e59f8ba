// SPDX-License-Identifier: BSD-3-Clause
// Calls to vgpuctld and vgpud. Light enough for slurmstepd: no threads, no global state, no logging, no
// exceptions but std::bad_alloc; every call ends within Options' deadlines. Objects are not shared between
// threads; each call makes its own connection.
//
// What `vgpuctl reserve` knows of the options --vgpu-mem and --vgpu-devices it reads from PrologSlurmctld's
// environment: SPANK_VGPU_MEM and SPANK_VGPU_DEVICES, which spank_vgpu sets at submission with
// spank_job_control_setenv(sp, "VGPU_MEM", ...) and ("VGPU_DEVICES", ...), values as the user wrote them.
// Where they are missing there, claim() changes the lease to what the step asks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <sys/types.h>

#include "gres_vgpu/control/messages.h"
#include "gres_vgpu/control/result.h"
#include "topology/config.h"

namespace vgpu::control {

/// Answer of vgpuctld's ping.
struct Pong {
    std::string version;
    bool ready = false; ///< knows all nodes it waits for after its start
    std::int64_t uptime_s = 0;
};

class Client {
public:
    struct Options {
        std::string name;    ///< for messages: "vgpuctld on ctl", "vgpud on g1"
        std::string server;  ///< the server's Options::name: "vgpuctld", or the node
        std::string address; ///< host name or IP address
        std::uint16_t port = 0;
        std::string munge_socket;
        std::vector<uid_t> trusted_uids{0}; ///< the answer must come from one of these
        /// If set, only this uid can decode the request: for requests that carry a secret.
        std::optional<uid_t> restrict_to;
        std::chrono::milliseconds connect_timeout{3000};
        std::chrono::milliseconds timeout{15000}; ///< from the connection to the whole answer
        /// How long reserve and claim ask again while vgpuctld is not ready (ErrorKind::not_ready) after its
        /// start.
        std::chrono::milliseconds ready_wait{20000};
    };

    explicit Client(Options options);
    static Client to_controller(const Config& config);
    static Client to_node(const Config& config, const NodeConfig& node);

    // --- vgpuctld; root or SlurmUser, except ping and status ---

    /// Leases for all nodes of a job, or none. Asked again for the same job and node, the lease that is there
    /// is returned.
    Result<std::vector<Lease>> reserve(const std::vector<Request>& requests) const;
    /// What a step may use, with its secret. Finds the job's lease on request.node or reserves one now.
    /// request.shares 0: all of the lease. Asked again for the same job, step and node, the same claim is
    /// returned.
    Result<Claim> claim(const Request& request) const;
    /// Gives back the job's leases, on `node` or (empty) on all nodes, with their claims; none is success
    /// too. The answer is how many there were. A job.submit_time of 0 stands for any job of that id.
    Result<unsigned> release(const Job& job, const std::string& node = "") const;
    /// Ends a claim and its sessions; one that is not there is success too.
    Result<Nothing> release_claim(const std::string& claim_id) const;
    Result<PoolStatus> status() const;
    Result<Pong> ping() const;
    /// vgpud's report. Answered with the milliseconds until the next one is wanted.
    Result<unsigned> register_node(const NodeStatus& status) const;

    // --- vgpud; root or SlurmUser; all idempotent ---

    Result<Nothing> put_lease(const Lease& lease) const; ///< PUT /v1/lease, new or changed (same id)
    Result<Nothing>
    delete_lease(const std::string& lease_id) const;     ///< DELETE /v1/lease {"id"}; with claims, sessions
    Result<Nothing> put_claim(const Claim& claim) const; ///< PUT /v1/claim; carries the secret
    Result<Nothing>
    delete_claim(const std::string& claim_id) const; ///< DELETE /v1/claim {"id"}; with its sessions
    Result<NodeStatus> node_status() const;          ///< GET /v1/status

    /// Any protected route.
    Result<nlohmann::json> call(const std::string& method, const std::string& path,
                                const nlohmann::json& body) const;

private:
    Options options_;
};

} // namespace vgpu::control
