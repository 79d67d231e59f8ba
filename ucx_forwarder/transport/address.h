// SPDX-License-Identifier: BSD-3-Clause
// Socket addresses, and by which of its own a machine reaches another.
#pragma once

#include <cstdint>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>

namespace vgpu::transport {

/// An IPv4 or IPv6 address with a port.
struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;
    std::string host() const; ///< "10.0.0.3"
    std::string text() const; ///< "10.0.0.3:4711"
};

/// Throws TransportError when the name is unknown. Empty: any address of this machine.
SocketAddress resolve(const std::string& host, std::uint16_t port);

/// The local address from which the kernel would reach that peer. Throws TransportError when there is no
/// route.
SocketAddress local_address_towards(const SocketAddress& peer);

} // namespace vgpu::transport
