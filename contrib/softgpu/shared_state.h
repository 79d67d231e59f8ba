// SPDX-License-Identifier: BSD-3-Clause
// What all processes on the machine share about one device: how much of its memory each holds, and whose
// kernel runs.
//
// One file per device in SOFTGPU_DIR: a table of slots, one for each process, with the bytes it holds. A
// process keeps an open file description lock (fcntl(2)) on the byte that stands for its slot. The kernel
// drops that lock however the process ends, and a slot without a lock counts as empty: nothing has to clean
// up after a kill -9. No process is ever identified by its number.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace softgpu {

class SharedState {
public:
    // Opens or creates directory/name, for all users of the machine. Throws std::system_error, or
    // std::runtime_error where too many processes have it open.
    SharedState(const std::string& directory, const std::string& name, std::uint64_t total);
    ~SharedState();
    SharedState(const SharedState&) = delete;
    SharedState& operator=(const SharedState&) = delete;

    // Takes bytes for this process; false where the device has not that much left.
    [[nodiscard]] bool take(std::uint64_t bytes);
    void give(std::uint64_t bytes);
    [[nodiscard]] std::uint64_t free();
    [[nodiscard]] std::uint64_t total() const { return total_; }

    // The device's time: held by one kernel of one process at a time, handed on in about the order of asking.
    void begin_kernel();
    void end_kernel();

    // In the child of a fork: lets go of the parent's file without touching its locks.
    void abandon() noexcept;

private:
    [[nodiscard]] std::uint64_t used_by_others();
    void write_slot(std::uint64_t bytes);

    int file_ = -1;
    std::uint64_t total_;
    std::mutex mutex_; // our threads share one file description, hence its locks do not keep them apart
    unsigned slot_ = 0;
    std::uint64_t held_ = 0;
    std::mutex kernel_queue_;
    std::mutex kernel_;
};

// Holds the device's time while it lives.
class KernelTime {
public:
    explicit KernelTime(SharedState& state) : state_(state) { state_.begin_kernel(); }
    ~KernelTime() { state_.end_kernel(); }
    KernelTime(const KernelTime&) = delete;
    KernelTime& operator=(const KernelTime&) = delete;

private:
    SharedState& state_;
};

} // namespace softgpu
