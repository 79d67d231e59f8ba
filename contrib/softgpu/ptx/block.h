// SPDX-License-Identifier: BSD-3-Clause
// A thread block at run time, and the launch it belongs to.
#pragma once

#include "contrib/softgpu/ptx/warp.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace softgpu::ptx {

inline constexpr unsigned kBarriers = 17; // the last one is barrier.cluster's: a cluster is one block
inline constexpr unsigned kMostWarps = 32;

struct Launch {
    const Kernel* kernel = nullptr;
    Dim3 grid, block;
    std::uint32_t static_shared = 0, dynamic_shared = 0, dynamic_begin = 0;
    std::uint32_t reserved_begin = 0, shared_bytes = 0; // shared_bytes: all of it
    std::vector<std::byte> parameters;
    const LaunchOptions* options = nullptr;
    AddressSpace space;
    std::uint64_t blocks = 0;
    std::uint64_t id = 0;
    std::uint64_t local_limit = 0; // bytes a lane
    std::uint32_t depth_limit = 0; // calls

    std::atomic<std::uint64_t> next_block{0};
    std::atomic<bool> ended{false}; // by a fault or from outside
    std::mutex mutex;               // result, printing
    LaunchResult result;

    [[nodiscard]] bool stopping() const {
        return ended.load(std::memory_order_relaxed) ||
               (options->stop != nullptr && options->stop->load(std::memory_order_relaxed));
    }
    void fail(Status status, std::string message, std::uint64_t address);
    void print(std::string_view text, bool error);
};

struct Barrier {
    std::array<std::uint32_t, kMostWarps> arrived{}; // lanes, a warp each
    std::uint32_t expected = 0;                      // threads; 0: all of the block
    bool in_use = false;
    std::uint32_t count = 0; // bar.red: threads with a true predicate
    bool all = true, any = false;
};

enum class BlockState : std::uint8_t { running, spinning, done };

struct Block {
    Launch* launch = nullptr;
    Dim3 id;
    std::uint32_t threads = 0;
    std::vector<std::unique_ptr<Warp>> warps; // the first `warp_count` are in use
    std::uint32_t warp_count = 0;
    std::uint32_t first_warp = 0; // whose turn is next
    std::vector<std::byte> shared_store;
    std::byte* shared = nullptr;
    std::array<Barrier, kBarriers> barriers;

    // Prepares the block with this linear index; memory of an earlier block is used again.
    void start(Launch& launch, std::uint64_t index, unsigned cpu);
    // Gives each warp a turn. Faults end the launch.
    BlockState round();
    // The running fragment of `warp` arrives; the barrier may be complete then.
    void arrive(Warp& warp, unsigned barrier, std::uint32_t expected);
    void check_barrier(unsigned barrier);
    void check_barriers(); // after lanes have exited

private:
    void start_warp(Warp& warp, std::uint32_t index, unsigned cpu);
};

// Handlers that need no particular instruction set.
Handler select_control(const Op& op, Instr& in);
const Instr* guarded(Warp& w, const Instr* in);   // runs Instr::body under the guard
const Instr* branch(Warp& w, const Instr* in);    // bra
const Instr* branch_if(Warp& w, const Instr* in); // @p bra
const Instr* branch_table(Warp& w, const Instr* in);
const Instr* call(Warp& w, const Instr* in);
const Instr* call_indirect(Warp& w, const Instr* in);
const Instr* builtin(Warp& w, const Function& function, const CallSite& site, const Instr* next);
const Instr* return_from(Warp& w, const Instr* in);
const Instr* not_supported(Warp& w, const Instr* in); // Instr::message
const Instr* read_clock(Warp& w, const Instr* in);    // imm: Clock; flags kAddress32: 32-bit destination
void finish_barrier_red(Fragment& fragment, const Instr& in, const Barrier& barrier);
[[nodiscard]] bool is_barrier_red(const Instr& in);
const Instr* space_test(Warp& w, const Instr* in); // isspacep: imm window begin, aux: which

// What a memory access of the engine itself (printf, assert) may touch: a host pointer, or nullptr.
const std::byte* readable(const Warp& w, std::uint64_t generic, unsigned lane, std::uint64_t size);

// printf: formats `format` with the packed arguments at `arguments`, both generic addresses of a lane.
[[nodiscard]] std::string format_printf(const Warp& w, unsigned lane, std::uint64_t format,
                                        std::uint64_t arguments, int& written);
[[nodiscard]] std::string device_string(const Warp& w, unsigned lane, std::uint64_t address);

} // namespace softgpu::ptx
