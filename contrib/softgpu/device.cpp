// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/device.h"

#include "contrib/softgpu/driver.h"
#include "contrib/softgpu/error.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace softgpu {
namespace {

SmResources resources_of(int capability) {
    constexpr int k = 1024;
    if (capability < 70)
        return {2048, 32, 65536, 96 * k, 48 * k};
    if (capability < 75)
        return {2048, 32, 65536, 96 * k, 96 * k};
    if (capability < 80)
        return {1024, 16, 65536, 64 * k, 64 * k};
    if (capability == 80 || capability == 87)
        return {2048, 32, 65536, 164 * k, 163 * k};
    if (capability < 90)
        return {1536, 16, 65536, 100 * k, 99 * k};
    if (capability < 120)
        return {2048, 32, 65536, 228 * k, 227 * k};
    return {1536, 24, 65536, 100 * k, 99 * k};
}

std::uint64_t hash(std::string_view text, std::uint64_t start) {
    auto value = start; // FNV-1a
    for (const char c : text) {
        value ^= static_cast<unsigned char>(c);
        value *= 0x100000001b3;
    }
    return value;
}

std::string host_name() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

// The same for all processes on the machine, and after a restart; different on another machine, and for the
// devices of another SOFTGPU_DIR, which share nothing with these.
CUuuid uuid_of(int index, const Config& config) {
    const auto text = "softgpu/" + host_name() + "/" +
                      (config.directory == Config().directory ? std::string() : config.directory) + "/" +
                      std::to_string(index);
    const std::array halves = {hash(text, 0xcbf29ce484222325), hash(text, 0x84222325cbf29ce4)};
    CUuuid uuid{};
    std::memcpy(uuid.bytes, halves.data(), sizeof uuid.bytes);
    uuid.bytes[6] = static_cast<char>((uuid.bytes[6] & 0x0f) | 0x80); // version 8: of the maker's own kind
    uuid.bytes[8] = static_cast<char>((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

std::string file_name(const CUuuid& uuid) {
    std::string name = "device-";
    for (const char byte : uuid.bytes) {
        std::array<char, 3> hex{};
        std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned char>(byte));
        name += hex.data();
    }
    return name;
}

} // namespace

Device::Device(int index, const Config& config)
    : index_(index), config_(config), resources_(resources_of(capability())), uuid_(uuid_of(index, config)),
      shared_(config.directory, file_name(uuid_), config.memory),
      primary_(std::make_shared<Context>(*this, 0, true)) {}

Device::~Device() = default;

std::string Device::pci_bus_id() const {
    std::array<char, 16> text{};
    std::snprintf(text.data(), text.size(), "0000:%02x:00.0", static_cast<unsigned>(index_ + 1) & 0xff);
    return text.data();
}

ptx::Engine& Device::engine() {
    std::call_once(engine_made_, [this] {
        engine_ = std::make_unique<ptx::Engine>(Driver::get().memory().space(),
                                                static_cast<unsigned>(config_.threads));
    });
    return *engine_;
}

void Device::retain_primary() {
    const std::lock_guard guard(mutex_);
    ++primary_users_;
}

void Device::release_primary() {
    const std::lock_guard guard(mutex_);
    require(primary_users_ > 0, CUDA_ERROR_INVALID_CONTEXT);
    if (--primary_users_ == 0)
        primary_->clear();
}

void Device::reset_primary() {
    const std::lock_guard guard(mutex_);
    primary_->clear();
}

bool Device::primary_active() {
    const std::lock_guard guard(mutex_);
    return primary_users_ > 0;
}

std::shared_ptr<MemoryPool> Device::current_pool() {
    const std::lock_guard guard(mutex_);
    return current_pool_;
}

void Device::set_current_pool(std::shared_ptr<MemoryPool> pool) {
    const std::lock_guard guard(mutex_);
    current_pool_ = std::move(pool);
}

int Device::attribute(int attribute) const {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        return 48 * 1024;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        return 64 * 1024;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        return resources_.registers;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return 1000000; // kHz: %clock64 and %globaltimer then advance alike
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
        return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
        return 32;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        return config_.sms;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return index_ + 1;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return 256;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        return 4 << 20;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        return resources_.threads;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        return resources_.blocks;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        return resources_.shared_bytes;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return resources_.shared_bytes_optin;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        return capability() >= 80 ? 1024 : 0;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        return 2;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return config_.capability_major;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return config_.capability_minor;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        return 2;
    case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
        return index_;
    case 134: // CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID
        return -1;
    default:
        // What is not there: textures, surfaces, ECC, interoperation, clusters, handles of other systems, ...
        require(attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX);
        return 0;
    }
}

} // namespace softgpu
