// SPDX-License-Identifier: BSD-3-Clause
// vgpud on the network: its HTTP routes, and its registration with vgpuctld.
#pragma once

#include "gres_vgpu/control/server.h"
#include "ucx_forwarder/node/node.h"

#include <atomic>
#include <thread>

namespace vgpu::node {

class Service {
public:
    /// Listens at once. Throws std::runtime_error with a sentence.
    Service(const Config& config, const NodeConfig& settings, Node& node);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

private:
    void add_routes();
    void keep_registered();

    const Config config_;
    Node& node_;
    control::Server server_;
    std::atomic<bool> stop_{false};
    std::thread registration_;
};

} // namespace vgpu::node
