// SPDX-License-Identifier: BSD-3-Clause
// A vgpud without GPUs: the control plane's side of one, on a real server, with the faults that a test asks
// for.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "gres_vgpu/control/messages.h"
#include "gres_vgpu/control/server.h"

namespace vgpu::test {

class FakeVgpud {
public:
    /// Listens at once. `gpus` GPUs of `memory_mib` each.
    FakeVgpud(std::string name, int gpus, std::uint64_t memory_mib, std::string munge_socket);

    /// What it would report now.
    control::NodeStatus status() const;
    /// From now on (or no longer) these routes answer 500.
    void fail_leases(bool fail);
    void fail_claims(bool fail);
    void stop() { server_->stop(); }
    /// As if its database were lost.
    void forget();
    std::size_t lease_count() const;
    std::optional<control::Lease> lease(const std::string& id) const;
    std::optional<control::Claim> claim(const std::string& id) const;
    std::size_t claim_count() const;

private:
    mutable std::mutex mutex_;
    control::NodeStatus status_;
    std::map<std::string, control::Lease> leases_;
    std::map<std::string, control::Claim> claims_;
    bool fail_leases_ = false, fail_claims_ = false;
    std::optional<control::Server> server_;
};

} // namespace vgpu::test
