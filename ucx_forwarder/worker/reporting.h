// SPDX-License-Identifier: BSD-3-Clause
// The worker's end of the socket pair to vgpud.
#pragma once

#include "ucx_forwarder/worker/session_job.h"

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

namespace vgpu::worker {

/// Reads one line, at most 1 MiB, within the deadline. Throws std::runtime_error.
std::string read_line(int fd, std::chrono::milliseconds deadline);

/// Tells vgpud once a second what the session has done, and at the end. When vgpud is gone the process ends
/// at once: nobody supervises its limits any more.
class Reporter {
public:
    Reporter(int fd, const Counters& counters);
    ~Reporter();
    Reporter(const Reporter&) = delete;
    Reporter& operator=(const Reporter&) = delete;

    void ready(std::uint16_t port);
    void failed(const std::string& why);
    void connected(const std::string& transport);

private:
    void send(const Report& report);
    void send_counters();
    void run();

    const int fd_;
    const Counters& counters_;
    std::mutex mutex_;
    std::string transport_;
    int stop_fd_;
    std::thread thread_;
};

} // namespace vgpu::worker
