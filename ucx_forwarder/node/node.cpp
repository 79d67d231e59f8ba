// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/node/node.h"

#include "config.h"
#include "gres_vgpu/control/server.h"
#include "ucx_forwarder/transport/address.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vgpu::node {
namespace {

using namespace std::chrono_literals;
using control::HttpError;

constexpr auto kill_deadline = 5s;
constexpr auto worker_deadline = 20s;
/// Each holds one of the server's threads while its worker starts.
constexpr unsigned most_opening = 24;

long long now_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// For logs and status: what a client says of itself is anyone's text.
std::string printable(std::string text) {
    text.resize(std::min<std::size_t>(text.size(), 128));
    for (char& c : text)
        if (c < ' ' || c > '~')
            c = '?';
    return text;
}

} // namespace

Node::Node(const Config& config, const NodeConfig& settings, std::vector<control::Gpu> gpus, bool to_syslog)
    : config_(config), settings_(settings), gpus_(std::move(gpus)), to_syslog_(to_syslog),
      store_(config.state_dir + "/vgpud-" + settings.name + ".db"), sessions_([this] { changed(); }) {
    for (const auto& lease : store_.leases())
        leases_.emplace(lease.id, hold(lease));
    for (auto& claim : store_.claims())
        claims_.emplace(claim.id, claim);
    if (!leases_.empty())
        spdlog::info("{} leases and {} claims of an earlier vgpud go on", leases_.size(), claims_.size());
}

Node::HeldLease Node::hold(const control::Lease& lease) const {
    HeldLease held{lease, {}, nullptr};
    std::vector<std::uint64_t> limits;
    for (const auto& vgpu : lease.vgpus)
        if (vgpu.node == settings_.name) {
            held.vgpus.push_back(vgpu);
            limits.push_back(vgpu.memory_mib << 20);
        }
    if (limits.empty())
        throw HttpError(400, "lease " + lease.id + " has no vGPU on " + settings_.name);
    held.memory = worker::LeaseMemory::create(limits);
    return held;
}

void Node::put_lease(const control::Lease& lease) {
    if (lease.id.empty())
        throw HttpError(400, "a lease needs an id");
    for (const auto& vgpu : lease.vgpus) {
        if (vgpu.node != settings_.name)
            continue;
        const auto gpu = std::ranges::find(gpus_, vgpu.gpu, &control::Gpu::index);
        if (gpu == gpus_.end())
            throw HttpError(400, "lease " + lease.id + ": " + settings_.name + " has no GPU " +
                                     std::to_string(vgpu.gpu));
        if (!vgpu.uuid.empty() && vgpu.uuid != gpu->uuid)
            throw HttpError(400, "lease " + lease.id + ": GPU " + std::to_string(vgpu.gpu) + " of " +
                                     settings_.name + " is " + gpu->uuid + ", not " + vgpu.uuid);
    }
    HeldLease held = hold(lease);
    bool end_sessions = false;
    {
        std::lock_guard lock(mutex_);
        store_.put(lease);
        const auto old = leases_.find(lease.id);
        if (old != leases_.end()) {
            // The same GPUs with other limits: the sessions go on under them.
            const bool same_gpus = std::ranges::equal(old->second.vgpus, held.vgpus, {}, &control::Vgpu::gpu,
                                                      &control::Vgpu::gpu);
            if (same_gpus) {
                for (std::size_t i = 0; i < held.vgpus.size(); ++i)
                    old->second.memory->set_limit(static_cast<int>(i), held.vgpus[i].memory_mib << 20);
                held.memory = old->second.memory;
            }
            end_sessions = !same_gpus;
        }
        leases_.insert_or_assign(lease.id, std::move(held));
    }
    if (end_sessions)
        sessions_.end_lease(lease.id, kill_deadline);
    spdlog::info("lease {}: job {} of {}, {} vGPUs here", lease.id, lease.request.job.id, lease.request.user,
                 std::ranges::count(lease.vgpus, settings_.name, &control::Vgpu::node));
    changed();
}

