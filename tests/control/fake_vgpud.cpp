// SPDX-License-Identifier: BSD-3-Clause
#include "tests/control/fake_vgpud.h"

#include <unistd.h>

#include "gres_vgpu/control/json.h"

namespace vgpu::test {

using namespace control;
using nlohmann::json;

FakeVgpud::FakeVgpud(std::string name, int gpus, std::uint64_t memory_mib, std::string munge_socket) {
    Server::Options options;
    options.name = name;
    options.address = "127.0.0.1";
    options.munge_socket = std::move(munge_socket);
    options.admins = {getuid()};
    server_.emplace(std::move(options));
    server_->protect("PUT", "/v1/lease", Server::Access::admins, [this](const Peer&, const json& body) {
        std::lock_guard lock(mutex_);
        if (fail_leases_)
            throw HttpError(500, "the disk is full");
        auto lease = body.get<Lease>();
        leases_[lease.id] = lease;
        return json::object();
    });
    server_->protect("DELETE", "/v1/lease", Server::Access::admins, [this](const Peer&, const json& body) {
        std::lock_guard lock(mutex_);
        auto id = body.at("id").get<std::string>();
        leases_.erase(id);
        std::erase_if(claims_, [&](const auto& entry) { return entry.second.lease == id; });
        return json::object();
    });
    server_->protect("PUT", "/v1/claim", Server::Access::admins, [this](const Peer&, const json& body) {
        std::lock_guard lock(mutex_);
        if (fail_claims_)
            throw HttpError(500, "the disk is full");
        auto claim = body.get<Claim>();
        if (!leases_.contains(claim.lease))
            throw HttpError(404, "there is no lease " + claim.lease);
        claims_[claim.id] = claim;
        return json::object();
    });
    server_->protect("DELETE", "/v1/claim", Server::Access::admins, [this](const Peer&, const json& body) {
        std::lock_guard lock(mutex_);
        claims_.erase(body.at("id").get<std::string>());
        return json::object();
    });
    server_->start();
    status_.node = std::move(name);
    status_.address = "127.0.0.1";
    status_.port = server_->port();
    for (int i = 0; i < gpus; ++i)
        status_.gpus.push_back({i, "GPU-" + status_.node + "-" + std::to_string(i), "Fake",
                                "0000:0" + std::to_string(i) + ":00.0", memory_mib});
}

NodeStatus FakeVgpud::status() const {
    std::lock_guard lock(mutex_);
    auto status = status_;
    for (const auto& [id, lease] : leases_)
        status.leases.push_back(lease);
    for (const auto& [id, claim] : claims_) {
        status.claims.push_back(claim);
        status.claims.back().secret.clear();
    }
    return status;
}

void FakeVgpud::fail_leases(bool fail) {
    std::lock_guard lock(mutex_);
    fail_leases_ = fail;
}

void FakeVgpud::fail_claims(bool fail) {
    std::lock_guard lock(mutex_);
    fail_claims_ = fail;
}

void FakeVgpud::forget() {
    std::lock_guard lock(mutex_);
    leases_.clear();
    claims_.clear();
}

std::size_t FakeVgpud::lease_count() const {
    std::lock_guard lock(mutex_);
    return leases_.size();
}

std::optional<Lease> FakeVgpud::lease(const std::string& id) const {
    std::lock_guard lock(mutex_);
    auto found = leases_.find(id);
    return found == leases_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Claim> FakeVgpud::claim(const std::string& id) const {
    std::lock_guard lock(mutex_);
    auto found = claims_.find(id);
    return found == claims_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t FakeVgpud::claim_count() const {
    std::lock_guard lock(mutex_);
    return claims_.size();
}

} // namespace vgpu::test
