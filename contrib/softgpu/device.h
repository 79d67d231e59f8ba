// SPDX-License-Identifier: BSD-3-Clause
// A device: what it says about itself, its part of the state that processes share, its engine.
#pragma once

#include "contrib/softgpu/config.h"
#include "contrib/softgpu/cuda_api.h"
#include "contrib/softgpu/ptx/engine.h"
#include "contrib/softgpu/shared_state.h"

#include <memory>
#include <mutex>
#include <string>

namespace softgpu {

class Context;
class MemoryPool;

// What a streaming multiprocessor of a compute capability holds.
struct SmResources {
    int threads;
    int blocks;
    int registers;
    int shared_bytes;       // of all blocks on it together
    int shared_bytes_optin; // of one block that asked for more than the usual 48 KiB
};

class Device {
public:
    Device(int index, const Config& config);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    [[nodiscard]] int index() const { return index_; }
    [[nodiscard]] const CUuuid& uuid() const { return uuid_; }
    [[nodiscard]] const std::string& name() const { return config_.name; }
    [[nodiscard]] const Config& config() const { return config_; }
    [[nodiscard]] SharedState& shared() { return shared_; }
    [[nodiscard]] int capability() const { return config_.capability_major * 10 + config_.capability_minor; }
    [[nodiscard]] const SmResources& resources() const { return resources_; }
    // Throws Error (INVALID_VALUE) if there is no such attribute.
    [[nodiscard]] int attribute(int attribute) const;
    // 0000:01:00.0 is the first.
    [[nodiscard]] std::string pci_bus_id() const;
    // Made at the first launch.
    [[nodiscard]] ptx::Engine& engine();

    // The primary context: one object for the life of the process, in use while someone retains it.
    [[nodiscard]] const std::shared_ptr<Context>& primary() const { return primary_; }
    void retain_primary();
    void release_primary(); // throws Error (INVALID_CONTEXT) if no one retains it
    void reset_primary();
    [[nodiscard]] bool primary_active();

    std::shared_ptr<MemoryPool> default_pool; // set at cuInit
    [[nodiscard]] std::shared_ptr<MemoryPool> current_pool();
    void set_current_pool(std::shared_ptr<MemoryPool> pool);

private:
    const int index_;
    const Config config_;
    const SmResources resources_;
    const CUuuid uuid_;
    SharedState shared_;
    std::shared_ptr<Context> primary_;
    std::mutex mutex_;
    int primary_users_ = 0;
    std::shared_ptr<MemoryPool> current_pool_;
    std::once_flag engine_made_;
    std::unique_ptr<ptx::Engine> engine_;
};

} // namespace softgpu
