// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/protocol/snapshot.h"

#include <algorithm>

namespace vgpu::protocol {

namespace {

/// Far above what any driver allows; below it, sums do not overflow.
constexpr std::uint32_t max_parameter_bytes = 1U << 20;

/// An Encoder over a vector that grows.
class Writer {
public:
    template <class T>
    void put(const T& value) {
        put_bytes(&value, sizeof value);
    }
    void put_bytes(const void* data, std::size_t size) {
        const auto* bytes = static_cast<const std::byte*>(data);
        out_.insert(out_.end(), bytes, bytes + size);
    }
    void put_text(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        put_bytes(text.data(), text.size());
    }
    void put_values(const std::vector<std::optional<int>>& values) {
        put(static_cast<std::uint32_t>(values.size()));
        for (const auto& value : values) {
            put(static_cast<std::uint8_t>(value.has_value()));
            put(static_cast<std::int32_t>(value.value_or(0)));
        }
    }
    std::vector<std::byte> out() && { return std::move(out_); }

private:
    std::vector<std::byte> out_;
};

/// A count of items that take at least `least` bytes each: a forged count cannot make us allocate more than
/// was sent.
std::uint32_t take_count(Decoder& in, std::size_t least) {
    const auto count = in.take<std::uint32_t>();
    if (count > in.rest().size() / least) {
        (void)in.take_bytes(in.rest().size() + 1);
        return 0;
    }
    return count;
}

std::vector<std::optional<int>> take_values(Decoder& in) {
    std::vector<std::optional<int>> values(take_count(in, 5));
    for (auto& value : values) {
        const bool known = in.take<std::uint8_t>() != 0;
        const auto number = in.take<std::int32_t>();
        if (known) {
            value = number;
        }
    }
    return values;
}

} // namespace

CUresult DeviceSnapshot::attribute(CUdevice_attribute which, int& value) const {
    const auto index = static_cast<std::size_t>(which);
    if (index >= attributes.size() || !attributes[index]) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    value = *attributes[index];
    return CUDA_SUCCESS;
}

std::uint32_t KernelSnapshot::parameter_bytes() const {
    std::uint32_t bytes = 0;
    for (const auto& parameter : parameters) {
        bytes = std::max(bytes, parameter.offset + parameter.size);
    }
    return bytes;
}

std::vector<std::byte> encode(const std::vector<DeviceSnapshot>& devices) {
    Writer out;
    out.put(static_cast<std::uint32_t>(devices.size()));
    for (const auto& device : devices) {
        out.put_text(device.name);
        out.put(device.uuid);
        out.put_text(device.pci_bus_id);
        out.put(device.luid);
        out.put(device.luid_node_mask);
        out.put(device.total_memory);
        out.put(device.driver_version);
        out.put_values(device.attributes);
    }
    return std::move(out).out();
}

bool decode(Bytes body, std::vector<DeviceSnapshot>& devices) {
    Decoder in(body);
    devices.assign(take_count(in, 52), {});
    for (auto& device : devices) {
        device.name = in.take_text();
        device.uuid = in.take<CUuuid>();
        device.pci_bus_id = in.take_text();
        device.luid = in.take<std::array<char, 8>>();
        device.luid_node_mask = in.take<std::uint32_t>();
        device.total_memory = in.take<std::uint64_t>();
        device.driver_version = in.take<int>();
        device.attributes = take_values(in);
    }
    return in.complete();
}

std::vector<std::byte> encode(const ModuleSnapshot& module) {
    Writer out;
    out.put(static_cast<std::uint32_t>(module.kernels.size()));
    for (const auto& kernel : module.kernels) {
        out.put_text(kernel.name);
        out.put_values(kernel.attributes);
        out.put(static_cast<std::uint32_t>(kernel.parameters.size()));
        out.put_bytes(kernel.parameters.data(), kernel.parameters.size() * sizeof(KernelParameter));
    }
    out.put_text(module.info_log);
    out.put_text(module.error_log);
    out.put(module.wall_time_ms);
    return std::move(out).out();
}

bool decode(Bytes body, ModuleSnapshot& module) {
    Decoder in(body);
    module.kernels.assign(take_count(in, 12), {});
    for (auto& kernel : module.kernels) {
        kernel.name = in.take_text();
        kernel.attributes = take_values(in);
        kernel.parameters.resize(take_count(in, sizeof(KernelParameter)));
        for (auto& parameter : kernel.parameters) {
            parameter = in.take<KernelParameter>();
            if (parameter.offset > max_parameter_bytes || parameter.size > max_parameter_bytes) {
                return false;
            }
        }
    }
    module.info_log = in.take_text();
    module.error_log = in.take_text();
    module.wall_time_ms = in.take<float>();
    return in.complete();
}

} // namespace vgpu::protocol
