// SPDX-License-Identifier: BSD-3-Clause
// What the transport reaches beside what UCX itself reaches (ucx_perftest) on this machine, in the same run.
// Compare the ratios; the absolute numbers are the machine's.
//
//   transport_perf [tcp|shm] [spin in microseconds]
#include "tests/transport/checker.h"
#include "tests/transport/pair.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace vgpu;
using namespace vgpu::test;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Answers what has kind 1, swallows the rest.
class Sink : public transport::Receiver {
public:
    Sink(transport::Connection& connection, bool answers) : connection_(connection), answers_(answers) {}
    std::span<std::byte> body_buffer(std::span<const std::byte>, std::size_t size) override {
        auto& buffer = buffers_[next_++ % std::size(buffers_)];
        if (buffer.size() < size)
            buffer.resize(size);
        return std::span(buffer).first(size);
    }
    void message(std::span<const std::byte> head, std::span<std::byte>) override {
        ++received;
        if (answers_ && head[0] == std::byte{1})
            connection_.send(head);
    }
    void lost(const std::string&) override { is_lost = true; }
    std::atomic<std::uint64_t> received{0};
    std::atomic<bool> is_lost{false};

private:
    transport::Connection& connection_;
    const bool answers_;
    std::vector<std::byte> buffers_[32];
    std::size_t next_ = 0;
};

int serve(std::unique_ptr<transport::Connection> connection) {
    Sink sink(*connection, true);
    connection->start(sink);
    return connection->wait_until([&] { return sink.is_lost.load(); }) ? 0 : 1;
}

double one_round_trip(transport::Connection& connection, Sink& sink, std::span<const std::byte> head,
                      std::span<const std::byte> body) {
    const auto begin = Clock::now();
    const std::uint64_t before = sink.received;
    connection.send(head, body, transport::Body::borrow);
    if (!connection.wait_until([&] { return sink.received != before; }))
        std::exit(1);
    return seconds_since(begin);
}

void round_trips(transport::Connection& connection, Sink& sink, std::size_t size) {
    std::vector<std::byte> head(std::min<std::size_t>(size, 64), std::byte{1}), body(size - head.size());
    std::vector<double> times;
    for (int i = 0; i < 5000; ++i)
        times.push_back(one_round_trip(connection, sink, head, body));
    std::ranges::sort(times);
    std::printf("round trip %7zu B      p50 %9.2f us   p99 %9.2f us\n", size, times[times.size() / 2] * 1e6,
                times[times.size() * 99 / 100] * 1e6);
}

void commands(transport::Connection& connection, Sink& sink, std::size_t size) {
    std::vector<std::byte> head(size), last(size, std::byte{1});
    constexpr int count = 300000;
    const auto begin = Clock::now();
    for (int i = 0; i < count; ++i)
        connection.send(head);
    const double sending = seconds_since(begin);
    one_round_trip(connection, sink, last, {});
    std::printf("commands   %7zu B   %10.0f /s sent, %10.0f /s done\n", size, count / sending,
                count / seconds_since(begin));
}

void bulk(transport::Connection& connection, Sink& sink, std::size_t size) {
    std::vector<std::byte> head(64), last(64, std::byte{1}), body(size);
    const int count = static_cast<int>(std::max<std::size_t>(4, (1u << 29) / size / 2));
    for (int round = 0; round < 2; ++round) { // the first one touches the memory
        const auto begin = Clock::now();
        for (int i = 0; i < (round == 0 ? 2 : count); ++i)
            connection.send(head, body, transport::Body::borrow);
        one_round_trip(connection, sink, last, {});
        if (round == 1)
            std::printf("bulk     %9zu B   %10.1f MiB/s\n", size,
                        static_cast<double>(size) * count / seconds_since(begin) / (1 << 20));
    }
}

void perftest(const std::string& tls, const std::string& test, std::size_t size, int count) {
    const std::string port = std::to_string(20000 + getpid() % 20000);
    const std::string base =
        "UCX_TLS=" + tls + " UCX_NET_DEVICES=lo UCX_WARN_UNUSED_ENV_VARS=n ucx_perftest -p " + port;
    const std::string command = "(" + base + " >/dev/null 2>&1 & sleep 0.5; " + base + " 127.0.0.1 -t " +
                                test + " -s " + std::to_string(size) + " -n " + std::to_string(count) +
                                " -w 10 -f 2>&1 | tail -1; wait)";
    std::printf(
        "ucx_perftest %s %zu B (iterations, p50 us, average us, overall us, MB/s, MB/s, msg/s, msg/s):\n   ",
        test.c_str(), size);
    std::fflush(stdout);
    if (std::system(command.c_str()) != 0)
        std::puts("   ucx_perftest did not run");
}

} // namespace

int main(int argc, char** argv) {
    transport::Options options;
    options.transport = argc > 1 ? argv[1] : "tcp";
    if (argc > 2)
        options.spin = std::chrono::microseconds(std::atoi(argv[2]));
    options.peer_timeout = 60s;
    {
        const auto server = start_server(options, serve);
        auto connection = connect_to(server, options);
        Sink sink(*connection, false);
        connection->start(sink);
        std::printf("transport %s, spin %ld us\n", connection->transport_name().c_str(),
                    static_cast<long>(options.spin.count()));
        for (std::size_t size : {64, 1024, 8192, 65536, 1 << 20})
            round_trips(*connection, sink, size);
        for (std::size_t size : {64, 128, 1024})
            commands(*connection, sink, size);
        for (std::size_t size : {16u << 10, 64u << 10, 256u << 10, 1u << 20, 16u << 20, 64u << 20})
            bulk(*connection, sink, size);
    }
    const std::string tls = options.transport == "shm" ? "sysv,tcp" : "tcp";
    perftest(tls, "ucp_am_lat", 64, 20000);
    perftest(tls, "ucp_am_lat", 1 << 20, 200);
    perftest(tls, "ucp_am_bw", 128, 200000);
    perftest(tls, "ucp_am_bw", 1 << 20, 1000);
    perftest(tls, "ucp_am_bw", 64 << 20, 16);
}
