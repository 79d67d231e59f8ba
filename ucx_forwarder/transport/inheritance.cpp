// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/inheritance.h"

#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/socket.h>

namespace vgpu::transport {
namespace {

std::set<int> open_descriptors() {
    std::set<int> found;
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir("/proc/self/fd"), closedir);
    while (const dirent* entry = dir ? readdir(dir.get()) : nullptr)
        if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != dirfd(dir.get()))
            found.insert(std::atoi(entry->d_name));
    return found;
}

bool ours(int fd, const SocketAddress& peer) {
    SocketAddress other;
    other.size = sizeof other.storage;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&other.storage), &other.size) == 0)
        return (other.storage.ss_family == AF_INET || other.storage.ss_family == AF_INET6) &&
               other.host() == peer.host();
    int listens = 0;
    socklen_t size = sizeof listens;
    other.size = sizeof other.storage;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
           getsockname(fd, reinterpret_cast<sockaddr*>(&other.storage), &other.size) == 0 &&
           (other.storage.ss_family == AF_INET || other.storage.ss_family == AF_INET6);
}

} // namespace

NewSockets::NewSockets() : before_(open_descriptors()) {}

void NewSockets::close_on_exec(const SocketAddress& peer) const {
    for (int fd : open_descriptors())
        if (!before_.contains(fd) && ours(fd, peer))
            if (const int flags = fcntl(fd, F_GETFD); flags >= 0)
                fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

} // namespace vgpu::transport
