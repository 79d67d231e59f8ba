// SPDX-License-Identifier: BSD-3-Clause
// What vgpud and a vgpu-worker say to each other over the socket pair between them: one JSON object a line.
// vgpud sends one line, the job; the worker sends a ready line, reports, and perhaps a failure.
#pragma once

#include "ucx_forwarder/transport/connection.h"
#include "ucx_forwarder/worker/worker.h"

#include <cstdint>
#include <string>

namespace vgpu::worker {

/// Descriptors that a worker inherits.
constexpr int session_fd = 3;
constexpr int memory_fd = 4;

struct SessionJob {
    WorkerJob job; ///< without its pointers
    int slot = 0;  ///< of the lease's memory page
    std::string listen_address;
    std::string key_hex; ///< that the client must know
    transport::Options options;
    std::string log_level = "info";
    bool to_syslog = false; ///< else to standard error
};

struct Report {
    std::uint16_t port = 0; ///< of the listener; 0: not a ready line
    std::string transport;
    std::uint64_t calls_sent = 0;
    std::uint64_t calls_awaited = 0;
    std::string failure; ///< why there will be no session
};

std::string to_line(const SessionJob& job);
/// Throws std::runtime_error with a sentence.
SessionJob job_from_line(const std::string& line);
std::string to_line(const Report& report);
/// Throws std::runtime_error with a sentence.
Report report_from_line(const std::string& line);

} // namespace vgpu::worker
