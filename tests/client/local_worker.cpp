// SPDX-License-Identifier: BSD-3-Clause
// Runs a program as a job step with vGPUs would, without Slurm, vgpuctld and munge: an own vgpud's Node with
// its two routes for clients, a lease and a claim on softgpu, and VGPU_CLAIM in the program's environment.
//
//     tests/client/local_worker [--vgpus 2] [--memory-mib 256] [--transport tcp] -- ./program arguments...
//
// Its exit status is the program's. Run it in the top of the build, or name the files by options. The program
// finds the client runtime by its own means (LD_LIBRARY_PATH, LD_AUDIT), which are left as they are.
#include "gres_vgpu/control/json.h"
#include "gres_vgpu/control/server.h"
#include "ucx_forwarder/node/node.h"
#include "ucx_forwarder/node/process.h"
#include "ucx_forwarder/transport/session_key.h"

#include <CLI/CLI.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace {

namespace fs = std::filesystem;
using namespace vgpu;
using nlohmann::json;

struct Options {
    unsigned vgpus = 1;
    std::uint64_t memory_mib = 256;
    std::string transport = "auto";
    std::string library = "contrib/softgpu/.libs/libcuda.so.1";
    std::string worker = "ucx_forwarder/worker/vgpu-worker";
    std::string log_level = "warn";
    std::vector<std::string> environment;
    std::vector<std::string> command;
};

/// A directory that goes with us.
class Directory {
public:
    Directory() {
        char name[] = "/tmp/vgpu-local-XXXXXX";
        if (::mkdtemp(name) == nullptr) {
            throw std::runtime_error("no directory can be made in /tmp");
        }
        path_ = name;
    }
    ~Directory() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

Config config_of(const Options& options, const std::string& directory) {
    Config config;
    config.path = "local_worker";
    config.state_dir = directory;
    config.run_dir = directory;
    config.worker_program = fs::absolute(options.worker);
    config.transport = options.transport;
    config.log_level = options.log_level;
    NodeConfig node;
    node.name = "local";
    node.address = "127.0.0.1";
    node.cuda_library = fs::absolute(options.library);
    node.cuda_env["SOFTGPU_DIR"] = directory + "/softgpu";
    for (const std::string& setting : options.environment) {
        const auto equals = setting.find('=');
        node.cuda_env[setting.substr(0, equals)] =
            equals == std::string::npos ? "" : setting.substr(equals + 1);
    }
    config.nodes.push_back(node);
    return config;
}

std::vector<control::Gpu> find_gpus(const Config& config) {
    node::Spawn spawn;
    spawn.program = config.worker_program;
    spawn.arguments = {"--inventory", config.nodes.front().cuda_library};
    spawn.environment = node::worker_environment(config.nodes.front().cuda_env);
    auto gpus = json::parse(node::run_for_output(spawn, 60)).get<std::vector<control::Gpu>>();
    if (gpus.empty()) {
        throw std::runtime_error(config.nodes.front().cuda_library + " shows no GPU");
    }
    return gpus;
}

/// What vgpuctld would have made of a job's request.
control::Claim make_claim(const Options& options, const std::vector<control::Gpu>& gpus, std::uint16_t port) {
    control::Claim claim;
    claim.id = "1.0.local.1";
    claim.lease = "1.local.1";
    claim.secret = transport::random_hex(32);
    claim.request.uid = ::geteuid();
    claim.request.gid = ::getegid();
    claim.request.user = "local";
    claim.request.node = "local";
    for (unsigned i = 0; i < options.vgpus; ++i) {
        const control::Gpu& gpu = gpus[i % gpus.size()];
        control::Vgpu vgpu;
        vgpu.node = "local";
        vgpu.address = "127.0.0.1";
        vgpu.port = port;
        vgpu.gpu = gpu.index;
        vgpu.uuid = gpu.uuid;
        vgpu.gpu_name = gpu.name;
        vgpu.shares = 100;
        vgpu.memory_mib = options.memory_mib;
        claim.vgpus.push_back(vgpu);
    }
    return claim;
}

void add_routes(control::Server& server, node::Node& node) {
    using control::Peer;
    server.plain("POST", "/v1/session/challenge", [&node](const Peer&, const json& body) {
        return json{{"nonce", node.challenge(body.at("claim"))}};
    });
    server.plain("POST", "/v1/session", [&node](const Peer& peer, const json& body) {
        node::Node::OpenRequest request;
        request.nonces = {body.at("claim"), body.at("nonce"), body.at("client_nonce")};
        request.proof = body.at("proof");
        request.client = body.at("client");
        request.client_address = peer.address;
        const auto opened = node.open(request);
        return json{{"session", opened.session}, {"address", opened.address}, {"port", opened.port}};
    });
}

int run_program(const Options& options, const std::string& claim_file) {
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::setenv("VGPU_CLAIM", claim_file.c_str(), 1);
        std::vector<char*> arguments;
        for (const std::string& argument : options.command) {
            arguments.push_back(const_cast<char*>(argument.c_str()));
        }
        arguments.push_back(nullptr);
        ::execvp(arguments.front(), arguments.data());
        std::cerr << "local_worker: " << options.command.front() << " cannot be run: " << std::strerror(errno)
                  << '\n';
        ::_exit(127);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(const Options& options) {
    const Directory directory;
    const Config config = config_of(options, directory.path());
    const auto gpus = find_gpus(config);
    node::Node node(config, config.nodes.front(), gpus);
    control::Server::Options server_options;
    server_options.name = "local";
    server_options.address = "127.0.0.1";
    server_options.log = [](const std::string& sentence) { spdlog::warn("{}", sentence); };
    control::Server server(server_options);
    add_routes(server, node);
    server.start();
    const control::Claim claim = make_claim(options, gpus, server.port());
    control::Lease lease;
    lease.id = claim.lease;
    lease.request = claim.request;
    lease.vgpus = claim.vgpus;
    node.put_lease(lease);
    node.put_claim(claim);
    const std::string file = directory.path() + "/claim.json";
    std::ofstream(file) << json{
        {"claim", claim}, {"transport", options.transport}, {"log_level", options.log_level}};
    fs::permissions(file, fs::perms::owner_read);
    const int status = run_program(options, file);
    node.remove_lease(lease.id);
    server.stop();
    return status;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"Runs a program with vGPUs on softgpu, without Slurm."};
    Options options;
    app.add_option("--vgpus", options.vgpus, "Number of vGPUs")->capture_default_str();
    app.add_option("--memory-mib", options.memory_mib, "Memory of each")->capture_default_str();
    app.add_option("--transport", options.transport, "auto, tcp, shm or rdma")->capture_default_str();
    app.add_option("--library", options.library, "The driver library")->capture_default_str();
    app.add_option("--worker", options.worker, "The worker program")->capture_default_str();
    app.add_option("--log-level", options.log_level, "Of vgpud and the worker")->capture_default_str();
    app.add_option("--env", options.environment, "NAME=VALUE for the driver, as CudaEnv")
        ->expected(1)
        ->take_all();
    app.add_option("command", options.command, "The program and its arguments")->required();
    app.positionals_at_end();
    CLI11_PARSE(app, argc, argv);
    std::signal(SIGPIPE, SIG_IGN);
    spdlog::set_default_logger(spdlog::stderr_logger_mt("local_worker"));
    spdlog::set_level(spdlog::level::from_str(options.log_level));
    try {
        return run(options);
    } catch (const std::exception& error) {
        std::cerr << "local_worker: " << error.what() << '\n';
        return 125;
    }
}
