// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/pool/pool.h"

#include <algorithm>

#include "gres_vgpu/control/envelope.h"

namespace vgpu::pool {

using control::Claim;
using control::Job;
using control::Lease;
using control::NodeStatus;
using control::Request;
using control::Vgpu;

namespace {

// A report may be older than what we sent in the meantime; what it lacks is missing only after this.
constexpr std::chrono::seconds report_lag{6};

bool on_node(const std::vector<Vgpu>& vgpus, const std::string& node) {
    return std::any_of(vgpus.begin(), vgpus.end(), [&](const Vgpu& v) { return v.node == node; });
}

template <class T>
bool has_id(const std::vector<T>& list, const std::string& id) {
    return std::any_of(list.begin(), list.end(), [&](const T& entry) { return entry.id == id; });
}

} // namespace

bool same_job(const Job& a, const Job& b) {
    if (a.id != b.id)
        return false;
    return a.submit_time == 0 || b.submit_time == 0 ||
           (a.submit_time == b.submit_time && a.restarts == b.restarts);
}

std::string job_name(const Job& job) {
    return "job " + std::to_string(job.id);
}

std::vector<std::string> nodes_of(const std::vector<Vgpu>& vgpus) {
    std::vector<std::string> out;
    for (const auto& vgpu : vgpus)
        if (std::find(out.begin(), out.end(), vgpu.node) == out.end())
            out.push_back(vgpu.node);
    return out;
}

Pool::Pool(const Config& config) : config_(config) {
    for (const auto& node : config.nodes) {
        order_.push_back(node.name);
        auto& entry = nodes_[node.name];
        entry.status.node = node.name;
        entry.status.address = node.address;
        entry.status.port = config.node_port;
    }
}

const Node* Pool::node(const std::string& name) const {
    auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : &found->second;
}

bool Pool::up(const Node& node, Clock::time_point now) const {
    return node.seen && !node.failed && now - *node.seen <= config_.node_timeout;
}

std::vector<std::string> Pool::unknown_nodes() const {
    std::vector<std::string> out;
    for (const auto& name : order_)
        if (!nodes_.at(name).seen)
            out.push_back(name);
    return out;
}

void Pool::call_failed(const std::string& name, Clock::time_point now) {
    if (auto found = nodes_.find(name); found != nodes_.end())
        found->second.failed = now;
}

std::vector<Repair> Pool::report(const NodeStatus& status, uid_t uid, Clock::time_point now) {
    auto& node = nodes_.at(status.node);
    auto previous = std::move(node.status);
    node.status = status;
    if (node.status.address.empty())
        node.status.address = previous.address;
    if (node.status.port == 0)
        node.status.port = previous.port;
    std::sort(node.status.gpus.begin(), node.status.gpus.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    node.uid = uid;
    node.seen = now;
    node.failed.reset();

    std::vector<Repair> repairs;
    for (const auto& lease : status.leases) {
        if (dead_.contains(lease.id))
            repairs.push_back({Repair::What::delete_lease, status.node, lease.id, lease.request.job});
        else
            leases_.try_emplace(lease.id, LeaseEntry{lease, now, {}});
    }
    for (const auto& claim : status.claims) {
        auto known = leases_.contains(claim.lease);
        if (dead_.contains(claim.id) || !known)
            repairs.push_back({Repair::What::delete_claim, status.node, claim.id, claim.request.job});
        else
            claims_.try_emplace(claim.id, ClaimEntry{claim, now});
    }
    for (const auto& [id, entry] : leases_)
        if (now - entry.changed > report_lag && on_node(entry.lease.vgpus, status.node) &&
            !has_id(status.leases, id))
            repairs.push_back({Repair::What::put_lease, status.node, id, entry.lease.request.job});
    for (const auto& [id, entry] : claims_)
        if (!entry.claim.secret.empty() && now - entry.changed > report_lag &&
            on_node(entry.claim.vgpus, status.node) && !has_id(status.claims, id))
            repairs.push_back({Repair::What::put_claim, status.node, id, entry.claim.request.job});
    return repairs;
}

std::vector<FreeGpu> Pool::free_gpus(Clock::time_point now, const std::set<std::string>& without,
                                     const std::string& as_if_gone) const {
    std::vector<FreeGpu> out;
    std::map<std::pair<std::string, int>, std::size_t> index;
    for (const auto& name : order_) {
        const auto& node = nodes_.at(name);
        if (!up(node, now) || without.contains(name))
            continue;
        for (const auto& gpu : node.status.gpus) {
            index[{name, gpu.index}] = out.size();
            out.push_back({name, gpu.index, config_.shares_per_gpu, gpu.memory_mib, gpu.memory_mib});
        }
    }
    auto take = [&](const std::vector<Vgpu>& vgpus) {
        for (const auto& vgpu : vgpus) {
            auto found = index.find({vgpu.node, vgpu.gpu});
            if (found == index.end())
                continue;
            auto& gpu = out[found->second];
            gpu.shares -= std::min(gpu.shares, vgpu.shares);
            gpu.memory_mib -= std::min(gpu.memory_mib, vgpu.memory_mib);
        }
    };
    for (const auto& [id, entry] : leases_)
        if (id != as_if_gone)
            take(entry.lease.vgpus);
    // Released, but its vgpud has not confirmed it: that part is not free yet.
    for (const auto& [name, node] : nodes_)
        for (const auto& lease : node.status.leases)
            if (!leases_.contains(lease.id) && lease.id != as_if_gone) {
                std::vector<Vgpu> here;
                std::copy_if(lease.vgpus.begin(), lease.vgpus.end(), std::back_inserter(here),
                             [&, &name = name](const Vgpu& v) { return v.node == name; });
                take(here);
            }
    return out;
}

std::vector<FreeGpu> Pool::whole_gpus() const {
    std::vector<FreeGpu> out;
    for (const auto& name : order_)
        for (const auto& gpu : nodes_.at(name).status.gpus)
            out.push_back({name, gpu.index, config_.shares_per_gpu, gpu.memory_mib, gpu.memory_mib});
    return out;
}

Lease Pool::make_lease(const Request& request, const std::vector<FreeGpu>& gpus,
                       const std::vector<Place>& places) const {
    Lease lease;
    do
        lease.id = std::to_string(request.job.id) + "." + request.node + "." + control::random_hex(3);
    while (leases_.contains(lease.id) || dead_.contains(lease.id));
    lease.request = request;
    for (const auto& place : places) {
        const auto& free = gpus[place.gpu];
        const auto& status = nodes_.at(free.node).status;
        auto gpu = std::find_if(status.gpus.begin(), status.gpus.end(),
                                [&](const control::Gpu& g) { return g.index == free.index; });
        lease.vgpus.push_back({free.node, status.address, status.port, free.index, gpu->uuid, gpu->name,
                               place.shares, place.memory_mib});
    }
    return lease;
}

void Pool::put(const Lease& lease, Clock::time_point now) {
    leases_.insert_or_assign(lease.id, LeaseEntry{lease, now, {}});
}

void Pool::put(const Claim& claim, Clock::time_point now) {
    claims_.insert_or_assign(claim.id, ClaimEntry{claim, now});
}

void Pool::erase_lease(const std::string& id) {
    leases_.erase(id);
    bury(id);
    for (const auto& claim : claims_of(id))
        erase_claim(claim.id);
}

void Pool::erase_claim(const std::string& id) {
    claims_.erase(id);
    bury(id);
}

void Pool::gone(const std::string& node, const std::string& lease_id) {
    auto& leases = nodes_.at(node).status.leases;
    std::erase_if(leases, [&](const Lease& lease) { return lease.id == lease_id; });
}

void Pool::bury(const std::string& id) {
    const auto now = Clock::now();
    dead_[id] = now;
    // A vgpud that comes back later than this brings back leases, which the reconciler then frees.
    if (dead_.size() % 4096 == 0)
        std::erase_if(dead_, [&](const auto& entry) { return now - entry.second > std::chrono::hours(24); });
}

std::vector<Lease> Pool::leases_of(std::uint32_t job, const std::string& node) const {
    std::vector<Lease> out;
    for (const auto& [id, entry] : leases_)
        if (entry.lease.request.job.id == job && (node.empty() || entry.lease.request.node == node))
            out.push_back(entry.lease);
    return out;
}

std::vector<Claim> Pool::claims_of(const std::string& lease) const {
    std::vector<Claim> out;
    for (const auto& [id, entry] : claims_)
        if (entry.claim.lease == lease)
            out.push_back(entry.claim);
    return out;
}

std::string Pool::new_claim_id(const Request& request) const {
    std::string id;
    do
        id = std::to_string(request.job.id) + "." + std::to_string(request.step) + "." + request.node + "." +
             control::random_hex(3);
    while (claims_.contains(id) || dead_.contains(id));
    return id;
}

control::PoolStatus Pool::status(Clock::time_point now) const {
    control::PoolStatus out;
    out.shares_per_gpu = config_.shares_per_gpu;
    for (const auto& name : order_) {
        const auto& node = nodes_.at(name);
        NodeStatus status = node.status;
        status.state = up(node, now) ? "up" : node.seen ? "down" : "unknown";
        status.leases.clear();
        status.claims.clear();
        if (status.state != "up")
            status.sessions.clear();
        for (const auto& [id, entry] : leases_)
            if (on_node(entry.lease.vgpus, name))
                status.leases.push_back(entry.lease);
        for (const auto& [id, entry] : claims_)
            if (on_node(entry.claim.vgpus, name)) {
                status.claims.push_back(entry.claim);
                status.claims.back().secret.clear();
            }
        out.nodes.push_back(std::move(status));
    }
    return out;
}

std::optional<std::vector<Vgpu>> carve(const Lease& lease, const Request& request, unsigned shares_per_gpu) {
    unsigned total = 0;
    for (const auto& vgpu : lease.vgpus)
        total += vgpu.shares;
    auto enough_memory = [&](const Vgpu& vgpu) { return request.memory_mib <= vgpu.memory_mib; };
    const bool whole = (request.shares == 0 || request.shares == total) &&
                       (request.devices == 0 || request.devices == lease.vgpus.size());
    std::vector<Vgpu> out;
    if (whole) {
        out = lease.vgpus;
        for (auto& vgpu : out) {
            if (!enough_memory(vgpu))
                return std::nullopt;
            if (request.memory_mib != 0)
                vgpu.memory_mib = request.memory_mib;
        }
        return out;
    }
    if (request.shares == 0)
        return std::nullopt;
    const auto shape = divide_shares(request.shares, request.devices, shares_per_gpu);
    for (const auto& vgpu : lease.vgpus) {
        if (out.size() == shape.devices)
            break;
        if (vgpu.shares < shape.shares || !enough_memory(vgpu))
            continue;
        out.push_back(vgpu);
        out.back().shares = shape.shares;
        out.back().memory_mib = request.memory_mib != 0
                                    ? request.memory_mib
                                    : proportional_mib(shape.shares, vgpu.shares, vgpu.memory_mib);
    }
    if (out.size() < shape.devices)
        return std::nullopt;
    return out;
}

} // namespace vgpu::pool
