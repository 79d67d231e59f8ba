// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/host_functions.h"

namespace vgpu::worker {

HostFunctions::HostFunctions(std::function<void(std::uint64_t)> due) : state_(std::make_shared<State>()) {
    state_->due = std::move(due);
}

void* HostFunctions::add(std::uint64_t number) {
    const std::lock_guard lock(state_->mutex);
    if (state_->stopped || state_->functions.size() >= max_functions || state_->functions.contains(number)) {
        return nullptr;
    }
    auto function = std::make_unique<Function>();
    function->state = state_;
    function->number = number;
    return state_->functions.emplace(number, std::move(function)).first->second.get();
}

void HostFunctions::trampoline(void* pointer) {
    auto* function = static_cast<Function*>(pointer);
    const std::shared_ptr<State> state = function->state;
    const std::uint64_t number = function->number;
    std::unique_lock lock(state->mutex);
    if (!state->stopped) {
        ++state->telling;
        lock.unlock();
        state->due(number);
        lock.lock();
        --state->telling;
        state->changed.notify_all();
        state->changed.wait(lock, [&] { return state->stopped || function->done; });
    }
    if (!state->stopped) {
        state->functions.erase(number);
    }
}

void HostFunctions::remove(std::uint64_t number) {
    const std::lock_guard lock(state_->mutex);
    state_->functions.erase(number);
}

void HostFunctions::done(std::uint64_t number) {
    {
        const std::lock_guard lock(state_->mutex);
        const auto found = state_->functions.find(number);
        if (found != state_->functions.end()) {
            found->second->done = true;
        }
    }
    state_->changed.notify_all();
}

void HostFunctions::stop() {
    std::unique_lock lock(state_->mutex);
    state_->stopped = true;
    state_->changed.notify_all();
    state_->changed.wait(lock, [this] { return state_->telling == 0; });
}

} // namespace vgpu::worker
