// SPDX-License-Identifier: BSD-3-Clause
// Two processes joined by a connection, for the tests.
#pragma once

#include "ucx_forwarder/transport/connection.h"

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace vgpu::test {

/// What both ends know in the tests.
transport::Key test_key();

/// Where the servers listen: $VGPU_TEST_ADDRESS, else 127.0.0.1. For runs over RDMA, which has no loopback.
std::string test_address();
/// $VGPU_TEST_TRANSPORTS, separated by spaces, else tcp and shm.
std::vector<std::string> test_transports();

/// A child process; killed and reaped by the destructor.
class Child {
public:
    explicit Child(pid_t pid) : pid_(pid) {}
    Child(Child&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
    ~Child();
    pid_t pid() const { return pid_; }
    void kill(int signal) const;
    /// Exit status, or 128 + the signal.
    int wait();

private:
    pid_t pid_;
};

/// Runs `server` with the accepted connection in a child process, whose exit status is its result.
struct Server {
    Child process;
    std::uint16_t port = 0;
};
Server start_server(const transport::Options& options,
                    const std::function<int(std::unique_ptr<transport::Connection>)>& server);

std::unique_ptr<transport::Connection> connect_to(const Server& server, const transport::Options& options);

/// Sends every message back as it came, until the connection is lost.
int echo(std::unique_ptr<transport::Connection> connection);

} // namespace vgpu::test
