// SPDX-License-Identifier: BSD-3-Clause
// Memory pools: stream-ordered allocation. A pool here keeps no memory back; it counts what was taken from
// it.
#pragma once

#include "contrib/softgpu/cuda_api.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace softgpu {

class Device;

class MemoryPool {
public:
    explicit MemoryPool(Device& device) : device_(device) {}
    [[nodiscard]] Device& device() const { return device_; }
    [[nodiscard]] CUmemoryPool handle() { return reinterpret_cast<CUmemoryPool>(this); }

    void took(std::uint64_t bytes);
    void gave(std::uint64_t bytes);
    // Throw Error (INVALID_VALUE) for what a pool has not got.
    [[nodiscard]] std::uint64_t get(CUmemPool_attribute attribute) const;
    void set(CUmemPool_attribute attribute, std::uint64_t value);

private:
    Device& device_;
    mutable std::mutex mutex_;
    std::uint64_t used_ = 0;
    std::uint64_t most_used_ = 0;
    std::map<int, std::uint64_t> settings_;
};

// At cuInit.
void add_default_pool(Device& device);

} // namespace softgpu
