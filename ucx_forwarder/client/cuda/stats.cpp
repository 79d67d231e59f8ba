// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/stats.h"

#include "ucx_forwarder/client/cuda/session.h"

#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace vgpu::client {

namespace {

struct Stats {
    const pid_t process = ::getpid();
    std::mutex mutex;
    std::vector<const Session*> sessions;
    std::vector<Session::Counts> ended = std::vector<Session::Counts>(protocol::call_count);

    static Stats& instance() {
        // Leaked: printed in an exit handler, which may run after destructors.
        static Stats* const stats = new Stats;
        return *stats;
    }
};

void add(std::vector<Session::Counts>& to, const Session& session) {
    const auto counts = session.counts();
    for (std::size_t i = 0; i < counts.size(); ++i) {
        to[i].sent += counts[i].sent;
        to[i].awaited += counts[i].awaited;
    }
}

void print() {
    Stats& stats = Stats::instance();
    if (::getpid() != stats.process) {
        return; // a forked child, which made no call itself
    }
    const std::lock_guard lock(stats.mutex);
    auto total = stats.ended;
    for (const Session* session : stats.sessions) {
        add(total, *session);
    }
    std::uint64_t sent = 0;
    std::uint64_t awaited = 0;
    std::fprintf(stderr, "vgpu: %-52s %10s %10s\n", "call", "sent", "awaited");
    for (std::size_t i = 0; i < total.size(); ++i) {
        sent += total[i].sent;
        awaited += total[i].awaited;
        if (total[i].sent + total[i].awaited > 0) {
            std::fprintf(stderr, "vgpu: %-52s %10" PRIu64 " %10" PRIu64 "\n",
                         std::string(protocol::call_table[i].name).c_str(), total[i].sent, total[i].awaited);
        }
    }
    std::fprintf(stderr, "vgpu: round trips awaited: %" PRIu64 ", calls sent: %" PRIu64 "\n", awaited, sent);
}

bool wanted() {
    const char* value = std::getenv("VGPU_STATS");
    return value != nullptr && std::strcmp(value, "1") == 0;
}

} // namespace

void add_to_stats(const Session& session) {
    if (!wanted()) {
        return;
    }
    Stats& stats = Stats::instance();
    const std::lock_guard lock(stats.mutex);
    stats.sessions.push_back(&session);
    static const int registered = std::atexit(print);
    (void)registered;
}

void remove_from_stats(const Session& session) {
    if (!wanted()) {
        return;
    }
    Stats& stats = Stats::instance();
    const std::lock_guard lock(stats.mutex);
    if (std::erase(stats.sessions, &session) > 0) {
        add(stats.ended, session);
    }
}

} // namespace vgpu::client
