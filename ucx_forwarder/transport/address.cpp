// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/address.h"
#include "ucx_forwarder/transport/connection.h"

#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <unistd.h>

namespace vgpu::transport {

std::string SocketAddress::host() const {
    char name[NI_MAXHOST] = "?";
    getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, name, sizeof name, nullptr, 0,
                NI_NUMERICHOST);
    return name;
}

std::string SocketAddress::text() const {
    char service[NI_MAXSERV] = "?";
    getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, nullptr, 0, service, sizeof service,
                NI_NUMERICSERV);
    return host() + ":" + service;
}

SocketAddress resolve(const std::string& host, std::uint16_t port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int error =
        getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
    if (error != 0)
        throw TransportError("address \"" + host + "\": " + gai_strerror(error));
    SocketAddress result;
    memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
    result.size = found->ai_addrlen;
    freeaddrinfo(found);
    return result;
}

SocketAddress local_address_towards(const SocketAddress& peer) {
    SocketAddress local;
    local.size = sizeof local.storage;
    const int fd = socket(peer.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&peer.storage), peer.size) == 0 &&
                getsockname(fd, reinterpret_cast<sockaddr*>(&local.storage), &local.size) == 0;
    const int error = errno;
    if (fd >= 0)
        ::close(fd);
    if (!good)
        throw TransportError("no route to " + peer.text() + ": " + strerror(error));
    return local;
}

} // namespace vgpu::transport
