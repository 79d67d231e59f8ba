// SPDX-License-Identifier: BSD-3-Clause
// A warp at run time. Lanes that took different ways are fragments: each has its lanes, its place in the code
// and its call frames. The fragment that lies deepest in calls, then lowest in the code, runs first, so that
// fragments meet again at joins; one that loops for long is put behind the others, so that lanes which wait
// for each other progress.
#pragma once

#include "contrib/softgpu/ptx/program.h"

#include <array>
#include <vector>

namespace softgpu::ptx {

struct Block;

// Registers of one function call, for all lanes of the warp that are in it. Lanes use only their own columns.
struct Frame {
    Frame* parent = nullptr;
    const Function* function = nullptr;
    const CallSite* site = nullptr; // how it was called
    const Instr* resume = nullptr;  // where the caller goes on
    std::uint32_t references = 0;   // fragments and child frames
    std::uint32_t depth = 0;
    std::uint32_t local_base = 0; // in each lane's local memory
    std::uint32_t capacity = 0;   // bytes of registers
    std::byte* registers = nullptr;
};

// Recycles frames of a warp.
class FramePool {
public:
    FramePool() = default;
    ~FramePool();
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;
    Frame* take(const Function& function, Frame* parent);
    void release(Frame* frame); // drops one reference

private:
    std::vector<Frame*> free_;
};

enum class FragmentState : std::uint8_t { ready, barrier, collective };

struct Fragment {
    std::uint32_t mask = 0;
    FragmentState state = FragmentState::ready;
    std::uint8_t barrier = 0;
    std::uint32_t members = 0; // of the collective it waits for
    const Instr* pc = nullptr;
    Frame* frame = nullptr;
    std::uint64_t last_run = 0;
};

struct Warp {
    // Set per running fragment; what handlers see.
    std::array<std::byte*, 4> base{}; // frame, constants, specials
    std::uint32_t mask = 0;
    std::uint32_t csr = 0; // MXCSR as set now
    const Instr* stop_at = nullptr;
    std::int32_t budget = 0;   // until others get a turn; backward branches, calls and spinning use it up
    bool spun = false;         // something that looks like waiting for others was done in this turn
    const Instr* pc = nullptr; // where a fragment that leaves goes on
    Frame* frame = nullptr;
    Block* block = nullptr;
    alignas(64) std::array<std::int32_t, kLanes> lanes{}; // mask, as -1 or 0 a lane

    // Memory
    std::byte* shared = nullptr;
    std::uint64_t shared_size = 0;
    std::byte* local = nullptr; // lane l's begins at l * local_stride
    std::uint64_t local_stride = 0;
    const std::byte* parameters = nullptr;
    std::uint64_t parameter_size = 0;
    std::uint64_t space_base = 0, space_size = 0;
    const std::uint8_t* pages = nullptr;

    // The rest is the scheduler's.
    std::uint32_t index = 0; // in the block
    std::uint32_t live = 0;  // lanes that have not exited
    std::uint32_t carry = 0; // condition code, a bit a lane
    std::vector<Fragment> fragments;
    std::size_t current = 0;
    bool force_oldest = false;
    bool fragment_gone = false;
    std::uint64_t turn = 0;
    FramePool frames;
    std::vector<std::byte> local_store;
    std::vector<std::byte> special_store;

    static inline const Instr* const kLeave = reinterpret_cast<const Instr*>(~std::uintptr_t{63});

    void set_mask(std::uint32_t m) {
        mask = m;
        for (unsigned l = 0; l < kLanes; ++l)
            lanes[l] = -static_cast<std::int32_t>((m >> l) & 1);
    }

    // Runs until the budget is used up, every fragment waits or has ended, or the block has a fault.
    void run();
    [[nodiscard]] bool done() const { return fragments.empty(); }
    [[nodiscard]] bool ready() const;

    // For handlers. Splits the running fragment: its lanes `taken` go on at `target`, the others at `next`.
    const Instr* diverge(std::uint32_t taken, const Instr* target, const Instr* next);
    // Lanes of the running fragment become one of their own, which goes on at `at`.
    void split_off(std::uint32_t lanes_off, const Instr* at);
    // The running fragment waits for `members`, and then executes `at` again.
    const Instr* wait_collective(std::uint32_t members, const Instr* at);
    const Instr* wait_barrier(unsigned barrier, const Instr* at);
    // Ends the running fragment's lanes.
    const Instr* exit_lanes();
    const Instr* fault(Status status, std::string message, std::uint64_t address = 0);
    const Instr* yield(const Instr* next);
    const Instr* enter(const Function& function, const CallSite& site, const Instr* resume);
    const Instr* leave_function();
    // Makes `bytes` of local memory at `base` usable; false if that is over the limit.
    bool reserve_local(std::uint64_t end);
    void recompute_stop();

private:
    std::size_t pick();
    void load(std::size_t index);
    void merge();
    void resolve_collectives();
    void gather_collective(std::uint32_t members, const Instr* op);
};

} // namespace softgpu::ptx
