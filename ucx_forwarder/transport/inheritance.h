// SPDX-License-Identifier: BSD-3-Clause
// UCX opens its sockets without close-on-exec. A program that the user's program starts would keep them open,
// and the worker would not notice the user's program's end.
#pragma once

#include "ucx_forwarder/transport/address.h"

#include <set>

namespace vgpu::transport {

class NewSockets {
public:
    /// Remembers which descriptors are open now.
    NewSockets();
    /// Sets close-on-exec on internet sockets that came since and that lead to the peer's host, or listen.
    void close_on_exec(const SocketAddress& peer) const;

private:
    std::set<int> before_;
};

} // namespace vgpu::transport
