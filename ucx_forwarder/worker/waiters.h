// SPDX-License-Identifier: BSD-3-Clause
// Threads for calls that block, so that the session's other calls go on.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace vgpu::worker {

/// A kernel may never end, and then nor does a thread that waits for it: the threads are detached and share
/// the state.
class Waiters {
public:
    static constexpr unsigned max_threads = 256;

    Waiters() : state_(std::make_shared<State>()) {}
    ~Waiters() { stop(); }

    /// Runs the job soon, on a thread that is idle or new. Jobs must not throw.
    void run(std::function<void()> job);
    /// No further jobs begin. True if all that run ended within the time.
    bool stop(unsigned milliseconds = 0);

private:
    struct State {
        std::mutex mutex;
        std::condition_variable ready;
        std::condition_variable idle_changed;
        std::deque<std::function<void()>> jobs;
        unsigned threads = 0;
        unsigned idle = 0;
        bool stopped = false;
    };
    static void work(const std::shared_ptr<State>& state);
    const std::shared_ptr<State> state_;
};

} // namespace vgpu::worker
