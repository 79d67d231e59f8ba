// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <sstream>

#include "gres_vgpu/pool/pool.h"

namespace vgpu::pool {
namespace {

class Text {
public:
    void head(const char* name, const char* type, const char* help) {
        out_ << "# HELP " << name << ' ' << help << "\n# TYPE " << name << ' ' << type << '\n';
        name_ = name;
    }
    void value(std::uint64_t number, const std::string& labels = "") {
        out_ << name_ << (labels.empty() ? "" : "{" + labels + "}") << ' ' << number << '\n';
    }
    std::string str() const { return out_.str(); }

private:
    std::ostringstream out_;
    std::string name_;
};

std::string label(const std::string& key, const std::string& value) {
    std::string out = key + "=\"";
    for (char c : value) {
        if (c == '\\' || c == '"')
            out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out + '"';
}

struct Use {
    std::uint64_t shares = 0, mib = 0;
};

} // namespace

std::string metrics(const control::PoolStatus& status, std::chrono::seconds uptime) {
    std::map<std::string, std::uint64_t> states{{"up", 0}, {"down", 0}, {"unknown", 0}};
    std::map<std::pair<std::string, int>, Use> used;
    std::map<std::string, bool> lease_ids, claim_ids;
    std::uint64_t gpus = 0, mib = 0, used_shares = 0, used_mib = 0, sessions = 0;
    for (const auto& node : status.nodes) {
        ++states[node.state];
        sessions += node.sessions.size();
        for (const auto& claim : node.claims)
            claim_ids[claim.id] = true;
        for (const auto& lease : node.leases) {
            lease_ids[lease.id] = true;
            for (const auto& vgpu : lease.vgpus)
                if (vgpu.node == node.node) {
                    auto& use = used[{node.node, vgpu.gpu}];
                    use.shares += vgpu.shares;
                    use.mib += vgpu.memory_mib;
                    used_shares += vgpu.shares;
                    used_mib += vgpu.memory_mib;
                }
        }
        if (node.state == "up")
            for (const auto& gpu : node.gpus) {
                ++gpus;
                mib += gpu.memory_mib;
            }
    }
    constexpr std::uint64_t bytes = 1 << 20;
    Text text;
    text.head("vgpu_uptime_seconds", "gauge", "Time since vgpuctld started.");
    text.value(static_cast<std::uint64_t>(uptime.count()));
    text.head("vgpu_nodes", "gauge", "GPU nodes of vgpu.conf by state.");
    for (const auto& [state, count] : states)
        text.value(count, label("state", state));
    text.head("vgpu_gpus", "gauge", "GPUs of the nodes that are up.");
    text.value(gpus);
    text.head("vgpu_shares", "gauge", "Shares of the GPUs of the nodes that are up.");
    text.value(gpus * status.shares_per_gpu);
    text.head("vgpu_shares_leased", "gauge", "Shares that jobs hold, on all nodes.");
    text.value(used_shares);
    text.head("vgpu_memory_bytes", "gauge", "Memory of the GPUs of the nodes that are up.");
    text.value(mib * bytes);
    text.head("vgpu_memory_leased_bytes", "gauge", "GPU memory that jobs hold, on all nodes.");
    text.value(used_mib * bytes);
    text.head("vgpu_leases", "gauge", "Leases.");
    text.value(lease_ids.size());
    text.head("vgpu_claims", "gauge", "Claims of steps.");
    text.value(claim_ids.size());
    text.head("vgpu_sessions", "gauge", "Client processes at work, one for each GPU node they use.");
    text.value(sessions);
    text.head("vgpu_gpu_shares_leased", "gauge", "Shares of one GPU that jobs hold.");
    for (const auto& node : status.nodes)
        for (const auto& gpu : node.gpus)
            text.value(used[{node.node, gpu.index}].shares,
                       label("node", node.node) + "," + label("gpu", std::to_string(gpu.index)));
    text.head("vgpu_gpu_memory_leased_bytes", "gauge", "Memory of one GPU that jobs hold.");
    for (const auto& node : status.nodes)
        for (const auto& gpu : node.gpus)
            text.value(used[{node.node, gpu.index}].mib * bytes,
                       label("node", node.node) + "," + label("gpu", std::to_string(gpu.index)));
    return text.str();
}

} // namespace vgpu::pool
