// SPDX-License-Identifier: BSD-3-Clause
// Records that have arrived and wait for their turn. The connection's threads fill it, the executing thread
// empties it.
#pragma once

#include "ucx_forwarder/protocol/message.h"

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace vgpu::worker {

/// One record, in memory of ours.
struct Incoming {
    std::array<std::byte, protocol::max_head> head; // not initialised on purpose
    std::size_t head_size = 0;
    std::unique_ptr<std::byte[]> body;
    std::size_t body_size = 0;
    std::size_t body_capacity = 0;

    std::span<const std::byte> head_bytes() const { return std::span(head).first(head_size); }
    std::span<const std::byte> body_bytes() const { return {body.get(), body_size}; }
    std::uint64_t cost() const { return protocol::record_cost(head_size, body_size); }
};

class IncomingQueue {
public:
    /// A buffer for a body that is on its way; push() takes it over when the body comes in it.
    std::span<std::byte> reserve(std::size_t size);
    void push(std::span<const std::byte> head, std::span<std::byte> body);
    /// The next record, or null.
    std::unique_ptr<Incoming> pop();
    /// Gives the record's memory back for later ones.
    void recycle(std::unique_ptr<Incoming> incoming);

    bool empty() const { return waiting_.load(std::memory_order_acquire) == 0; }
    /// Bytes that wait, as record_cost counts them.
    std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

private:
    struct Buffer {
        std::unique_ptr<std::byte[]> memory;
        std::size_t capacity = 0;
    };
    static constexpr std::size_t kept_records = 256;
    static constexpr std::size_t kept_buffers = 4;

    std::mutex mutex_;
    std::deque<std::unique_ptr<Incoming>> queue_;
    std::vector<std::unique_ptr<Incoming>> spare_;
    std::vector<Buffer> spare_buffers_; ///< of chunk size
    std::vector<Buffer> reserved_;
    std::atomic<std::size_t> waiting_{0};
    std::atomic<std::uint64_t> bytes_{0};
};

} // namespace vgpu::worker
