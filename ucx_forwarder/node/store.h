// SPDX-License-Identifier: BSD-3-Clause
// vgpud's durable part: leases and claims in SQLite. What is not written here did not happen.
#pragma once

#include "gres_vgpu/control/messages.h"

#include <memory>
#include <string>
#include <vector>

struct sqlite3;

namespace vgpu::node {

/// Not thread safe. Every method throws std::runtime_error with a sentence.
class Store {
public:
    /// Opens or makes the file, readable by its owner only as it holds the claims' secrets.
    explicit Store(const std::string& path);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    std::vector<control::Lease> leases();
    std::vector<control::Claim> claims();
    void put(const control::Lease& lease);
    void put(const control::Claim& claim);
    /// With its claims.
    void remove_lease(const std::string& id);
    void remove_claim(const std::string& id);

private:
    std::string path_;
    sqlite3* database_ = nullptr;
};

} // namespace vgpu::node
