// SPDX-License-Identifier: BSD-3-Clause
// What the session has allocated, so that the lease is charged for it exactly as long as it is held. Any
// thread.
#pragma once

#include "ucx_forwarder/worker/worker.h"

#include <cstdint>
#include <map>
#include <mutex>

namespace vgpu::worker {

class Ledger {
public:
    explicit Ledger(const WorkerJob& job) : job_(job) {}
    /// Gives back everything.
    ~Ledger();

    /// Takes bytes of the vGPU (index in the job); false: over the limit.
    [[nodiscard]] bool take(int vgpu, std::uint64_t bytes) { return job_.memory->take(slot(vgpu), bytes); }
    void give(int vgpu, std::uint64_t bytes) { job_.memory->give(slot(vgpu), bytes); }

    /// What is allocated, by address or array id, once take() and the driver have succeeded.
    struct Key {
        enum class Kind { pointer, array } kind;
        std::uint64_t value;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    void remember(Key key, std::uint64_t context, int vgpu, std::uint64_t bytes);
    /// Freed: gives its bytes back. Unknown keys are ignored.
    void forget(Key key);
    /// The context is gone, and with it what it held.
    void forget_context(std::uint64_t context);

    std::uint64_t limit(int vgpu) const { return job_.memory->limit(slot(vgpu)); }
    std::uint64_t used(int vgpu) const { return job_.memory->used(slot(vgpu)); }

private:
    int slot(int vgpu) const { return job_.vgpus[static_cast<std::size_t>(vgpu)].slot; }

    struct Entry {
        std::uint64_t context;
        int vgpu;
        std::uint64_t bytes;
    };
    const WorkerJob& job_;
    std::mutex mutex_;
    std::map<Key, Entry> entries_;
};

} // namespace vgpu::worker
