// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/reporting.h"

#include <poll.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vgpu::worker {

std::string read_line(int fd, std::chrono::milliseconds deadline) {
    const auto until = std::chrono::steady_clock::now() + deadline;
    std::string line;
    while (line.size() < (1u << 20)) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
        pollfd waiting{fd, POLLIN, 0};
        if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) <= 0)
            throw std::runtime_error("vgpud sent no job");
        char byte;
        if (read(fd, &byte, 1) != 1)
            throw std::runtime_error("vgpud went away before it sent a job");
        if (byte == '\n')
            return line;
        line += byte;
    }
    throw std::runtime_error("vgpud's job is longer than 1 MiB");
}

Reporter::Reporter(int fd, const Counters& counters)
    : fd_(fd), counters_(counters), stop_fd_(eventfd(0, EFD_CLOEXEC)), thread_([this] { run(); }) {}

Reporter::~Reporter() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(stop_fd_, &one, sizeof one);
    thread_.join();
    send_counters();
    ::close(stop_fd_);
}

void Reporter::send(const Report& report) {
    const std::string line = to_line(report);
    // vgpud that does not read for so long that the socket is full misses a report, no more.
    [[maybe_unused]] const auto sent = ::send(fd_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Reporter::ready(std::uint16_t port) {
    Report report;
    report.port = port;
    send(report);
}

void Reporter::failed(const std::string& why) {
    Report report;
    report.failure = why;
    send(report);
}

void Reporter::connected(const std::string& transport) {
    {
        std::lock_guard lock(mutex_);
        transport_ = transport;
    }
    send_counters();
}

void Reporter::send_counters() {
    Report report;
    {
        std::lock_guard lock(mutex_);
        report.transport = transport_;
    }
    report.calls_sent = counters_.calls_sent;
    report.calls_awaited = counters_.calls_awaited;
    send(report);
}

void Reporter::run() {
    for (;;) {
        pollfd fds[2] = {{stop_fd_, POLLIN, 0}, {fd_, POLLRDHUP, 0}};
        const int ready = poll(fds, 2, 1000);
        if (fds[0].revents != 0)
            return;
        if (ready > 0 && (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR)))
            _exit(3);
        if (ready == 0)
            send_counters();
    }
}

} // namespace vgpu::worker
