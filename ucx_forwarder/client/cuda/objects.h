// SPDX-License-Identifier: BSD-3-Clause
// The devices of this process, and what the handles stand for that this library gives to programs.
#pragma once

#include "ucx_forwarder/client/cuda/api.h"

#include "ucx_forwarder/client/cuda/address_map.h"
#include "ucx_forwarder/client/cuda/handle.h"
#include "ucx_forwarder/client/cuda/session.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vgpu::client {

/// One GPU node of the claim: all that is reached through one session.
struct Node {
    Session* session = nullptr;
    AddressMap memory; ///< of its devices
};

class DeviceContext;

/// One vGPU.
struct Device {
    int ordinal = 0; ///< the program's number for it
    Node* node = nullptr;
    int index = 0;   ///< the session's number for it
    const DeviceSnapshot* snapshot = nullptr;

    std::mutex mutex;            ///< of all below
    CUcontext primary = nullptr; ///< made with the first retain; one handle for the life of the process
    int retains = 0;
    unsigned primary_flags = 0;
    /// Primary contexts that were released or reset: threads may still look at them.
    std::vector<std::unique_ptr<Object>> retired;
    CUmemoryPool default_pool = nullptr;
    CUmemoryPool current_pool = nullptr;

    int attribute(CUdevice_attribute which) const {
        int value = 0;
        return snapshot->attribute(which, value) == CUDA_SUCCESS ? value : 0;
    }
    Session& session() const { return *node->session; }
};

class DeviceContext : public Context {
public:
    DeviceContext(Device& owner_, WireId id_)
        : Context(owner_.session(), id_, owner_.index), owner(owner_), memory(owner_.node->memory) {}

    Device& owner;
    AddressMap& memory; ///< of all devices of the node
    CUcontext handle = nullptr;
    bool primary = false;
    std::atomic<bool> active{true}; ///< false: a primary context that nobody retains
    std::atomic<unsigned> flags{0};
    unsigned api_version = 0;
    std::uint64_t number = 0;       ///< cuCtxGetId
};

/// A handle's object that lies in a context.
struct ContextObject : Object {
    ContextObject(DeviceContext& context_, WireId id_) : Object(context_.session, id_, &context_) {}
    DeviceContext& in() const { return *static_cast<DeviceContext*>(context); }
};

struct Stream : ContextObject {
    static constexpr Kind kind_value = Kind::stream;
    using ContextObject::ContextObject;
    unsigned flags = 0;
    int priority = 0;
    std::uint64_t number = 0; ///< cuStreamGetId
};

struct Event : ContextObject {
    static constexpr Kind kind_value = Kind::event;
    using ContextObject::ContextObject;
    unsigned flags = 0;
};

struct MemoryPool : Object {
    static constexpr Kind kind_value = Kind::memory_pool;
    MemoryPool(Device& device_, WireId id_) : Object(&device_.session(), id_, nullptr), device(device_) {}
    Device& device;
    bool is_default = false;
};

struct Array : ContextObject {
    static constexpr Kind kind_value = Kind::array;
    using ContextObject::ContextObject;
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
};

/// What a module holds. Functions keep it, so that a name they gave out lives as long as they do.
struct ModuleState {
    ModuleSnapshot snapshot;
    std::unordered_map<std::string_view, std::uint32_t> by_name; ///< place in snapshot.kernels

    std::mutex mutex;                  ///< of what follows
    std::vector<CUfunction> functions; ///< by place; null until somebody asks for it
    std::vector<std::uint64_t> globals;///< addresses that cuModuleGetGlobal told
};

struct Module : ContextObject {
    static constexpr Kind kind_value = Kind::module;
    using ContextObject::ContextObject;
    CUmodule handle = nullptr;
    std::shared_ptr<ModuleState> state;
    CUlibrary library = nullptr; ///< if it was loaded for one; such a module ends with its library only
};

/// A kernel in a module, that is in one context: what CUfunction means.
struct Function : ContextObject {
    static constexpr Kind kind_value = Kind::function;
    using ContextObject::ContextObject;
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
    std::vector<std::byte> copy;      ///< empty if the program keeps the image (CU_LIBRARY_BINARY_IS_PRESERVED)
    std::span<const std::byte> image;
    std::vector<CUjit_option> options;
    std::vector<void*> values;

    std::mutex mutex;                 ///< of what follows
    std::map<CUcontext, CUmodule> modules;
    std::map<std::string, CUkernel, std::less<>> kernels;
};

struct Library : Object {
    static constexpr Kind kind_value = Kind::library;
    Library() : Object(nullptr, protocol::null_id, nullptr) {}
    std::shared_ptr<LibraryState> state;
};

/// A kernel of a library, in whichever context is current.
struct Kernel : Object {
    static constexpr Kind kind_value = Kind::kernel;
    Kernel() : Object(nullptr, protocol::null_id, nullptr) {}
    std::shared_ptr<LibraryState> library;
    std::string name;
    std::atomic<CUfunction> last{nullptr}; ///< the function that it was resolved to last

    std::mutex mutex;                      ///< of what follows
    /// Set by cuKernelSetAttribute: also for the contexts to come on that device.
    std::vector<std::tuple<int, CUfunction_attribute, int>> attributes;
};

} // namespace vgpu::client
