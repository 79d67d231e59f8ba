// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/proc_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

// Only their addresses matter here, so they are declared without their parameters, and cuda.h is not
// included.
#define CUDA_PROC(name, version, symbol, per_thread)                                                         \
    extern "C" int symbol();                                                                                 \
    extern "C" int per_thread();
#include "build-aux/cuda_api.inc"

namespace vgpu::client {
namespace {

struct Proc {
    const char* name;
    int version;
    void* symbol;
    void* per_thread;
};

const Proc procs[] = {
#define CUDA_PROC(name, version, symbol, per_thread)                                                         \
    {name, version, reinterpret_cast<void*>(&symbol), reinterpret_cast<void*>(&per_thread)},
#include "build-aux/cuda_api.inc"
};

// Positions in `procs`, by name; of one name in rising order of version. Never freed: programs ask at exit,
// too.
const std::vector<std::uint32_t>& by_name() {
    static const auto& order = *[] {
        auto* positions = new std::vector<std::uint32_t>(std::size(procs));
        for (std::uint32_t i = 0; i < positions->size(); ++i)
            (*positions)[i] = i;
        std::ranges::stable_sort(*positions, [](auto a, auto b) {
            int order = std::strcmp(procs[a].name, procs[b].name);
            return order != 0 ? order < 0 : procs[a].version < procs[b].version;
        });
        return positions;
    }();
    return order;
}

} // namespace

ProcQuery find_proc(const char* name, int version, bool per_thread) {
    const auto& order = by_name();
    auto it = std::ranges::lower_bound(order, 0, std::less{},
                                       [&](auto i) { return std::strcmp(procs[i].name, name); });
    ProcQuery query;
    for (; it != order.end() && std::strcmp(procs[*it].name, name) == 0; ++it) {
        query.known = true;
        if (procs[*it].version <= version)
            query.function = per_thread ? procs[*it].per_thread : procs[*it].symbol;
    }
    return query;
}

} // namespace vgpu::client
