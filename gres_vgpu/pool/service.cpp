// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/pool/service.h"

#include <algorithm>

#include "config.h"
#include "gres_vgpu/control/envelope.h"
#include "gres_vgpu/control/json.h"

namespace vgpu::pool {

using control::Client;
using control::Error;
using control::ErrorKind;
using control::HttpError;
using control::Job;
using control::NodeStatus;
using control::Nothing;
using control::Result;
using control::Vgpu;
using nlohmann::json;

namespace {

constexpr unsigned report_interval_ms = 2000;

std::string describe(const control::Lease& lease) {
    std::string out = "lease " + lease.id + " of " + lease.request.user + " (uid " +
                      std::to_string(lease.request.uid) + "):";
    for (const auto& v : lease.vgpus)
        out += " " + v.node + " gpu " + std::to_string(v.gpu) + " " + std::to_string(v.shares) + " shares " +
               std::to_string(v.memory_mib) + " MiB;";
    out.pop_back();
    return out;
}

} // namespace

Service::Service(Config config, LiveJobs live_jobs, Log log)
    : config_(std::move(config)), live_jobs_(std::move(live_jobs)), log_(std::move(log)), pool_(config_) {}

Service::~Service() {
    stop();
}

void Service::start() {
    repair_thread_ = std::thread([this] { repair_loop(); });
    reconcile_thread_ = std::thread([this] { reconcile_loop(); });
}

void Service::stop() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (repair_thread_.joinable())
        repair_thread_.join();
    if (reconcile_thread_.joinable())
        reconcile_thread_.join();
}

bool Service::ready() const {
    std::lock_guard lock(mutex_);
    return pool_.unknown_nodes().empty() || Clock::now() - started_ >= config_.start_grace;
}

void Service::wait_ready() const {
    if (ready())
        return;
    std::string names;
    {
        std::lock_guard lock(mutex_);
        for (const auto& name : pool_.unknown_nodes())
            names += (names.empty() ? "" : ", ") + name;
    }
    throw HttpError(503, "vgpuctld has just started and waits for the vgpud of " + names +
                             " to report (for at most " + std::to_string(config_.start_grace.count() / 1000) +
                             " s): ask again");
}

void Service::check(const Request& request) const {
    if (request.job.id == 0)
        throw HttpError(400, "a request without a job id: say which job it is for");
    if (request.node.empty() || request.node.find_first_of("/ \n") != std::string::npos)
        throw HttpError(400, "a request for " + job_name(request.job) + " without a proper node name");
    if (request.shares == 0)
        return;
    try {
        divide_shares(request.shares, request.devices, config_.shares_per_gpu);
    } catch (const ShareError& error) {
        throw HttpError(400, error.what());
    }
}

Result<Nothing> Service::tell(const std::string& name,
                              const std::function<Result<Nothing>(const Client&)>& what) {
    Client::Options options;
    {
        std::lock_guard lock(mutex_);
        const auto* node = pool_.node(name);
        if (node == nullptr)
            return Error{ErrorKind::refused,
                         "the node " + name + " is in no NodeName line of " + config_.path};
        options.name = "vgpud of " + name;
        options.server = name;
        options.address = node->status.address;
        options.port = node->status.port;
        options.munge_socket = config_.munge_socket;
        options.trusted_uids = control::admin_uids(config_.slurm_user);
        // It proved who it is when it registered; before that, vgpud is root.
        options.restrict_to = node->seen ? node->uid : 0;
        options.timeout = std::chrono::milliseconds(6000);
    }
    auto result = what(Client(std::move(options)));
    if (!result && result.error().kind == ErrorKind::unreachable) {
        std::lock_guard lock(mutex_);
        pool_.call_failed(name, Clock::now());
    }
    return result;
}

Result<Nothing> Service::push(const Lease& lease, const std::vector<std::string>& nodes) {
    for (const auto& node : nodes)
        if (auto result = tell(node, [&](const Client& client) { return client.put_lease(lease); }); !result)
            return result.error();
    return Nothing{};
}

