// SPDX-License-Identifier: BSD-3-Clause
// vgpuctl: what scripts and people say to vgpuctld. See vgpuctl(8).
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>

#include <CLI/CLI.hpp>

#include "config.h"
#include "gres_vgpu/control/client.h"
#include "gres_vgpu/control/json.h"
#include "gres_vgpu/pool/pool.h"
#include "gres_vgpu/pool/slurm_jobs.h"
#include "gres_vgpu/pool/status_table.h"
#include "topology/config.h"
#include "topology/parse.h"

namespace {

using namespace vgpu;
using control::Error;
using control::ErrorKind;
using control::Request;
using Clock = std::chrono::steady_clock;

enum Exit { good = 0, refused = 1, usage = 2, no_daemon = 3 };

/// What is wrong with the command line or the environment.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The options of all subcommands; each uses some.
struct Options {
    std::string config;
    bool json = false;
    std::vector<std::string> nodes;
    std::uint32_t job = 0;
    std::int64_t submit_time = 0;
    std::uint32_t restarts = 0;
    std::string node;
    std::uint32_t step = 0;
    unsigned shares = 0;
    unsigned devices = 0;
    std::string memory;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::string user;
    std::string claim;
    unsigned wait = 0; ///< seconds
};

int fail(const Error& error) {
    std::cerr << "vgpuctl: " << error.message << '\n';
    return error.kind == ErrorKind::unreachable ? no_daemon : refused;
}

std::uint32_t job_id(const Options& options) {
    if (options.job != 0)
        return options.job;
    const char* text = std::getenv("SLURM_JOB_ID");
    if (text == nullptr)
        throw UsageError("which job? Give --job=ID, or set SLURM_JOB_ID as PrologSlurmctld does");
    try {
        return static_cast<std::uint32_t>(parse_number(text, 1, 4294967295u));
    } catch (const ParseError& error) {
        throw UsageError(std::string("SLURM_JOB_ID: ") + error.what());
    }
}

/// Runs `call` again while that can help, until `wait` seconds are over.
template <class Call>
auto insist(unsigned wait, Call call) {
    const auto end = Clock::now() + std::chrono::seconds(wait);
    while (true) {
        auto result = call();
        if (result.ok() || Clock::now() >= end)
            return result;
        const auto kind = result.error().kind;
        if (kind != ErrorKind::no_room && kind != ErrorKind::not_ready && kind != ErrorKind::unreachable)
            return result;
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

/// What the user said with --vgpu-mem and --vgpu-devices, where spank_vgpu put it at submission. A user can
/// put anything there, so what is wrong stops the job and nothing else.
void from_environment(Request& request) {
    auto read = [](const char* name, auto parse) {
        const char* text = std::getenv(name);
        if (text == nullptr || *text == '\0')
            return;
        try {
            parse(std::string(text));
        } catch (const ParseError& error) {
            throw UsageError(std::string(name) + ": " + error.what());
        }
    };
    read("SPANK_VGPU_MEM", [&](const std::string& text) { request.memory_mib = parse_mib(text); });
    read("SPANK_VGPU_DEVICES", [&](const std::string& text) {
        request.devices = static_cast<unsigned>(parse_number(text, 1, 1024));
    });
}

Request from_options(const Options& options) {
    Request request;
    request.job = {job_id(options), options.submit_time, options.restarts};
    request.uid = options.uid;
    request.gid = options.gid;
    request.user = options.user.empty() ? std::to_string(options.uid) : options.user;
    request.node = options.node;
    request.step = options.step;
    request.shares = options.shares;
    request.devices = options.devices;
    if (!options.memory.empty()) {
        try {
            request.memory_mib = parse_mib(options.memory);
        } catch (const ParseError& error) {
            throw UsageError(std::string("--mem: ") + error.what());
        }
    }
    return request;
}

void print(const control::Lease& lease) {
    for (const auto& v : lease.vgpus)
        std::cout << lease.id << ": " << v.node << " gpu " << v.gpu << ", " << v.shares << " shares, "
                  << v.memory_mib << " MiB\n";
}

int reserve(const Config& config, const Options& options) {
    std::vector<Request> requests;
    if (options.shares != 0) {
        if (options.node.empty())
            throw UsageError("--shares says what to reserve without asking Slurm: give --node too");
        requests.push_back(from_options(options));
    } else {
        const auto id = job_id(options);
        auto job = insist(options.wait, [&] { return pool::slurm_job(config, id); });
        if (!job)
            return fail(job.error());
        if (job->shares == 0)
            return good; // most jobs of a cluster have no vgpu
        if (job->nodes.empty())
            return fail({ErrorKind::refused, "job " + std::to_string(id) +
                                                 " has no nodes yet: reserve is for a job that starts"});
        Request request;
        request.job = job->job;
        request.uid = job->uid;
        request.gid = job->gid;
        request.user = job->user;
        request.shares = job->shares;
        from_environment(request);
        for (const auto& node : job->nodes) {
            request.node = node;
            requests.push_back(request);
        }
    }
    const auto client = control::Client::to_controller(config);
    auto leases = insist(options.wait, [&] { return client.reserve(requests); });
    if (!leases)
        return fail(leases.error());
    for (const auto& lease : *leases)
        print(lease);
    return good;
}

int claim(const Config& config, const Options& options) {
    if (options.node.empty())
        throw UsageError("on which node does the step run? Give --node=NAME");
    const auto request = from_options(options);
    const auto client = control::Client::to_controller(config);
    auto made = insist(options.wait, [&] { return client.claim(request); });
    if (!made)
        return fail(made.error());
    std::cout << nlohmann::json(*made).dump(2) << '\n';
    return good;
}

int release(const Config& config, const Options& options) {
    const auto client = control::Client::to_controller(config);
    if (!options.claim.empty()) {
        auto released = insist(options.wait, [&] { return client.release_claim(options.claim); });
        return released ? good : fail(released.error());
    }
    const control::Job job{job_id(options), options.submit_time, options.restarts};
    auto released = insist(options.wait, [&] { return client.release(job, options.node); });
    return released ? good : fail(released.error());
}

int status(const Config& config, const Options& options) {
    for (const auto& node : options.nodes)
        if (config.node(node) == nullptr)
            throw UsageError("the node " + node + " is in no NodeName line of " + config.path);
    auto pool = control::Client::to_controller(config).status();
    if (!pool)
        return fail(pool.error());
    const auto shown = pool::only_nodes(*pool, options.nodes);
    if (options.json)
        std::cout << nlohmann::json(shown).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
                  << '\n';
    else
        std::cout << pool::status_table(shown);
    return good;
}

int ping(const Config& config) {
    auto pong = control::Client::to_controller(config).ping();
    if (!pong)
        return fail(pong.error());
    std::cout << "vgpuctld " << pong->version << " on " << config.controller_address << ':'
              << config.controller_port << " is up for " << pong->uptime_s << " s and "
              << (pong->ready ? "ready" : "waits for the vgpuds to report") << '\n';
    return good;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"vgpuctl asks vgpuctld for vGPUs, gives them back and shows who holds what."};
    app.set_version_flag("-V,--version", "vgpuctl " PACKAGE_VERSION, "Print the version and exit");
    app.require_subcommand(1);
    app.fallthrough();
    Options options;
    std::optional<unsigned> wait;
    app.add_option("-c,--config", options.config,
                   "vgpu.conf to read instead of $VGPU_CONF or the installed one");

    auto* status_command = app.add_subcommand("status", "Show nodes, GPUs, leases and sessions");
    status_command->add_flag("--json", options.json, "Print JSON");
    status_command->add_option("nodes", options.nodes, "GPU nodes to show; default: all");

    auto* reserve_command =
        app.add_subcommand("reserve", "Reserve what a starting job asks for (PrologSlurmctld)");
    auto* claim_command =
        app.add_subcommand("claim", "Make a step's claim and print it with its secret (for tests)");
    auto* release_command = app.add_subcommand("release", "Release what a job holds (EpilogSlurmctld)");
    for (auto* command : {reserve_command, claim_command, release_command}) {
        command->add_option("-j,--job", options.job, "Job id; default: $SLURM_JOB_ID");
        command->add_option("--submit-time", options.submit_time,
                            "The job's submit time, in seconds since 1970");
        command->add_option("--restarts", options.restarts, "The job's restart count");
        command->add_option("-n,--node", options.node, "Node of the job");
        command->add_option(
            "-w,--wait", wait,
            "Seconds to ask again while there is no room or no answer; default: 60 for reserve, 10 "
            "for release, 0 for claim");
    }
    for (auto* command : {reserve_command, claim_command}) {
        command->add_option("--shares", options.shares,
                            "Shares; for reserve: instead of what Slurm knows of the job");
        command->add_option("--devices", options.devices, "vGPUs to divide the shares over");
        command->add_option("--mem", options.memory, "Memory of each vGPU, as in 512M or 2G");
        command->add_option("--uid", options.uid, "The owner's uid");
        command->add_option("--gid", options.gid, "The owner's gid");
        command->add_option("--user", options.user, "The owner's name");
    }
    claim_command->add_option("--step", options.step, "Step id");
    release_command->add_option("--claim", options.claim, "Release this claim of a step, not a job's leases");
    auto* ping_command = app.add_subcommand("ping", "Ask vgpuctld whether it is there");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? good : usage;
    }
    options.wait = wait.value_or(*reserve_command ? 60 : *release_command ? 10 : 0);
    try {
        const auto config = load_config(options.config);
        if (*status_command)
            return status(config, options);
        if (*reserve_command)
            return reserve(config, options);
        if (*claim_command)
            return claim(config, options);
        if (*release_command)
            return release(config, options);
        if (*ping_command)
            return ping(config);
    } catch (const UsageError& error) {
        std::cerr << "vgpuctl: " << error.what() << '\n';
    } catch (const ConfigError& error) {
        std::cerr << "vgpuctl: " << error.what() << '\n';
    }
    return usage;
}
