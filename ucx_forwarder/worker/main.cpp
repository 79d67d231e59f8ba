// SPDX-License-Identifier: BSD-3-Clause
// vgpu-worker: one client process's session on this node's GPUs, started by vgpud as the job's user.
#include "config.h"
#include "gres_vgpu/control/json.h"
#include "ucx_forwarder/transport/session_key.h"
#include "ucx_forwarder/worker/inventory.h"
#include "ucx_forwarder/worker/reporting.h"
#include "ucx_forwarder/worker/session_job.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <iostream>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>

namespace vgpu::worker {
namespace {

using namespace std::chrono_literals;

/// The client connects at once after vgpud's answer.
constexpr auto client_deadline = 30s;

/// The worker runs as the job's user, whose other processes must not look into it or steer it.
void seal_process() {
    prctl(PR_SET_DUMPABLE, 0);
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("TracerPid:") && line.find_first_of("123456789") != std::string::npos)
            throw std::runtime_error("a worker is not started under a debugger or tracer");
}

std::array<std::byte, 32> key_from(const std::string& hex) {
    const auto bytes = transport::from_hex(hex);
    std::array<std::byte, 32> key;
    if (bytes.size() != key.size())
        throw std::runtime_error("vgpud's job has no valid key");
    std::ranges::copy(bytes, key.begin());
    return key;
}

void set_up_log(const SessionJob& job) {
    if (job.to_syslog)
        spdlog::set_default_logger(
            spdlog::syslog_logger_mt("vgpu-worker-syslog", "vgpu-worker", LOG_PID, LOG_DAEMON));
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l vgpu-worker[%P]: session " +
                        std::to_string(job.job.session) + ": %v");
    spdlog::set_level(spdlog::level::from_str(job.log_level));
}

int serve() {
    seal_process();
    SessionJob job = job_from_line(read_line(session_fd, 10s));
    set_up_log(job);
    const auto memory = LeaseMemory::attach(memory_fd, job.slot);
    Counters counters;
    job.job.memory = memory.get();
    job.job.counters = &counters;
    Reporter reporter(session_fd, counters);
    try {
        const auto key = key_from(job.key_hex);
        const auto listener = transport::listen(job.listen_address, job.options);
        reporter.ready(listener->port());
        const auto connection = listener->accept(transport::Key(key), client_deadline);
        reporter.connected(connection->transport_name());
        spdlog::info("{} connected by {}", job.job.client, connection->transport_name());
        const int status = run_session(*connection, job.job);
        spdlog::info("ended with status {}; {} calls, {} awaited", status, counters.calls_sent.load(),
                     counters.calls_awaited.load());
        return status;
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        reporter.failed(error.what());
        return 1;
    }
}

} // namespace
} // namespace vgpu::worker

int main(int argc, char** argv) {
    CLI::App app{"slurm-vgpu's worker: runs the CUDA calls of one client process. vgpud starts it."};
    app.set_version_flag("--version", std::string("vgpu-worker ") + PACKAGE_VERSION);
    std::string library;
    app.add_option("--inventory", library, "Print the GPUs that this driver library shows, as JSON, and exit")
        ->type_name("LIBRARY");
    bool session = false;
    app.add_flag("--session", session,
                 "Serve the session that vgpud describes on descriptor 3; for vgpud only");
    CLI11_PARSE(app, argc, argv);
    signal(SIGPIPE, SIG_IGN);
    spdlog::set_default_logger(spdlog::stderr_logger_mt("vgpu-worker"));
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l vgpu-worker[%P]: %v");
    try {
        if (!library.empty()) {
            std::cout << nlohmann::json(vgpu::worker::inventory(library)).dump() << std::endl;
            return std::cout.good() ? 0 : 1;
        }
        if (session)
            return vgpu::worker::serve();
        std::cerr << app.help();
        return 2;
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return 1;
    }
}