void Node::remove_lease(const std::string& id) {
    {
        std::lock_guard lock(mutex_);
        store_.remove_lease(id);
        if (leases_.erase(id) > 0)
            spdlog::info("lease {} is released", id);
        std::erase_if(claims_, [&](const auto& claim) { return claim.second.lease == id; });
    }
    sessions_.end_lease(id, kill_deadline);
    changed();
}

void Node::put_claim(const control::Claim& claim) {
    if (claim.id.empty() || transport::from_hex(claim.secret).size() < 16)
        throw HttpError(400, "a claim needs an id, and a secret of at least 16 bytes in hex");
    {
        std::lock_guard lock(mutex_);
        if (!leases_.contains(claim.lease))
            throw HttpError(404, "claim " + claim.id + " is of lease " + claim.lease + ", which is not on " +
                                     settings_.name);
        store_.put(claim);
        claims_.insert_or_assign(claim.id, claim);
    }
    spdlog::info("claim {} of lease {} for {}", claim.id, claim.lease, claim.request.user);
    changed();
}

void Node::remove_claim(const std::string& id) {
    {
        std::lock_guard lock(mutex_);
        store_.remove_claim(id);
        if (claims_.erase(id) > 0)
            spdlog::info("claim {} is released", id);
    }
    sessions_.end_claim(id, kill_deadline);
    changed();
}

control::NodeStatus Node::status() const {
    control::NodeStatus status;
    status.node = settings_.name;
    status.address = settings_.address;
    status.port = config_.node_port;
    status.gpus = gpus_;
    status.version = PACKAGE_VERSION;
    {
        std::lock_guard lock(mutex_);
        for (const auto& [id, held] : leases_)
            status.leases.push_back(held.lease);
        for (auto [id, claim] : claims_) {
            claim.secret.clear();
            status.claims.push_back(std::move(claim));
        }
    }
    status.sessions = sessions_.list();
    return status;
}

std::string Node::challenge(const std::string& claim) const {
    std::lock_guard lock(mutex_);
    if (!claims_.contains(claim))
        throw HttpError(404, "there is no claim " + printable(claim) + " on " + settings_.name +
                                 ": the job step has ended, or its lease was released");
    return challenges_.make(claim, now_ms());
}

SessionPlan Node::plan(const control::Claim& claim, const OpenRequest& request) const {
    const auto lease = leases_.find(claim.lease);
    if (lease == leases_.end())
        throw HttpError(404, "the lease of claim " + claim.id + " was released");
    const HeldLease& held = lease->second;
    const bool root = geteuid() == 0;
    if (!root && claim.request.uid != geteuid())
        throw HttpError(500, "vgpud runs as uid " + std::to_string(geteuid()) +
                                 " and cannot start a worker for uid " + std::to_string(claim.request.uid) +
                                 ": vgpud must run as root");
    SessionPlan plan;
    plan.claim = claim.id;
    plan.lease = claim.lease;
    plan.memory = held.memory;
    plan.vgpus = held.vgpus.size();
    plan.spawn.program = config_.worker_program;
    plan.spawn.arguments = {"--session"};
    plan.spawn.environment = worker_environment(settings_.cuda_env);
    plan.spawn.change_user = root;
    plan.spawn.uid = claim.request.uid;
    plan.spawn.gid = claim.request.gid;
    auto& job = plan.job.job;
    job.claim = claim.id;
    job.client = printable(request.client);
    job.cuda_library = settings_.cuda_library;
    job.cuda_env = settings_.cuda_env;
    job.image_cache = image_cache_of(claim.request.uid, claim.request.gid);
    std::vector<bool> taken(held.vgpus.size());
    for (const auto& vgpu : claim.vgpus) {
        if (vgpu.node != settings_.name)
            continue;
        std::size_t slot = 0;
        while (slot < held.vgpus.size() && (taken[slot] || held.vgpus[slot].gpu != vgpu.gpu))
            ++slot;
        if (slot == held.vgpus.size())
            throw HttpError(400, "claim " + claim.id + " names a GPU that its lease does not hold");
        taken[slot] = true;
        job.vgpus.push_back(
            {static_cast<int>(slot), vgpu.gpu, vgpu.uuid, vgpu.shares, vgpu.memory_mib << 20});
    }
    if (job.vgpus.empty())
        throw HttpError(400, "claim " + claim.id + " has no vGPU on " + settings_.name);
    plan.job.listen_address =
        transport::local_address_towards(transport::resolve(request.client_address, 1)).host();
    plan.job.key_hex = transport::to_hex(transport::session_key(claim.secret, request.nonces));
    plan.job.options.transport = config_.transport;
    plan.job.options.net_devices = settings_.net_devices;
    // A client may be stopped (debugger, Slurm's suspend) for any time; the release of the lease ends its
    // worker.
    plan.job.options.peer_timeout = 0ms;
    plan.job.options.heartbeat = std::min<std::chrono::milliseconds>(1000ms, config_.peer_timeout / 4);
    plan.job.log_level = config_.log_level;
    plan.job.to_syslog = to_syslog_;
    return plan;
}

