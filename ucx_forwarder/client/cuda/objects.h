// SPDX-License-Identifier: BSD-3-Clause
// The devices of this process, and what the handles stand for that this library gives to programs.
#pragma once

#include "ucx_forwarder/client/cuda/api.h"

#include "ucx_forwarder/client/cuda/address_map.h"
#include "ucx_forwarder/client/cuda/session.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace vgpu::client {

/// One GPU node of the claim: all that is reached through one session.
struct Node {
    std::unique_ptr<Session> session;
    AddressMap memory; ///< of its devices
};

/// One vGPU.
struct Device {
    int ordinal = 0; ///< the program's number for it
    Node* node = nullptr;
    int index = 0; ///< the session's number for it
    const DeviceSnapshot* snapshot = nullptr;

    std::mutex mutex;            ///< of all below
    CUcontext primary = nullptr; ///< made with the first retain; one handle for the life of the process
    int retains = 0;
    unsigned primary_flags = 0;
    CUmemoryPool default_pool = nullptr;
    CUmemoryPool current_pool = nullptr;

    int attribute(CUdevice_attribute which) const {
        int value = 0;
        return snapshot->attribute(which, value) == CUDA_SUCCESS ? value : 0;
    }
    Session& session() const { return *node->session; }
};

struct Context {
    Device* device = nullptr;
    WireId id;
    CUcontext handle = nullptr;
    bool primary = false;
    std::atomic<bool> active{false};    ///< false: a primary context that nobody retains
    std::atomic<std::uint32_t> life{0}; ///< how often it was made active
    std::atomic<unsigned> flags{0};
    unsigned api_version = 0;
    std::uint64_t number = 0; ///< cuCtxGetId

    Session& session() const { return device->session(); }
    AddressMap& memory() const { return device->node->memory; }
    /// A wire call with this context current.
    template <Call C, class... Arguments>
    CUresult call(Arguments&&... arguments) const {
        return session().call<C>(id, std::forward<Arguments>(arguments)...);
    }
};

struct Stream {
    Context* context = nullptr;
    WireId id;
    unsigned flags = 0;
    int priority = 0;
    std::uint64_t number = 0; ///< cuStreamGetId
};

struct Event {
    Context* context = nullptr;
    WireId id;
    unsigned flags = 0;
};

struct MemoryPool {
    Device* device = nullptr;
    WireId id;
    bool is_default = false;
};

struct Array {
    Context* context = nullptr;
    WireId id;
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
};

/// What a module holds. Functions keep it, so that a name they gave out lives as long as they do.
struct ModuleState {
    ModuleSnapshot snapshot;
    std::unordered_map<std::string_view, std::uint32_t> by_name; ///< place in snapshot.kernels

    std::mutex mutex;                  ///< of what follows
    std::vector<CUfunction> functions; ///< by place; null until somebody asks for it
    /// Addresses and sizes of the global variables that were asked for.
    std::map<std::string, std::pair<CUdeviceptr, std::size_t>, std::less<>> globals;
};

struct Module {
    Context* context = nullptr;
    WireId id;
    CUmodule handle = nullptr;
    std::shared_ptr<ModuleState> state;
    CUlibrary library = nullptr; ///< if it was loaded for one; such a module ends with its library only
};

/// A kernel in a module, that is in one context: what CUfunction means.
struct Function {
    Context* context = nullptr;
    WireId id;
    CUmodule module = nullptr;
    std::shared_ptr<ModuleState> state;
    const KernelSnapshot* info = nullptr; ///< in state
    std::uint32_t parameter_bytes = 0;
    int max_threads = 0;
    int static_shared = 0;
    std::atomic<int> max_dynamic_shared{0}; ///< raised by cuFuncSetAttribute

    int attribute(CUfunction_attribute which) const {
        auto place = std::size_t(which);
        return place < info->attributes.size() ? info->attributes[place].value_or(0) : 0;
    }
};

/// A library: an image that is loaded into each context when it is first needed there.
struct LibraryState {
    CUlibrary handle = nullptr;
    std::vector<std::byte> copy; ///< empty if the program keeps the image (CU_LIBRARY_BINARY_IS_PRESERVED)
    std::span<const std::byte> image;
    std::vector<std::byte> options; ///< of the JIT, encoded

    std::mutex mutex; ///< of what follows
    std::map<CUcontext, CUmodule> modules;
    std::map<std::string, CUkernel, std::less<>> kernels;
};

struct Library {
    std::shared_ptr<LibraryState> state;
};

/// A kernel of a library, in whichever context is current.
struct Kernel {
    std::shared_ptr<LibraryState> library;
    std::string name;
    std::atomic<CUfunction> last{nullptr}; ///< the function that it was resolved to last

    std::mutex mutex; ///< of what follows
    /// Set by cuKernelSetAttribute (device, attribute, value): also for contexts to come on that device.
    std::vector<std::tuple<int, CUfunction_attribute, int>> attributes;
};

} // namespace vgpu::client
