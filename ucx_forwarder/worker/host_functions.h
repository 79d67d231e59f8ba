// SPDX-License-Identifier: BSD-3-Clause
// cuLaunchHostFunc across the wire: when a stream comes to a host function, the worker tells the client, and
// the stream goes on when the client says that it has run it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace vgpu::worker {

class HostFunctions {
public:
    /// `due` tells the client; called by a thread of the driver.
    explicit HostFunctions(std::function<void(std::uint64_t)> due);
    ~HostFunctions() { stop(); }

    /// What is given to cuLaunchHostFunc: call with the pointer that add() gave.
    static void trampoline(void* pointer);
    /// A new function of the client's; null: it has too many, or this number is in use.
    void* add(std::uint64_t number);
    /// It will not be called after all.
    void remove(std::uint64_t number);
    /// The client has run it. Unknown numbers are ignored.
    void done(std::uint64_t number);
    /// The client is gone: nobody waits any more.
    void stop();

private:
    static constexpr std::size_t max_functions = 1U << 16;
    struct State;
    /// Keeps the state alive: the driver may call with its address after we are gone.
    struct Function {
        std::shared_ptr<State> state;
        std::uint64_t number = 0;
        bool done = false;
    };
    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        std::function<void(std::uint64_t)> due;
        int telling = 0; ///< threads in `due`
        bool stopped = false;
        std::map<std::uint64_t, std::unique_ptr<Function>> functions;
    };
    const std::shared_ptr<State> state_;
};

} // namespace vgpu::worker
