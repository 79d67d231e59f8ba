// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/client.h"

#include "ucx_forwarder/client/cuda/session_open.h"

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <utility>

namespace vgpu::client {

Client& Client::instance() {
    static Client& client = *new Client;
    return client;
}

namespace {

/// With Client::mutex_ held. Programs try cuInit again and again: the same sentence is said once.
void say(const std::string& text) {
    static std::string& last = *new std::string;
    if (std::exchange(last, text) != text)
        std::fprintf(stderr, "vgpu: %s\n", text.c_str());
}

} // namespace

CUresult Client::initialize() {
    if (CUresult now = ready(); now != CUDA_ERROR_NOT_INITIALIZED)
        return now;
    std::lock_guard lock(mutex_);
    if (state_.load() == State::forked)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (CUresult now = ready(); now != CUDA_ERROR_NOT_INITIALIZED)
        return now;
    // A child of a process that has sessions has neither its threads nor its connections. While they are
    // being made, it must not have a half of them either, nor a mutex that a thread holds which does not
    // exist there.
    static const int registered =
        pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                       [] {
                           State started = State::ready;
                           instance().state_.compare_exchange_strong(started, State::forked);
                           instance().mutex_.unlock();
                       });
    if (registered != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    try {
        VGPU_TRY(connect());
        // Runs before the exit handlers that the sessions' own libraries registered, and after the
        // destructors of the program's objects that were made later than this. Other threads may still be at
        // work.
        static const int at_exit = std::atexit([] { instance().shut_down(); });
        return at_exit == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
    } catch (const OpenError& error) {
        say(error.what());
        return error.status;
    } catch (const std::exception& error) {
        say(std::string("the session with the GPU node cannot begin: ") + error.what());
        return CUDA_ERROR_SYSTEM_NOT_READY;
    }
}

CUresult Client::connect() {
    nodes_.clear();
    devices_.clear();
    std::size_t count = 0;
    for (OpenedNode& opened : open_claim()) {
        Node& node = nodes_.emplace_back();
        node.session = std::make_unique<Session>(opened.node, std::move(opened.connection));
        const auto& snapshots = node.session->devices();
        if (snapshots.size() != opened.devices.size())
            throw std::runtime_error("node " + opened.node + " has " + std::to_string(snapshots.size()) +
                                     " vGPUs for this session, and the claim " +
                                     std::to_string(opened.devices.size()) +
                                     ": the job must be submitted again");
        for (int ordinal : opened.devices)
            count = std::max(count, std::size_t(ordinal) + 1);
        node_devices_.push_back(std::move(opened.devices));
    }
    devices_.resize(count);
    for (std::size_t n = 0; n < nodes_.size(); ++n)
        for (std::size_t i = 0; i < node_devices_[n].size(); ++i) {
            Device& device = devices_[std::size_t(node_devices_[n][i])];
            device.ordinal = node_devices_[n][i];
            device.node = &nodes_[n];
            device.index = int(i);
            device.snapshot = &nodes_[n].session->devices()[i];
        }
    for (const Device& device : devices_)
        if (!device.node)
            throw std::runtime_error("the claim leaves out a device number: vgpuctld and its nodes disagree");
    if (devices_.empty())
        return CUDA_ERROR_NO_DEVICE;
    state_.store(State::ready, std::memory_order_release);
    return CUDA_SUCCESS;
}

void Client::shut_down() {
    State before = state_.exchange(State::ended);
    // Never opened, or opened by the parent, whose sessions must not be ended by its child.
    if (before == State::forked)
        state_.store(State::forked);
    if (before != State::ready)
        return;
    for (Node& node : nodes_)
        node.session->shutdown();
}

std::uint64_t new_number() {
    static std::atomic<std::uint64_t> last{1}; // 1 is the legacy default stream's
    return ++last;
}

} // namespace vgpu::client
