// SPDX-License-Identifier: BSD-3-Clause
// The worker processes of a node: one thread starts them, reads their reports, notices their end and returns
// what they held. It starts them itself because they die with the thread that started them.
#pragma once

#include "gres_vgpu/control/messages.h"
#include "ucx_forwarder/node/process.h"
#include "ucx_forwarder/worker/lease_memory.h"
#include "ucx_forwarder/worker/session_job.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace vgpu::node {

/// What a new session needs.
struct SessionPlan {
    Spawn spawn;
    worker::SessionJob job; ///< session number and slot are set by Sessions
    std::string claim;
    std::string lease;
    std::shared_ptr<worker::LeaseMemory> memory;
    std::size_t vgpus = 0; ///< of the lease on this node
};

class Sessions {
public:
    /// `changed`: called when a session began or ended, from the supervising thread.
    explicit Sessions(std::function<void()> changed);
    ~Sessions(); ///< kills all workers
    Sessions(const Sessions&) = delete;
    Sessions& operator=(const Sessions&) = delete;

    struct Started {
        std::uint64_t id = 0;
        std::uint16_t port = 0;
    };
    /// Starts a worker and waits until it listens. Throws std::runtime_error with a sentence.
    Started start(SessionPlan plan, std::chrono::milliseconds deadline);

    /// Kills the workers of a lease or of a claim; returns when they are gone and their memory is returned,
    /// at the latest after the deadline.
    void end_lease(const std::string& lease, std::chrono::milliseconds deadline);
    void end_claim(const std::string& claim, std::chrono::milliseconds deadline);
    void end_session(std::uint64_t id);

    std::vector<control::Session> list() const;

private:
    struct Entry {
        SessionPlan plan;
        Process process;
        std::string input; ///< an incomplete line
        control::Session shown;
        int slot = -1;
        std::promise<std::uint16_t> ready;
        bool answered = false;
        std::string failure;
    };
    struct Wish {
        SessionPlan plan;
        std::uint64_t id = 0;
        std::promise<std::uint16_t> ready;
    };

    void run();
    void begin(Wish wish);
    void read_reports(Entry& entry);
    void take_report(Entry& entry, const std::string& line);
    void finish(std::uint64_t id);
    void end(const std::function<bool(const Entry&)>& which, std::chrono::milliseconds deadline);
    void poke() const;

    std::function<void()> changed_;
    mutable std::mutex mutex_; ///< all below
    std::condition_variable ended_;
    std::map<std::uint64_t, std::unique_ptr<Entry>> entries_;
    std::deque<Wish> wishes_;
    std::uint64_t next_id_ = 1;
    bool stop_ = false;
    OwnedFd poke_fd_;
    std::thread thread_;
};

} // namespace vgpu::node
