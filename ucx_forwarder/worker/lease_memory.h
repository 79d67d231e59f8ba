// SPDX-License-Identifier: BSD-3-Clause
// How much GPU memory a lease's sessions hold together: a page shared by vgpud and the workers of the lease.
// vgpud makes it and takes back what a dead worker held; workers ask it before every allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace vgpu::worker {

class LeaseMemory {
public:
    static constexpr int max_vgpus = 64;
    static constexpr int max_sessions = 1024;

    /// vgpud: a new page (memfd) with these limits in bytes, one per vGPU.
    static std::unique_ptr<LeaseMemory> create(const std::vector<std::uint64_t>& limits);
    /// Worker: the page behind an inherited descriptor; `slot` is this session's line in it.
    static std::unique_ptr<LeaseMemory> attach(int fd, int slot);
    virtual ~LeaseMemory() = default;

    virtual int fd() const = 0;
    /// Takes bytes of the vGPU for this session; false: over the lease's limit, nothing taken. Any thread.
    [[nodiscard]] virtual bool take(int vgpu, std::uint64_t bytes) = 0;
    virtual void give(int vgpu, std::uint64_t bytes) = 0;
    virtual std::uint64_t limit(int vgpu) const = 0;
    virtual std::uint64_t used(int vgpu) const = 0;           ///< by all sessions of the lease
    virtual std::uint64_t used(int vgpu, int slot) const = 0; ///< by one session
    /// vgpud: another limit. What is held beyond a lower one stays, nothing more is given.
    virtual void set_limit(int vgpu, std::uint64_t bytes) = 0;
    /// vgpud: a free slot for a new session (-1: none), and the return of all that a dead session held.
    virtual int open_slot() = 0;
    virtual void close_slot(int slot) = 0;
};

} // namespace vgpu::worker
