// SPDX-License-Identifier: BSD-3-Clause
// vgpud: owns the GPUs of its node.
#include "config.h"
#include "gres_vgpu/control/json.h"
#include "ucx_forwarder/node/daemon.h"
#include "ucx_forwarder/node/service.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <iostream>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vgpu::node {
namespace {

struct Options {
    std::string config;
    std::string node;
    bool foreground = false;
};

std::string own_host_name() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    const std::string full = name;
    return full.substr(0, full.find('.'));
}

std::vector<control::Gpu> find_gpus(const Config& config, const NodeConfig& settings) {
    Spawn spawn;
    spawn.program = config.worker_program;
    spawn.arguments = {"--inventory", settings.cuda_library};
    spawn.environment = worker_environment(settings.cuda_env);
    const auto gpus = nlohmann::json::parse(run_for_output(spawn, 60)).get<std::vector<control::Gpu>>();
    if (gpus.empty())
        spdlog::warn("{} shows no GPU", settings.cuda_library);
    for (const auto& gpu : gpus)
        spdlog::info("GPU {}: {}, {} MiB, {}, {}", gpu.index, gpu.name, gpu.memory_mib, gpu.uuid,
                     gpu.pci_bus_id);
    return gpus;
}

int run(const Options& options) {
    const std::string name = options.node.empty() ? own_host_name() : options.node;
    const Config config = load_config(options.config).on(name);
    const NodeConfig* settings = config.node(name);
    if (settings == nullptr)
        throw ConfigError(config.path + " has no line NodeName=" + name +
                          ": only nodes that have one run vgpud (or give the name by --node)");
    spdlog::set_level(spdlog::level::from_str(config.log_level));
    make_directory(config.state_dir, 0711);
    make_directory(config.run_dir, 0755);
    // Signals come to this thread only, by sigwait.
    sigset_t signals;
    sigemptyset(&signals);
    for (int number : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&signals, number);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);

    Daemon daemon(options.foreground);
    const PidFile pid_file(config.run_dir + "/vgpud-" + name + ".pid");
    if (!options.foreground) // standard error until ready(), so that a start that fails is heard
        spdlog::default_logger()->sinks().push_back(
            std::make_shared<spdlog::sinks::syslog_sink_mt>("vgpud", LOG_PID, LOG_DAEMON, false));
    Node node(config, *settings, find_gpus(config, *settings), !options.foreground);
    const Service service(config, *settings, node);
    daemon.ready();
    spdlog::info("vgpud {} owns the GPUs of {}; port {}", PACKAGE_VERSION, name, config.node_port);
    int number = SIGHUP;
    while (number == SIGHUP) // nothing is read anew while running
        sigwait(&signals, &number);
    spdlog::info("ends on signal {}; the leases stay written down", number);
    return 0;
}

} // namespace
} // namespace vgpu::node

int main(int argc, char** argv) {
    CLI::App app{"slurm-vgpu's GPU node daemon: owns the GPUs of its node, keeps the leases that jobs hold "
                 "on them, and "
                 "starts a worker for each client process."};
    vgpu::node::Options options;
    app.set_version_flag("--version", std::string("vgpud ") + PACKAGE_VERSION);
    app.add_option("-c,--config", options.config,
                   "Configuration file [$VGPU_CONF, else SYSCONFDIR/slurm/vgpu.conf]")
        ->type_name("FILE");
    app.add_option("-n,--node", options.node, "NodeName of this node [the host name up to its first dot]")
        ->type_name("NAME");
    app.add_flag("-f,--foreground", options.foreground, "Stay in the foreground and log to standard error");
    CLI11_PARSE(app, argc, argv);
    spdlog::set_default_logger(spdlog::stderr_logger_mt("vgpud"));
    spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l vgpud[%P]: %v");
    try {
        return vgpu::node::run(options);
    } catch (const std::exception& error) {
        spdlog::error("{}", error.what());
        return 1;
    }
}
