// SPDX-License-Identifier: BSD-3-Clause
// The objects behind CUDA handles of one kind. A handle is not an address: it names a kind, a slot and a
// generation, so that any value a program passes, also a destroyed or invented one, can be judged without
// touching foreign memory.
//
// Threads: find() takes no lock. Slots are reused but never freed, so an object stays readable memory even
// when another thread destroys it at the same time (which is a fault of the program, but must not be one of
// ours).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace vgpu::client {

enum class Kind : std::uint8_t {
    context = 1,
    stream,
    event,
    module,
    function,
    library,
    kernel,
    pool,
    array,
    link
};

/// Bits: 0-3 zero, 4-27 slot, 28-51 generation, 52-57 kind. Never 0, 1 or 2, which mean default streams.
constexpr std::uint64_t handle_of(Kind kind, std::uint32_t slot, std::uint32_t generation) {
    return std::uint64_t(slot) << 4 | std::uint64_t(generation & 0xffffff) << 28 | std::uint64_t(kind) << 52;
}
constexpr Kind kind_of(std::uint64_t handle) {
    return Kind(handle >> 52);
}

template <class Object>
class HandleTable {
public:
    explicit HandleTable(Kind kind) : kind_(kind) {}

    struct Made {
        std::uint64_t handle = 0;
        Object* object = nullptr; ///< null: all slots are in use
    };

    /// A fresh object, found by nobody else until publish().
    Made make() {
        std::lock_guard lock(mutex_);
        std::uint32_t slot;
        if (!free_.empty()) {
            slot = free_.back();
            free_.pop_back();
        } else {
            if (used_ == max_slots)
                return {};
            slot = used_++;
            auto& chunk = chunks_[slot / chunk_slots];
            if (!chunk.load(std::memory_order_relaxed)) {
                owned_.push_back(std::make_unique<Chunk>());
                chunk.store(owned_.back().get(), std::memory_order_release);
            }
        }
        Slot& s = *slot_at(slot);
        std::destroy_at(&s.object);
        std::construct_at(&s.object);
        return {handle_of(kind_, slot, ++s.generation), &s.object};
    }
    void publish(std::uint64_t handle) {
        slot_at(index(handle))->live.store(handle, std::memory_order_release);
    }

    /// nullptr: not a live handle of this kind.
    Object* find(std::uint64_t handle) const {
        Slot* s = slot_of(handle);
        return s && s->live.load(std::memory_order_acquire) == handle ? &s->object : nullptr;
    }
    template <class H>
    Object* find(H* handle) const {
        return find(std::bit_cast<std::uint64_t>(handle));
    }
    /// A handle of this kind that was once made, live or not.
    bool was_made(std::uint64_t handle) const {
        Slot* s = slot_of(handle);
        return s && handle == handle_of(kind_, index(handle), std::uint32_t(handle >> 28) & 0xffffff);
    }

    /// Makes the handle invalid. The object stays what it is until recycle(). False: it was not live (another
    /// thread was faster).
    bool close(std::uint64_t handle) {
        Slot* s = slot_of(handle);
        std::uint64_t expected = handle;
        return s && s->live.compare_exchange_strong(expected, 0);
    }
    /// After close(), or after a make() that was not published: the slot may be used again.
    void recycle(std::uint64_t handle) {
        std::lock_guard lock(mutex_);
        free_.push_back(index(handle));
    }
    bool remove(std::uint64_t handle) {
        if (!close(handle))
            return false;
        recycle(handle);
        return true;
    }
    template <class H>
    bool remove(H* handle) {
        return remove(std::bit_cast<std::uint64_t>(handle));
    }

    /// Calls f(handle, object) for every live object; f may remove it.
    template <class F>
    void for_each(F&& f) {
        std::uint32_t used;
        {
            std::lock_guard lock(mutex_);
            used = used_;
        }
        for (std::uint32_t i = 0; i < used; ++i) {
            Slot& s = *slot_at(i);
            if (std::uint64_t handle = s.live.load(std::memory_order_acquire))
                f(handle, s.object);
        }
    }

private:
    static constexpr std::uint32_t chunk_slots = 256;
    static constexpr std::uint32_t max_slots = 1 << 20;
    struct Slot {
        std::atomic<std::uint64_t> live{0}; ///< the handle while the object is valid
        std::uint32_t generation = 0;
        Object object{};
    };
    using Chunk = std::array<Slot, chunk_slots>;

    static std::uint32_t index(std::uint64_t handle) { return std::uint32_t(handle >> 4) & 0xffffff; }
    Slot* slot_at(std::uint32_t slot) const {
        return &(*chunks_[slot / chunk_slots].load(std::memory_order_acquire))[slot % chunk_slots];
    }
    Slot* slot_of(std::uint64_t handle) const {
        std::uint32_t slot = index(handle);
        if (kind_of(handle) != kind_ || slot >= max_slots)
            return nullptr;
        Chunk* chunk = chunks_[slot / chunk_slots].load(std::memory_order_acquire);
        return chunk ? &(*chunk)[slot % chunk_slots] : nullptr;
    }

    const Kind kind_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Chunk>> owned_;
    std::array<std::atomic<Chunk*>, max_slots / chunk_slots> chunks_{};
    std::vector<std::uint32_t> free_;
    std::uint32_t used_ = 0;
};

} // namespace vgpu::client