control::Lease Service::new_lease(const Request& request, const std::string& as_if_gone) {
    const auto shape = divide_shares(request.shares, request.devices, config_.shares_per_gpu);
    std::set<std::string> failed;
    std::string cause;
    while (true) {
        Lease lease;
        {
            std::lock_guard lock(mutex_);
            const auto gpus = pool_.free_gpus(Clock::now(), failed, as_if_gone);
            try {
                lease = pool_.make_lease(request, gpus,
                                         place(gpus, shape, request.memory_mib, config_.shares_per_gpu));
            } catch (const NoRoom& error) {
                if (pool_.unknown_nodes().empty())
                    if (auto never = never_fits(pool_.whole_gpus(), shape, request.memory_mib);
                        !never.empty())
                        throw HttpError(400, never);
                throw HttpError(409, error.what() + (cause.empty() ? "" : " (" + cause + ")"));
            }
            pool_.put(lease, Clock::now()); // holds the room while the vgpuds write it down
        }
        std::vector<std::string> told;
        for (const auto& node : nodes_of(lease.vgpus)) {
            told.push_back(node);
            auto result = push(lease, {node});
            if (result)
                continue;
            cause = result.error().message;
            failed.insert(node);
            log_("warn", "cannot place " + job_name(request.job) + " on " + node + ": " + cause +
                             "; trying elsewhere");
            break;
        }
        if (failed.contains(told.back())) {
            drop(lease, "it could not be written down everywhere");
            continue;
        }
        log_("info", "made " + describe(lease));
        return lease;
    }
}

void Service::drop(const Lease& lease, const std::string& why) {
    {
        std::lock_guard lock(mutex_);
        pool_.erase_lease(lease.id);
    }
    for (const auto& node : nodes_of(lease.vgpus)) {
        auto result = tell(node, [&](const Client& client) { return client.delete_lease(lease.id); });
        if (result) {
            std::lock_guard lock(mutex_);
            pool_.gone(node, lease.id);
        } else {
            // It is said again when that vgpud reports the lease.
            log_("warn", "cannot tell " + node + " that lease " + lease.id +
                             " is released: " + result.error().message);
        }
    }
    log_("info", "released lease " + lease.id + ": " + why);
}

void Service::drop_claim(const Claim& claim) {
    {
        std::lock_guard lock(mutex_);
        pool_.erase_claim(claim.id);
    }
    for (const auto& node : nodes_of(claim.vgpus))
        if (auto result = tell(node, [&](const Client& client) { return client.delete_claim(claim.id); });
            !result)
            log_("warn", "cannot tell " + node + " that claim " + claim.id +
                             " is released: " + result.error().message);
}

void Service::drop_stale(const Request& request) {
    std::vector<Lease> leases;
    {
        std::lock_guard lock(mutex_);
        leases = pool_.leases_of(request.job.id);
    }
    for (const auto& lease : leases)
        if (!same_job(lease.request.job, request.job) || lease.request.uid != request.uid)
            drop(lease, "it belonged to an earlier job with the id " + std::to_string(request.job.id));
}

std::vector<control::Lease> Service::reserve(const std::vector<Request>& requests) {
    if (requests.empty())
        throw HttpError(400, "reserve without a request: say for which nodes");
    for (const auto& request : requests) {
        check(request);
        if (request.shares == 0)
            throw HttpError(400,
                            job_name(request.job) + " asks 0 shares on " + request.node + ": ask at least 1");
        if (request.job.id != requests[0].job.id)
            throw HttpError(400, "reserve for two jobs at once: ask for each on its own");
    }
    wait_ready();
    JobLock job(*this, requests[0].job.id);
    drop_stale(requests[0]);
    std::vector<Lease> leases, made;
    for (const auto& request : requests) {
        std::vector<Lease> held;
        {
            std::lock_guard lock(mutex_);
            held = pool_.leases_of(request.job.id, request.node);
        }
        if (!held.empty()) {
            leases.push_back(held[0]);
            continue;
        }
        try {
            made.push_back(new_lease(request));
        } catch (const HttpError&) {
            for (const auto& lease : made)
                drop(lease, "there was no room for all nodes of the job");
            throw;
        }
        leases.push_back(made.back());
    }
    return leases;
}

control::Claim Service::claim(const Request& request) {
    check(request);
    wait_ready();
    JobLock job(*this, request.job.id);
    drop_stale(request);
    std::vector<Lease> held;
    std::vector<Claim> old;
    {
        std::lock_guard lock(mutex_);
        held = pool_.leases_of(request.job.id, request.node);
        for (const auto& lease : held)
            for (const auto& claim : pool_.claims_of(lease.id))
                if (claim.request.step == request.step)
                    old.push_back(claim);
    }
    for (auto& claim : old) {
        const auto& was = claim.request;
        if (!claim.secret.empty() && was.shares == request.shares && was.devices == request.devices &&
            was.memory_mib == request.memory_mib)
            return claim;  // another task of the step, or asked again
        drop_claim(claim); // made before a restart, its secret is lost; or for something else
    }
    for (const auto& lease : held)
        if (carve(lease, request, config_.shares_per_gpu))
            return make_claim(lease, request);
    if (!held.empty())
        return make_claim(enlarge(held[0], request), request);
    if (request.shares == 0)
        throw HttpError(400, job_name(request.job) + " holds no lease on " + request.node +
                                 " and the step asks no shares: ask some, as in --gres=vgpu:25");
    auto lease = new_lease(request);
    try {
        return make_claim(lease, request);
    } catch (const HttpError&) {
        drop(lease, "the claim that it was made for failed");
        throw;
    }
}

