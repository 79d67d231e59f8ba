// SPDX-License-Identifier: BSD-3-Clause
#include "tests/transport/pair.h"

#include "tests/transport/echo.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vgpu::test {
using namespace std::chrono_literals;

transport::Key test_key() {
    static const std::array<std::byte, 32> key = [] {
        std::array<std::byte, 32> bytes;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(3 * i + 1);
        return bytes;
    }();
    return transport::Key(key);
}

std::string test_address() {
    const char* address = getenv("VGPU_TEST_ADDRESS");
    return address != nullptr ? address : "127.0.0.1";
}

std::vector<std::string> test_transports() {
    const char* names = getenv("VGPU_TEST_TRANSPORTS");
    std::istringstream in(names != nullptr ? names : "tcp shm");
    return {std::istream_iterator<std::string>(in), {}};
}

Child::~Child() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
}

void Child::kill(int signal) const {
    ::kill(pid_, signal);
}

int Child::wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Server start_server(const transport::Options& options,
                    const std::function<int(std::unique_ptr<transport::Connection>)>& server) {
    int ends[2];
    if (pipe(ends) != 0)
        throw std::runtime_error("pipe");
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(ends[0]);
        int status = 99;
        try {
            auto listener = transport::listen(test_address(), options);
            const std::uint16_t port = listener->port();
            if (write(ends[1], &port, sizeof port) != sizeof port)
                _exit(98);
            ::close(ends[1]);
            auto connection = listener->accept(test_key(), 30s);
            listener.reset();
            status = server(std::move(connection));
        } catch (const std::exception& error) {
            fprintf(stderr, "server: %s\n", error.what());
        }
        _exit(status);
    }
    ::close(ends[1]);
    Server result{Child(pid), 0};
    const bool good = read(ends[0], &result.port, sizeof result.port) == sizeof result.port;
    ::close(ends[0]);
    if (!good)
        throw std::runtime_error("the server did not start");
    return result;
}

std::unique_ptr<transport::Connection> connect_to(const Server& server, const transport::Options& options) {
    return transport::connect(test_address(), server.port, test_key(), options, 30s);
}

int echo(std::unique_ptr<transport::Connection> connection) {
    Echo receiver(*connection);
    connection->start(receiver);
    const bool result = connection->wait_until([&] { return receiver.is_lost(); });
    static_cast<void>(result);
    connection.reset();
    return 0;
}

} // namespace vgpu::test
