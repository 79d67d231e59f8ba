// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/ledger.h"

namespace vgpu::worker {

Ledger::~Ledger() {
    for (const auto& [key, entry] : entries_) {
        give(entry.vgpu, entry.bytes);
    }
}

void Ledger::remember(Key key, std::uint64_t context, int vgpu, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    entries_.insert_or_assign(key, Entry{context, vgpu, bytes});
}

void Ledger::forget(Key key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
        give(found->second.vgpu, found->second.bytes);
        entries_.erase(found);
    }
}

void Ledger::forget_context(std::uint64_t context) {
    const std::lock_guard lock(mutex_);
    for (auto it = entries_.begin(); it != entries_.end();) {
        if (it->second.context == context) {
            give(it->second.vgpu, it->second.bytes);
            it = entries_.erase(it);
        } else {
            ++it;
        }
    }
}

} // namespace vgpu::worker
