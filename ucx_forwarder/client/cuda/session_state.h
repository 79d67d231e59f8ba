// SPDX-License-Identifier: BSD-3-Clause
// What a Session keeps, and how it receives. Private to session*.cpp.
#pragma once

#include "ucx_forwarder/client/cuda/session.h"

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace vgpu::client {

/// Where the reply to one awaited call goes. Filled by the receiving thread, then `done`.
struct ReplySlot {
    std::atomic<std::uint32_t> id{0}; ///< as on the wire; 0 while free
    std::atomic<bool> done{false};
    std::span<std::byte> head; ///< for the Out parameters
    std::size_t head_size = 0;
    std::span<std::byte> body; ///< BytesOut
    std::vector<std::byte>* blob = nullptr;
    CUresult status = CUDA_SUCCESS;
    bool malformed = false;
};

struct Session::State final : transport::Receiver {
    State(std::string node, std::unique_ptr<transport::Connection> connection);
    ~State() override;

    std::span<std::byte> body_buffer(std::span<const std::byte> head, std::size_t size) override;
    void message(std::span<const std::byte> head, std::span<std::byte> body) override;
    void lost(const std::string& why) override;

    /// CUDA_SUCCESS, or why no call can be made: the session is lost or ended, or the context has a fatal
    /// error.
    CUresult check(const Request& request);
    void remember(WireId context, CUresult status);
    void wait_for_window(std::uint64_t cost);
    /// The thread that runs them; `done` tells the worker.
    void run_host_functions(const std::function<void(std::uint64_t)>& done);

    ReplySlot& take_slot();
    void free_slot(ReplySlot& slot);
    ReplySlot* slot_of(std::uint32_t id);

    const std::string node_;
    std::vector<DeviceSnapshot> devices_;

    enum class Life : int { running, lost, ended };
    std::atomic<Life> life_{Life::running};

    static constexpr std::size_t max_slots = 1024; ///< threads that wait at the same time
    std::array<ReplySlot, max_slots> slots_;
    std::mutex slots_mutex_;
    std::condition_variable slot_free_;
    std::vector<std::uint32_t> free_slots_; ///< indices
    std::uint32_t slot_uses_ = 0;

    std::atomic<std::uint64_t> produced_{0}; ///< record_cost of all that was sent
    std::atomic<std::uint64_t> consumed_{0}; ///< of this, what the worker has done with

    std::atomic<bool> any_sticky_{false};
    mutable std::mutex sticky_mutex_;
    std::map<std::uint64_t, CUresult> sticky_;

    std::mutex host_mutex_; ///< of the host functions, all below
    std::condition_variable host_ready_;
    std::map<std::uint64_t, std::function<void()>> host_functions_;
    std::vector<std::uint64_t> host_due_;
    std::uint64_t next_host_function_ = 1;
    bool host_stop_ = false;
    std::thread host_thread_;

    struct Count {
        std::atomic<std::uint64_t> value{0};
    };
    std::array<Count, protocol::call_count> sent_;
    std::array<Count, protocol::call_count> awaited_;

    /// Last: while it is there, it calls us.
    std::unique_ptr<transport::Connection> connection_;
};

} // namespace vgpu::client
