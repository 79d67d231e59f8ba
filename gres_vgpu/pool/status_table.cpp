// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/pool/status_table.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "gres_vgpu/pool/pool.h"

namespace vgpu::pool {

using control::Lease;
using control::PoolStatus;

namespace {

class Table {
public:
    explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    bool empty() const { return rows_.size() == 1; }

    std::string str() const {
        std::vector<std::size_t> widths(rows_[0].size());
        for (const auto& row : rows_)
            for (std::size_t i = 0; i < row.size(); ++i)
                widths[i] = std::max(widths[i], row[i].size());
        std::string out;
        for (const auto& row : rows_) {
            for (std::size_t i = 0; i < row.size(); ++i) {
                out += row[i];
                if (i + 1 < row.size())
                    out.append(widths[i] - row[i].size() + 2, ' ');
            }
            out += '\n';
        }
        return out;
    }

private:
    std::vector<std::vector<std::string>> rows_;
};

std::string number(std::uint64_t value) {
    return std::to_string(value);
}

std::string of(std::uint64_t part, std::uint64_t whole) {
    return number(part) + "/" + number(whole);
}

std::string mib(std::uint64_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", static_cast<double>(bytes) / (1 << 20));
    return text;
}

std::string count(std::size_t n, const char* word) {
    return number(n) + " " + word + (n == 1 ? "" : "s");
}

} // namespace

PoolStatus only_nodes(PoolStatus status, const std::vector<std::string>& nodes) {
    if (!nodes.empty())
        std::erase_if(status.nodes, [&](const control::NodeStatus& node) {
            return std::find(nodes.begin(), nodes.end(), node.node) == nodes.end();
        });
    return status;
}

std::string status_table(const PoolStatus& status) {
    std::map<std::string, Lease> leases; // a lease over two nodes stands under both
    std::map<std::pair<std::string, int>, std::pair<std::uint64_t, std::uint64_t>> used;
    for (const auto& node : status.nodes)
        for (const auto& lease : node.leases)
            leases.emplace(lease.id, lease);
    for (const auto& [id, lease] : leases)
        for (const auto& v : lease.vgpus) {
            auto& [shares, memory] = used[{v.node, v.gpu}];
            shares += v.shares;
            memory += v.memory_mib;
        }

    Table gpus({"NODE", "STATE", "GPU", "NAME", "SHARES", "MEMORY(MiB)", "UUID"});
    Table held({"LEASE", "JOB", "USER", "FOR", "ON", "SHARES", "MEMORY(MiB)"});
    Table sessions({"SESSION", "CLIENT", "LEASE", "ON", "TRANSPORT", "SENT", "AWAITED", "MEMORY(MiB)"});
    std::size_t up = 0, gpu_count = 0, session_count = 0;
    std::uint64_t leased = 0;
    for (const auto& node : status.nodes) {
        if (node.state == "up")
            ++up;
        if (node.gpus.empty())
            gpus.add({node.node, node.state, "-", "-", "-", "-", "-"});
        for (const auto& gpu : node.gpus) {
            auto [shares, memory] = used[{node.node, gpu.index}];
            gpus.add({node.node, node.state, number(static_cast<unsigned>(gpu.index)), gpu.name,
                      of(shares, status.shares_per_gpu), of(memory, gpu.memory_mib), gpu.uuid});
            ++gpu_count;
            leased += shares;
        }
        for (const auto& session : node.sessions) {
            std::uint64_t memory = 0;
            for (auto bytes : session.memory_used)
                memory += bytes;
            sessions.add({number(session.id), session.client, session.lease, node.node, session.transport,
                          number(session.calls_sent), number(session.calls_awaited), mib(memory)});
            ++session_count;
        }
    }
    for (const auto& [id, lease] : leases)
        for (const auto& v : lease.vgpus)
            held.add({id, number(lease.request.job.id),
                      lease.request.user + "(" + number(lease.request.uid) + ")", lease.request.node,
                      v.node + " gpu " + number(static_cast<unsigned>(v.gpu)), number(v.shares),
                      number(v.memory_mib)});

    std::string out = of(up, status.nodes.size()) + " nodes up, " + count(gpu_count, "GPU") + ", " +
                      of(leased, gpu_count * status.shares_per_gpu) + " shares leased, " +
                      count(leases.size(), "lease") + ", " + count(session_count, "session") + "\n\n" +
                      gpus.str();
    if (!held.empty())
        out += "\n" + held.str();
    if (!sessions.empty())
        out += "\n" + sessions.str();
    return out;
}

} // namespace vgpu::pool