std::optional<control::Lease> Service::grown(const Lease& lease, const Request& request) const {
    const unsigned shares = request.shares;
    const auto devices = static_cast<unsigned>(lease.vgpus.size());
    unsigned total = 0;
    for (const auto& v : lease.vgpus)
        total += v.shares;
    Shape shape{devices, 0};
    if (shares != 0 && (shares != total || (request.devices != 0 && request.devices != devices)))
        shape = divide_shares(shares, request.devices, config_.shares_per_gpu);
    else if (request.devices != 0 && request.devices != devices)
        return std::nullopt;
    if (shape.devices > devices)
        return std::nullopt;
    Lease out = lease;
    std::lock_guard lock(mutex_);
    const auto gpus = pool_.free_gpus(Clock::now(), {}, lease.id);
    for (unsigned i = 0; i < shape.devices; ++i) {
        auto& v = out.vgpus[i];
        v.shares = std::max(v.shares, shape.shares);
        v.memory_mib = std::max(v.memory_mib, request.memory_mib);
        auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                [&](const FreeGpu& g) { return g.node == v.node && g.index == v.gpu; });
        if (gpu == gpus.end() || gpu->shares < v.shares || gpu->memory_mib < v.memory_mib)
            return std::nullopt;
    }
    return out;
}

control::Lease Service::enlarge(const Lease& lease, const Request& request) {
    if (auto larger = grown(lease, request)) {
        {
            std::lock_guard lock(mutex_);
            pool_.put(*larger, Clock::now());
        }
        auto result = push(*larger, nodes_of(larger->vgpus));
        if (result) {
            log_("info", "enlarged " + describe(*larger));
            return *larger;
        }
        {
            std::lock_guard lock(mutex_);
            pool_.put(lease, Clock::now());
        }
        if (auto undone = push(lease, nodes_of(lease.vgpus)); !undone)
            log_("warn", "cannot take back the change of lease " + lease.id + ": " + undone.error().message);
        throw HttpError(502, result.error().message);
    }
    {
        std::lock_guard lock(mutex_);
        if (!pool_.claims_of(lease.id).empty())
            throw HttpError(
                409,
                "no room: step asks " + std::to_string(request.shares) + " shares" +
                    (request.devices != 0 ? " on " + std::to_string(request.devices) + " devices" : "") +
                    (request.memory_mib != 0 ? " with " + std::to_string(request.memory_mib) + " MiB" : "") +
                    ", which " + job_name(request.job) + " does not hold on " + request.node +
                    ", and another step is at work there: give the job the same options (sbatch or "
                    "salloc --vgpu-mem, --vgpu-devices)");
    }
    // Nothing uses it: place the job anew, on what it holds and what is free. It keeps at least its shares.
    Request wanted = lease.request;
    if (request.devices != 0 || request.shares > wanted.shares) {
        wanted.devices = request.devices;
        if (request.shares != 0)
            wanted.shares = request.shares;
    }
    if (request.memory_mib != 0)
        wanted.memory_mib = request.memory_mib;
    check(wanted);
    {
        std::lock_guard lock(mutex_);
        const auto gpus = pool_.free_gpus(Clock::now(), {}, lease.id);
        const auto shape = divide_shares(wanted.shares, wanted.devices, config_.shares_per_gpu);
        if (auto never = never_fits(pool_.whole_gpus(), shape, wanted.memory_mib);
            !never.empty() && pool_.unknown_nodes().empty())
            throw HttpError(400, never);
        try {
            place(gpus, shape, wanted.memory_mib, config_.shares_per_gpu);
        } catch (const NoRoom& error) {
            throw HttpError(409, error.what());
        }
    }
    auto larger = new_lease(wanted, lease.id);
    drop(lease, "a step asked for another shape; " + larger.id + " takes its place");
    return larger;
}

