// SPDX-License-Identifier: BSD-3-Clause
// UCX's own objects: a context with the settings that our Options mean, one worker, and what UCX chose for an
// endpoint.
#pragma once

#include "ucx_forwarder/transport/address.h"
#include "ucx_forwarder/transport/connection.h"

#include <string>
#include <ucp/api/ucp.h>

namespace vgpu::transport {

/// A context and its only worker. Not thread safe: the owner locks.
class Ucx {
public:
    /// `net_devices`: as UCX_NET_DEVICES, never empty. Throws TransportError.
    Ucx(const Options& options, const std::string& net_devices);
    ~Ucx();
    Ucx(const Ucx&) = delete;
    Ucx& operator=(const Ucx&) = delete;

    ucp_worker_h worker() const { return worker_; }
    /// Readable when there is something to progress, once ucp_worker_arm said UCS_OK.
    int event_fd() const { return event_fd_; }
    /// Gives up the handles without destroying them: in a forked child, or when requests never completed.
    void leak();

private:
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    int event_fd_ = -1;
};

inline ucs_sock_addr_t ucs_address(const SocketAddress& address) {
    return {reinterpret_cast<const sockaddr*>(&address.storage), address.size};
}

/// What UCX_NET_DEVICES shall be for traffic from this local address: the interface that has it and, unless
/// the transport excludes them, the machine's active RDMA ports. "all" for the wildcard address.
std::string devices_for(const SocketAddress& local, const Options& options);

/// What UCX chose, from its own description of the endpoint: "tcp/eth0", "posix+cma", "rc_verbs/rxe0:1".
std::string lane_names(ucp_ep_h endpoint);

/// Throws TransportError when a demanded transport is not the one in use.
void check_demand(const Options& options, const std::string& in_use, const std::string& peer);

} // namespace vgpu::transport
