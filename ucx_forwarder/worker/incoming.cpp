// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/incoming.h"

#include <algorithm>
#include <cstring>

namespace vgpu::worker {

std::span<std::byte> IncomingQueue::reserve(std::size_t size) {
    const std::lock_guard lock(mutex_);
    Buffer buffer;
    if (size <= protocol::chunk_bytes && !spare_buffers_.empty()) {
        buffer = std::move(spare_buffers_.back());
        spare_buffers_.pop_back();
    } else {
        // Small odd sizes get a whole chunk too, so that the buffer can be used again.
        buffer.capacity = std::max(size, size > (64U << 10) ? protocol::chunk_bytes : size);
        buffer.memory = std::make_unique_for_overwrite<std::byte[]>(buffer.capacity);
    }
    const std::span<std::byte> bytes(buffer.memory.get(), size);
    reserved_.push_back(std::move(buffer));
    return bytes;
}

void IncomingQueue::push(std::span<const std::byte> head, std::span<std::byte> body) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Incoming> incoming;
    if (spare_.empty()) {
        incoming = std::make_unique_for_overwrite<Incoming>();
    } else {
        incoming = std::move(spare_.back());
        spare_.pop_back();
    }
    incoming->head_size = std::min(head.size(), incoming->head.size());
    std::memcpy(incoming->head.data(), head.data(), incoming->head_size);
    incoming->body_size = body.size();
    if (!body.empty()) {
        const auto found = std::find_if(reserved_.begin(), reserved_.end(), [&body](const Buffer& buffer) {
            return buffer.memory.get() == body.data();
        });
        if (found != reserved_.end()) {
            incoming->body = std::move(found->memory);
            incoming->body_capacity = found->capacity;
            reserved_.erase(found);
        } else {
            if (incoming->body_capacity < body.size()) {
                incoming->body = std::make_unique_for_overwrite<std::byte[]>(body.size());
                incoming->body_capacity = body.size();
            }
            std::memcpy(incoming->body.get(), body.data(), body.size());
        }
    }
    bytes_.fetch_add(incoming->cost(), std::memory_order_relaxed);
    queue_.push_back(std::move(incoming));
    waiting_.fetch_add(1, std::memory_order_release);
}

std::unique_ptr<Incoming> IncomingQueue::pop() {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) {
        return nullptr;
    }
    auto incoming = std::move(queue_.front());
    queue_.pop_front();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    bytes_.fetch_sub(incoming->cost(), std::memory_order_relaxed);
    return incoming;
}

void IncomingQueue::recycle(std::unique_ptr<Incoming> incoming) {
    const std::lock_guard lock(mutex_);
    if (incoming->body_capacity > (64U << 10)) {
        if (incoming->body_capacity == protocol::chunk_bytes && spare_buffers_.size() < kept_buffers) {
            spare_buffers_.push_back({std::move(incoming->body), incoming->body_capacity});
        }
        incoming->body.reset();
        incoming->body_capacity = 0;
    }
    if (spare_.size() < kept_records) {
        spare_.push_back(std::move(incoming));
    }
}

} // namespace vgpu::worker