control::Claim Service::make_claim(const Lease& lease, const Request& request) {
    auto vgpus = carve(lease, request, config_.shares_per_gpu);
    if (!vgpus)
        throw HttpError(500, "lease " + lease.id + " does not hold what was made room for");
    Claim claim;
    claim.lease = lease.id;
    claim.secret = control::random_hex(32);
    claim.request = request;
    claim.vgpus = std::move(*vgpus);
    {
        std::lock_guard lock(mutex_);
        claim.id = pool_.new_claim_id(request);
        pool_.put(claim, Clock::now());
    }
    for (const auto& node : nodes_of(claim.vgpus)) {
        auto result = tell(node, [&](const Client& client) { return client.put_claim(claim); });
        if (!result && result.error().kind == ErrorKind::refused) {
            // A vgpud that lost the lease (or was replaced) takes it from us again.
            if (push(lease, {node}))
                result = tell(node, [&](const Client& client) { return client.put_claim(claim); });
        }
        if (!result) {
            drop_claim(claim);
            throw HttpError(502, "the lease of " + job_name(request.job) +
                                     " cannot be used: " + result.error().message);
        }
    }
    log_("info", "made claim " + claim.id + " on lease " + lease.id);
    return claim;
}

unsigned Service::release(const Job& key, const std::string& node) {
    if (key.id == 0)
        throw HttpError(400, "release without a job id: say which job it is for");
    JobLock job(*this, key.id);
    std::vector<Lease> leases;
    {
        std::lock_guard lock(mutex_);
        leases = pool_.leases_of(key.id, node);
    }
    unsigned count = 0;
    for (const auto& lease : leases)
        if (same_job(lease.request.job, key)) {
            drop(lease, job_name(key) + " ended");
            ++count;
        }
    return count;
}

void Service::release_claim(const std::string& id) {
    std::optional<Claim> found;
    {
        std::lock_guard lock(mutex_);
        if (auto entry = pool_.claims().find(id); entry != pool_.claims().end())
            found = entry->second.claim;
    }
    if (!found)
        return;
    JobLock job(*this, found->request.job.id);
    drop_claim(*found);
    log_("info", "released claim " + id);
}

void Service::register_node(const NodeStatus& status, uid_t uid) {
    std::lock_guard lock(mutex_);
    const auto* node = pool_.node(status.node);
    if (node == nullptr)
        throw HttpError(400, "the node " + status.node + " is in no NodeName line of " + config_.path +
                                 " at vgpuctld: add it there and restart vgpuctld");
    const bool was_up = pool_.up(*node, Clock::now());
    auto repairs = pool_.report(status, uid, Clock::now());
    if (!was_up)
        log_("info", "node " + status.node + " is up: " + std::to_string(status.gpus.size()) + " GPUs, " +
                         std::to_string(status.leases.size()) + " leases");
    if (!repairs.empty()) {
        repairs_.insert(repairs_.end(), repairs.begin(), repairs.end());
        changed_.notify_all();
    }
}

control::PoolStatus Service::status() const {
    std::lock_guard lock(mutex_);
    return pool_.status(Clock::now());
}

std::string Service::metrics_text() const {
    return metrics(status(), std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_));
}

void Service::add_routes(control::Server& server) {
    using control::Peer;
    using Access = control::Server::Access;
    server.protect("POST", "/v1/reserve", Access::admins, [this](const Peer&, const json& body) {
        return json{{"leases", reserve(body.at("requests").get<std::vector<Request>>())}};
    });
    server.protect("POST", "/v1/claim", Access::admins,
                   [this](const Peer&, const json& body) { return json(claim(body.get<Request>())); });
    server.protect("POST", "/v1/release", Access::admins, [this](const Peer&, const json& body) {
        return json{{"released", release(body.at("job").get<Job>(), body.value("node", ""))}};
    });
    server.protect("POST", "/v1/release_claim", Access::admins, [this](const Peer&, const json& body) {
        release_claim(body.at("id").get<std::string>());
        return json::object();
    });
    server.protect("POST", "/v1/node", Access::admins, [this](const Peer& peer, const json& body) {
        register_node(body.get<NodeStatus>(), peer.uid);
        return json{{"interval_ms", report_interval_ms}};
    });
    server.protect("GET", "/v1/status", Access::everyone,
                   [this](const Peer&, const json&) { return json(status()); });
    server.protect("GET", "/v1/ping", Access::everyone, [this](const Peer&, const json&) {
        auto uptime = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - started_);
        return json{{"version", PACKAGE_VERSION}, {"ready", ready()}, {"uptime_s", uptime.count()}};
    });
    server.text("/metrics", [this] { return metrics_text(); });
}

} // namespace vgpu::pool
