// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/session_job.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace vgpu::worker {

using nlohmann::json;

std::string to_line(const SessionJob& job) {
    json vgpus = json::array();
    for (const auto& vgpu : job.job.vgpus)
        vgpus.push_back({{"slot", vgpu.slot},
                         {"gpu", vgpu.gpu},
                         {"uuid", vgpu.uuid},
                         {"shares", vgpu.shares},
                         {"memory", vgpu.memory}});
    return json{{"session", job.job.session},
                {"claim", job.job.claim},
                {"client", job.job.client},
                {"cuda_library", job.job.cuda_library},
                {"cuda_env", job.job.cuda_env},
                {"image_cache", job.job.image_cache},
                {"vgpus", vgpus},
                {"slot", job.slot},
                {"listen", job.listen_address},
                {"key", job.key_hex},
                {"transport", job.options.transport},
                {"net_devices", job.options.net_devices},
                {"heartbeat_ms", job.options.heartbeat.count()},
                {"peer_timeout_ms", job.options.peer_timeout.count()},
                {"log_level", job.log_level},
                {"to_syslog", job.to_syslog}}
               .dump(-1, ' ', false, json::error_handler_t::replace) +
           "\n";
}

SessionJob job_from_line(const std::string& line) {
    try {
        const json in = json::parse(line);
        SessionJob job;
        job.job.session = in.at("session");
        job.job.claim = in.at("claim");
        job.job.client = in.at("client");
        job.job.cuda_library = in.at("cuda_library");
        job.job.cuda_env = in.at("cuda_env").get<std::map<std::string, std::string>>();
        job.job.image_cache = in.at("image_cache");
        for (const json& vgpu : in.at("vgpus"))
            job.job.vgpus.push_back(
                {vgpu.at("slot"), vgpu.at("gpu"), vgpu.at("uuid"), vgpu.at("shares"), vgpu.at("memory")});
        job.slot = in.at("slot");
        job.listen_address = in.at("listen");
        job.key_hex = in.at("key");
        job.options.transport = in.at("transport");
        job.options.net_devices = in.at("net_devices");
        job.options.heartbeat = std::chrono::milliseconds(in.at("heartbeat_ms").get<long long>());
        job.options.peer_timeout = std::chrono::milliseconds(in.at("peer_timeout_ms").get<long long>());
        job.log_level = in.at("log_level");
        job.to_syslog = in.at("to_syslog");
        return job;
    } catch (const json::exception& error) {
        throw std::runtime_error(std::string("vgpud's job is not understood (same version of both?): ") +
                                 error.what());
    }
}

std::string to_line(const Report& report) {
    return json{{"port", report.port},
                {"transport", report.transport},
                {"calls_sent", report.calls_sent},
                {"calls_awaited", report.calls_awaited},
                {"failure", report.failure}}
               .dump(-1, ' ', false, json::error_handler_t::replace) +
           "\n";
}

Report report_from_line(const std::string& line) {
    try {
        const json in = json::parse(line);
        Report report;
        report.port = in.value("port", std::uint16_t{0});
        report.transport = in.value("transport", "");
        report.calls_sent = in.value("calls_sent", std::uint64_t{0});
        report.calls_awaited = in.value("calls_awaited", std::uint64_t{0});
        report.failure = in.value("failure", "");
        return report;
    } catch (const json::exception& error) {
        throw std::runtime_error(std::string("the worker's report is not understood: ") + error.what());
    }
}

} // namespace vgpu::worker
