// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/waiters.h"

#include <chrono>
#include <thread>

namespace vgpu::worker {

void Waiters::run(std::function<void()> job) {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    if (state.stopped) {
        return;
    }
    state.jobs.push_back(std::move(job));
    if (state.idle < state.jobs.size() && state.threads < max_threads) {
        ++state.threads;
        std::thread([shared = state_] { work(shared); }).detach();
    } else {
        state.ready.notify_one();
    }
}

void Waiters::work(const std::shared_ptr<State>& shared) {
    State& state = *shared;
    std::unique_lock lock(state.mutex);
    while (true) {
        ++state.idle;
        state.ready.wait(lock, [&state] { return state.stopped || !state.jobs.empty(); });
        --state.idle;
        if (state.stopped) {
            --state.threads;
            state.idle_changed.notify_all();
            return;
        }
        auto job = std::move(state.jobs.front());
        state.jobs.pop_front();
        lock.unlock();
        job();
        job = nullptr; // what it holds goes before the lock is back
        lock.lock();
    }
}

bool Waiters::stop(unsigned milliseconds) {
    State& state = *state_;
    std::unique_lock lock(state.mutex);
    state.stopped = true;
    state.jobs.clear();
    state.ready.notify_all();
    return state.idle_changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                                       [&state] { return state.threads == 0; });
}

} // namespace vgpu::worker
