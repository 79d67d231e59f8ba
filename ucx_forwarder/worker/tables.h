// SPDX-License-Identifier: BSD-3-Clause
// The client's ids and what they stand for on the driver. Used by the executing thread only.
#pragma once

#include "ucx_forwarder/protocol/calls.h"
#include "ucx_forwarder/protocol/snapshot.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vgpu::worker {

using protocol::WireId;

/// A context and the vGPU it lives on.
struct ContextState {
    CUcontext handle = nullptr;
    int vgpu = 0; ///< index in WorkerJob::vgpus
    bool primary = false;
};

struct Kernel {
    CUfunction function = nullptr;
    std::vector<protocol::KernelParameter> parameters;
    std::uint32_t parameter_bytes = 0;
};

struct ModuleState {
    CUmodule handle = nullptr;
    std::uint64_t context = 0; ///< id of the context it is in
    std::vector<Kernel> kernels;
};

class Tables {
public:
    /// How many objects of one kind a client may have: a bound on what it can make the worker keep.
    static constexpr std::size_t max_objects = 1U << 20;

    std::unordered_map<std::uint64_t, ContextState> contexts;
    std::unordered_map<std::uint64_t, ModuleState> modules;

    /// The driver's handle for an id. False: there is none.
    template <class H>
    bool find(WireId id, H& handle) const {
        if constexpr (std::is_same_v<H, CUcontext>) {
            const auto found = contexts.find(id.value);
            handle = found == contexts.end() ? nullptr : found->second.handle;
            return found != contexts.end();
        } else if constexpr (std::is_same_v<H, CUmodule>) {
            const auto found = modules.find(id.value);
            handle = found == modules.end() ? nullptr : found->second.handle;
            return found != modules.end();
        } else if constexpr (std::is_same_v<H, CUfunction>) {
            const Kernel* found = kernel(id);
            handle = found == nullptr ? nullptr : found->function;
            return found != nullptr;
        } else {
            if constexpr (std::is_same_v<H, CUstream>) {
                if (id == protocol::null_id || id == protocol::legacy_stream) {
                    handle = id == protocol::null_id ? nullptr : CU_STREAM_LEGACY;
                    return true;
                }
            }
            const auto& map = std::get<Map<H>>(maps_);
            const auto found = map.find(id.value);
            handle = found == map.end() ? nullptr : found->second.handle;
            return found != map.end();
        }
    }

    const Kernel* kernel(WireId id) const {
        const auto found = modules.find(id.value >> 20);
        const std::uint64_t i = id.value & (protocol::max_kernels - 1);
        return found == modules.end() || i >= found->second.kernels.size() ? nullptr
                                                                           : &found->second.kernels[i];
    }

    /// Ids that a client may choose for something new.
    static bool choosable(WireId id) { return id.value >= protocol::first_id && id.value < protocol::end_id; }

    template <class H>
    bool insertable(WireId id) const {
        H ignored;
        if constexpr (std::is_same_v<H, CUcontext>) {
            // A primary context keeps its id when it is retained again.
            return choosable(id) && contexts.size() < max_objects;
        } else if constexpr (std::is_same_v<H, CUmodule>) {
            return choosable(id) && modules.size() < max_objects && !find(id, ignored);
        } else {
            return choosable(id) && std::get<Map<H>>(maps_).size() < max_objects && !find(id, ignored);
        }
    }
    template <class H>
    void insert(WireId id, H handle) {
        std::get<Map<H>>(maps_)[id.value] = {handle, entered};
    }
    template <class H>
    void erase(WireId id) {
        if constexpr (std::is_same_v<H, CUcontext>) {
            contexts.erase(id.value);
        } else if constexpr (std::is_same_v<H, CUmodule>) {
            modules.erase(id.value);
        } else {
            std::get<Map<H>>(maps_).erase(id.value);
        }
    }

    /// The context is gone, and the driver's handles of what it held are dangling: forgets them.
    void erase_context(std::uint64_t context) {
        std::erase_if(modules, [context](const auto& item) { return item.second.context == context; });
        const auto erase = [context](auto& map) {
            std::erase_if(map, [context](const auto& item) { return item.second.context == context; });
        };
        erase(std::get<Map<CUstream>>(maps_));
        erase(std::get<Map<CUevent>>(maps_));
        erase(std::get<Map<CUarray>>(maps_));
        erase(std::get<Map<CUgraphExec>>(maps_));
    }
    /// Calls f(handle) for the streams of a context.
    template <class F>
    void for_each_stream(std::uint64_t context, F&& f) const {
        for (const auto& [id, entry] : std::get<Map<CUstream>>(maps_)) {
            if (entry.context == context) {
                f(entry.handle);
            }
        }
    }
    std::size_t streams() const { return std::get<Map<CUstream>>(maps_).size(); }

    std::uint64_t entered = 0; ///< id of the context that new objects belong to

private:
    template <class H>
    struct Entry {
        H handle = nullptr;
        std::uint64_t context = 0;
    };
    template <class H>
    struct Map : std::unordered_map<std::uint64_t, Entry<H>> {};
    std::tuple<Map<CUstream>, Map<CUevent>, Map<CUarray>, Map<CUmipmappedArray>, Map<CUmemoryPool>,
               Map<CUgraph>, Map<CUgraphExec>>
        maps_;
};

} // namespace vgpu::worker
