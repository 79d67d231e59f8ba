// SPDX-License-Identifier: BSD-3-Clause
// A receiver that sends every message back.
#pragma once

#include "ucx_forwarder/transport/connection.h"

#include <atomic>

namespace vgpu::test {

class Echo : public transport::Receiver {
public:
    explicit Echo(transport::Connection& connection) : connection_(connection) {}
    std::span<std::byte> body_buffer(std::span<const std::byte>, std::size_t) override { return {}; }
    void message(std::span<const std::byte> head, std::span<std::byte> body) override {
        connection_.send(head, body, transport::Body::copy);
    }
    void lost(const std::string&) override { lost_ = true; }
    bool is_lost() const { return lost_; }

private:
    transport::Connection& connection_;
    std::atomic<bool> lost_{false};
};

} // namespace vgpu::test