/// Module images that came once need not come again. Empty: the directory cannot be had, and the worker does
/// without.
std::string Node::image_cache_of(uid_t uid, gid_t gid) const {
    const std::string all = config_.state_dir + "/images", own = all + "/" + std::to_string(uid);
    struct stat found {};
    const bool good = (mkdir(all.c_str(), 0711) == 0 || errno == EEXIST) &&
                      (mkdir(own.c_str(), 0700) == 0 || errno == EEXIST) &&
                      (geteuid() != 0 || lchown(own.c_str(), uid, gid) == 0) &&
                      lstat(own.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == uid;
    if (!good)
        spdlog::warn("{}: {}; the images of uid {} are not kept", own, strerror(errno), uid);
    return good ? own : "";
}

Node::Opened Node::open(const OpenRequest& request) {
    const std::string& claim_id = request.nonces.claim;
    SessionPlan new_plan;
    {
        std::lock_guard lock(mutex_);
        const auto claim = claims_.find(claim_id);
        if (claim == claims_.end())
            throw HttpError(404, "there is no claim " + printable(claim_id) + " on " + settings_.name +
                                     ": the job step has ended, or its lease was released");
        const long long now = now_ms();
        std::erase_if(used_nonces_, [&](const auto& used) { return used.second < now; });
        // One answer for all that may be wrong: it teaches nothing.
        if (!challenges_.valid(claim_id, request.nonces.nonce, now) ||
            used_nonces_.contains(request.nonces.nonce) ||
            !transport::same(transport::session_proof(claim->second.secret, request.nonces),
                             transport::from_hex(request.proof)))
            throw HttpError(403, "the proof for claim " + printable(claim_id) + " is wrong or too late");
        used_nonces_[request.nonces.nonce] = now + transport::Challenges::lifetime_ms;
        if (opening_ >= most_opening)
            throw HttpError(503, settings_.name + " starts " + std::to_string(opening_) +
                                     " workers at the moment; ask again");
        new_plan = plan(claim->second, request);
        ++opening_;
    }
    const std::string address = new_plan.job.listen_address;
    auto closed = [this](int*) {
        std::lock_guard lock(mutex_);
        --opening_;
    };
    int here = 0;
    const std::unique_ptr<int, decltype(closed)> counted(&here, closed);
    const auto started = sessions_.start(std::move(new_plan), worker_deadline);
    bool still = false;
    {
        std::lock_guard lock(mutex_);
        still = claims_.contains(claim_id);
    }
    if (!still) {
        sessions_.end_session(started.id);
        throw HttpError(404, "claim " + printable(claim_id) + " was released meanwhile");
    }
    changed();
    return {started.id, address, started.port};
}

std::uint64_t Node::wait_for_change(std::uint64_t seen, std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    change_.wait_for(lock, longest, [&] { return changes_ != seen; });
    return changes_;
}

void Node::wake() {
    changed();
}

void Node::changed() {
    {
        std::lock_guard lock(mutex_);
        ++changes_;
    }
    change_.notify_all();
}

} // namespace vgpu::node
