// SPDX-License-Identifier: BSD-3-Clause
// vgpuctld: the pool's daemon, beside slurmctld. See vgpuctld(8).
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "config.h"
#include "gres_vgpu/pool/service.h"
#include "gres_vgpu/pool/slurm_jobs.h"
#include "topology/config.h"

namespace {

using namespace vgpu;

std::shared_ptr<spdlog::logger> make_log(bool foreground, const std::string& level) {
    std::shared_ptr<spdlog::logger> log;
    if (foreground) {
        log = std::make_shared<spdlog::logger>("vgpuctld", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        log->set_pattern("%Y-%m-%dT%H:%M:%S.%e %n: %l: %v");
    } else {
        log = std::make_shared<spdlog::logger>("vgpuctld", std::make_shared<spdlog::sinks::syslog_sink_mt>(
                                                               "vgpuctld", LOG_PID, LOG_DAEMON, true));
        log->set_pattern("%v");
    }
    log->set_level(spdlog::level::from_str(level));
    log->flush_on(spdlog::level::info);
    return log;
}

/// RunDir/vgpuctld.pid, for as long as the object lives.
class PidFile {
public:
    explicit PidFile(const std::string& directory) : path_(directory + "/vgpuctld.pid") {
        std::error_code error;
        std::filesystem::create_directories(directory, error);
        std::ofstream file(path_, std::ios::trunc);
        file << getpid() << '\n';
        if (!file.flush())
            throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno) +
                                     "; RunDir in vgpu.conf must be writable for vgpuctld");
    }
    ~PidFile() { unlink(path_.c_str()); }
    PidFile(const PidFile&) = delete;
    PidFile& operator=(const PidFile&) = delete;

private:
    std::string path_;
};

/// In the background, and the process that was started ends when that is ready (0) or has failed (1).
class Background {
public:
    explicit Background(bool foreground) {
        if (foreground)
            return;
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
        const pid_t pid = fork();
        if (pid < 0)
            throw std::runtime_error(std::string("cannot go to the background: ") + std::strerror(errno));
        if (pid > 0) {
            close(ends[1]);
            char byte = 0;
            ssize_t got = 0;
            do
                got = read(ends[0], &byte, 1);
            while (got < 0 && errno == EINTR);
            _exit(got == 1 ? 0 : 1);
        }
        close(ends[0]);
        ready_ = ends[1];
        setsid();
        if (chdir("/") != 0) // keep no file system busy
            throw std::runtime_error(std::string("chdir /: ") + std::strerror(errno));
    }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    void ready() {
        if (ready_ < 0)
            return;
        const int null = open("/dev/null", O_RDWR);
        for (int fd : {0, 1, 2})
            dup2(null, fd);
        if (null > 2)
            close(null);
        const char byte = 1;
        if (write(ready_, &byte, 1) == 1)
            close(ready_);
        ready_ = -1;
    }

private:
    int ready_ = -1;
};

int serve(const Config& config, bool foreground, Background& background) {
    // Before any thread: all of them inherit the mask, and sigwait below is the one place that takes these.
    sigset_t signals;
    sigemptyset(&signals);
    for (int signal : {SIGTERM, SIGINT, SIGHUP})
        sigaddset(&signals, signal);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    signal(SIGPIPE, SIG_IGN);

    auto log = make_log(foreground, config.log_level);
    try {
        const auto admins = control::admin_uids(config.slurm_user);
        if (std::find(admins.begin(), admins.end(), geteuid()) == admins.end())
            throw std::runtime_error("vgpuctld must run as root or as SlurmUser (" + config.slurm_user +
                                     "): nobody trusts the answers of uid " + std::to_string(geteuid()));
        std::atomic<bool> stop{false};
        pool::Service service(
            config, [&] { return pool::live_jobs(config, &stop); },
            [&](const char* level, const std::string& sentence) {
                log->log(spdlog::level::from_str(level), sentence);
            });
        control::Server::Options options;
        options.name = "vgpuctld";
        options.port = config.controller_port;
        options.munge_socket = config.munge_socket;
        options.admins = admins;
        options.threads = 32; // they wait for vgpuds, mostly
        options.log = [&](const std::string& sentence) { log->warn(sentence); };
        control::Server server(std::move(options));
        service.add_routes(server);
        server.start();
        // The port is ours, so no other vgpuctld uses the file.
        PidFile pid_file(config.run_dir);
        service.start();
        background.ready();
        log->info("vgpuctld {} listens on port {}, {} GPU nodes in {}", PACKAGE_VERSION, server.port(),
                  config.nodes.size(), config.path);
        int signal = 0;
        do {
            sigwait(&signals, &signal);
            if (signal == SIGHUP)
                log->info("SIGHUP: vgpu.conf is read at the start only; restart vgpuctld to change it");
        } while (signal == SIGHUP);
        log->info("{}: stopping; leases stay with the vgpuds", strsignal(signal));
        stop = true;
        server.stop();
        service.stop();
        return 0;
    } catch (const std::exception& error) {
        log->error(error.what());
        if (!foreground)
            std::cerr << "vgpuctld: " << error.what() << '\n';
        return 1;
    }
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{
        "vgpuctld keeps the pool of vGPUs of a Slurm cluster: it places and releases what jobs hold."};
    app.set_version_flag("-V,--version", "vgpuctld " PACKAGE_VERSION, "Print the version and exit");
    std::string path;
    bool foreground = false;
    app.add_option("-c,--config", path, "vgpu.conf to read instead of $VGPU_CONF or the installed one");
    app.add_flag("-f,--foreground", foreground, "Stay in the foreground and log to standard error");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    Config config;
    try {
        config = load_config(path);
    } catch (const ConfigError& error) {
        std::cerr << "vgpuctld: " << error.what() << '\n';
        return 2;
    }
    try {
        Background background(foreground);
        return serve(config.on(config.controller_host), foreground, background);
    } catch (const std::exception& error) {
        std::cerr << "vgpuctld: " << error.what() << '\n';
        return 1;
    }
}
