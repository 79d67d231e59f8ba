// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/node/metrics.h"

#include <map>

namespace vgpu::node {
namespace {

void header(std::string& text, const char* name, const char* type, const char* help) {
    text += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

std::string number(std::uint64_t value) {
    return " " + std::to_string(value) + "\n";
}

} // namespace

std::string metrics(const control::NodeStatus& status) {
    std::string text;
    std::map<int, std::uint64_t> shares, memory;
    for (const auto& lease : status.leases)
        for (const auto& vgpu : lease.vgpus)
            if (vgpu.node == status.node) {
                shares[vgpu.gpu] += vgpu.shares;
                memory[vgpu.gpu] += vgpu.memory_mib << 20;
            }
    auto label = [](const control::Gpu& gpu) { return "{gpu=\"" + std::to_string(gpu.index) + "\"}"; };
    header(text, "vgpu_gpu_memory_bytes", "gauge", "Memory of a GPU.");
    for (const auto& gpu : status.gpus)
        text += "vgpu_gpu_memory_bytes" + label(gpu) + number(gpu.memory_mib << 20);
    header(text, "vgpu_gpu_leased_shares", "gauge", "Shares of a GPU that jobs hold.");
    for (const auto& gpu : status.gpus)
        text += "vgpu_gpu_leased_shares" + label(gpu) + number(shares[gpu.index]);
    header(text, "vgpu_gpu_leased_memory_bytes", "gauge", "Memory of a GPU that jobs hold.");
    for (const auto& gpu : status.gpus)
        text += "vgpu_gpu_leased_memory_bytes" + label(gpu) + number(memory[gpu.index]);
    header(text, "vgpu_leases", "gauge", "Leases on this node.");
    text += "vgpu_leases" + number(status.leases.size());
    header(text, "vgpu_sessions", "gauge", "Client processes at work.");
    text += "vgpu_sessions" + number(status.sessions.size());
    std::uint64_t used = 0;
    for (const auto& session : status.sessions)
        for (const auto bytes : session.memory_used)
            used += bytes;
    header(text, "vgpu_memory_used_bytes", "gauge", "GPU memory that sessions have allocated.");
    text += "vgpu_memory_used_bytes" + number(used);
    return text;
}

} // namespace vgpu::node
