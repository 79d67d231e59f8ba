// SPDX-License-Identifier: BSD-3-Clause
// Messages whose content follows from their number, and a receiver that checks order and content.
#pragma once

#include "ucx_forwarder/transport/connection.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace vgpu::test {

using namespace std::chrono_literals;

struct Head {
    std::uint64_t number;
    std::uint64_t seed;
};

inline std::vector<std::byte> pattern(std::uint64_t seed, std::size_t size) {
    std::vector<std::byte> bytes(size);
    std::uint64_t x = seed * 0x9e3779b97f4a7c15u + 1;
    for (std::size_t i = 0; i < size; ++i) {
        if (i % 8 == 0)
            x = x * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = static_cast<std::byte>(x >> (56 - 8 * (i % 8)));
    }
    return bytes;
}

/// Checks order and content of what comes.
class Checker : public transport::Receiver {
public:
    std::span<std::byte> body_buffer(std::span<const std::byte> head, std::size_t size) override {
        std::lock_guard lock(mutex_);
        if (!own_buffers_)
            return {};
        auto& buffer = buffers_[number_of(head)];
        buffer.resize(size);
        return buffer;
    }
    void message(std::span<const std::byte> head, std::span<std::byte> body) override {
        Head h;
        std::memcpy(&h, head.data(), sizeof h);
        std::lock_guard lock(mutex_);
        if (h.number != received_)
            ++disorder_;
        const auto expected = pattern(h.seed, body.size());
        if (!std::equal(body.begin(), body.end(), expected.begin(), expected.end()))
            ++damaged_;
        if (auto own = buffers_.find(h.number); own != buffers_.end()) {
            if (body.data() != own->second.data())
                ++damaged_;
            buffers_.erase(own);
        }
        bytes_ += body.size();
        ++received_;
    }
    void lost(const std::string& why) override {
        std::lock_guard lock(mutex_);
        ++lost_;
        why_ = why;
    }
    static std::uint64_t number_of(std::span<const std::byte> head) {
        Head h;
        std::memcpy(&h, head.data(), sizeof h);
        return h.number;
    }
    std::uint64_t received() const { return received_; }
    int lost_count() const { return lost_; }
    std::string why() {
        std::lock_guard lock(mutex_);
        return why_;
    }
    std::atomic<std::uint64_t> received_{0}, disorder_{0}, damaged_{0}, bytes_{0};
    std::atomic<int> lost_{0};
    bool own_buffers_ = false;

private:
    std::mutex mutex_;
    std::string why_;
    std::map<std::uint64_t, std::vector<std::byte>> buffers_;
};

inline void send_pattern(transport::Connection& connection, std::uint64_t number, std::size_t size,
                         transport::Body mode, std::atomic<int>* outstanding = nullptr) {
    const Head head{number, number + 17};
    auto body = std::make_shared<std::vector<std::byte>>(pattern(head.seed, size));
    if (outstanding)
        ++*outstanding;
    connection.send(std::as_bytes(std::span(&head, 1)), *body, mode, [body, outstanding] {
        if (outstanding)
            --*outstanding;
    });
}

template <typename F>
bool eventually(F condition, std::chrono::seconds limit = 60s) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until)
            return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

} // namespace vgpu::test
