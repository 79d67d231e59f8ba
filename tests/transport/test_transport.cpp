// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE transport
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/transport/checker.h"
#include "tests/transport/pair.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace std::chrono_literals;
using namespace vgpu;
using namespace vgpu::test;
using transport::Body;
namespace data = boost::unit_test::data;

namespace {

const std::vector<std::string> transports = test_transports();

transport::Options options_for(const std::string& name) {
    transport::Options options;
    options.transport = name;
    options.peer_timeout = 20s; // the machine may be busy
    return options;
}

/// Of this process, sockets without close-on-exec.
int inheritable_sockets() {
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) {
        struct stat status {};
        if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            ++count;
    }
    return count;
}

} // namespace

BOOST_DATA_TEST_CASE(order_and_content_of_mixed_sizes, data::make(transports), name) {
    const auto options = options_for(name);
    const auto server = start_server(options, echo);
    auto connection = connect_to(server, options);
    Checker checker;
    checker.own_buffers_ = true;
    connection->start(checker);
    std::mt19937 random(42);
    const std::size_t sizes[] = {0,     1,     100,   4000,   4096,    4097,   8000,
                                 20000, 65535, 65536, 300000, 1 << 20, 5000000};
    std::atomic<int> outstanding{0};
    constexpr std::uint64_t count = 600;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::size_t size = sizes[random() % 100 < 70 ? random() % 4 : random() % std::size(sizes)];
        send_pattern(*connection, i, size, random() % 2 ? Body::copy : Body::borrow, &outstanding);
    }
    BOOST_TEST(connection->wait_until([&] { return checker.received() == count; }));
    BOOST_TEST(checker.disorder_ == 0u);
    BOOST_TEST(checker.damaged_ == 0u);
    BOOST_TEST(eventually([&] { return outstanding == 0; }));
    BOOST_TEST(connection->transport_name() != "");
    BOOST_TEST_MESSAGE("in use: " << connection->transport_name());
    const std::string expected = name == "tcp" ? "tcp/" : name == "shm" ? "sysv" : "rc_";
    BOOST_TEST(connection->transport_name().starts_with(expected));
}

BOOST_DATA_TEST_CASE(bulk_goes_straight_into_the_receivers_memory, data::make(transports), name) {
    const auto options = options_for(name);
    const auto server = start_server(options, echo);
    auto connection = connect_to(server, options);
    Checker checker;
    checker.own_buffers_ = true;
    connection->start(checker);
    std::atomic<int> outstanding{0};
    for (std::uint64_t i = 0; i < 4; ++i)
        send_pattern(*connection, i, (24 << 20) + 13 * i, Body::borrow, &outstanding);
    BOOST_TEST(connection->wait_until([&] { return checker.received() == 4; }));
    BOOST_TEST(checker.damaged_ == 0u);
    BOOST_TEST(checker.disorder_ == 0u);
    BOOST_TEST(outstanding == 0);
}

BOOST_DATA_TEST_CASE(messages_arrive_though_nobody_waits, data::make(transports), name) {
    const auto options = options_for(name);
    const auto server = start_server(options, echo);
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    for (std::uint64_t i = 0; i < 50; ++i)
        send_pattern(*connection, i, i % 10 == 9 ? 3 << 20 : 64, Body::borrow);
    BOOST_TEST(eventually([&] { return checker.received() == 50; }));
    BOOST_TEST(checker.damaged_ == 0u);
}

BOOST_DATA_TEST_CASE(many_threads, data::make(transports), name) {
    const auto options = options_for(name);
    const auto server = start_server(options, echo);
    auto connection = connect_to(server, options);
    struct Counter : transport::Receiver {
        std::atomic<std::uint64_t> got[8]{};
        std::atomic<int> bad{0}, inside{0};
        std::span<std::byte> body_buffer(std::span<const std::byte>, std::size_t) override { return {}; }
        void message(std::span<const std::byte> head, std::span<std::byte>) override {
            if (inside++ != 0)
                ++bad;
            std::uint64_t h[2];
            std::memcpy(h, head.data(), sizeof h);
            if (got[h[0]]++ != h[1])
                ++bad;
            --inside;
        }
        void lost(const std::string&) override {}
    } counter;
    connection->start(counter);
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            const std::vector<std::byte> body(30000);
            for (std::uint64_t i = 0; i < 300; ++i) {
                const std::uint64_t head[2] = {t, i};
                connection->send(std::as_bytes(std::span(head)),
                                 std::span(body).first(i % 20 == 3 ? body.size() : 10));
                if (i % 3 == 0 && !connection->wait_until([&] { return counter.got[t] == i + 1; }))
                    ++failed;
            }
            if (!connection->wait_until([&] { return counter.got[t] == 300; }))
                ++failed;
        });
    for (auto& thread : threads)
        thread.join();
    BOOST_TEST(failed == 0);
    BOOST_TEST(counter.bad == 0);
}

BOOST_DATA_TEST_CASE(backpressure_bounds_what_is_on_the_way, data::make(transports), name) {
    const auto options = options_for(name);
    // A receiver that takes its time: 1 MiB per millisecond.
    const auto server = start_server(options, [](std::unique_ptr<transport::Connection> connection) {
        struct Slow : Checker {
            void message(std::span<const std::byte> head, std::span<std::byte> body) override {
                std::this_thread::sleep_for(1ms);
                Checker::message(head, body);
            }
        } slow;
        connection->start(slow);
        const bool alive = connection->wait_until([&] { return slow.received() == 200; });
        const std::uint64_t answer[2] = {0, slow.damaged_ + slow.disorder_};
        connection->send(std::as_bytes(std::span(answer)));
        const bool told = connection->wait_until([&] { return slow.lost_count() != 0; });
        return alive && told ? 0 : 1;
    });
    auto connection = connect_to(server, options);
    struct Answer : Checker {
        std::atomic<std::uint64_t> wrong{99};
        void message(std::span<const std::byte> head, std::span<std::byte>) override {
            std::uint64_t h[2];
            std::memcpy(h, head.data(), sizeof h);
            wrong = h[1];
        }
    } answer;
    connection->start(answer);
    for (std::uint64_t i = 0; i < 200; ++i)
        send_pattern(*connection, i, 1 << 20, Body::copy);
    BOOST_TEST(connection->wait_until([&] { return answer.wrong != 99; }));
    BOOST_TEST(answer.wrong == 0u);
    connection.reset();
    BOOST_TEST(const_cast<Server&>(server).process.wait() == 0);
}

BOOST_AUTO_TEST_CASE(wrong_key_is_dropped_and_the_right_one_still_accepted) {
    const auto options = options_for("tcp");
    const auto server = start_server(options, echo);
    std::array<std::byte, 32> wrong{};
    BOOST_CHECK_EXCEPTION(transport::connect("127.0.0.1", server.port, transport::Key(wrong), options, 20s),
                          transport::TransportError, [](const auto& error) {
                              return std::string(error.what()).find("does not know the key") !=
                                     std::string::npos;
                          });
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    send_pattern(*connection, 0, 10, Body::copy);
    BOOST_TEST(connection->wait_until([&] { return checker.received() == 1; }));
}

BOOST_AUTO_TEST_CASE(nobody_with_the_key_comes) {
    auto listener = transport::listen("127.0.0.1", options_for("tcp"));
    BOOST_CHECK_THROW(listener->accept(test_key(), 100ms), transport::TransportError);
}

BOOST_AUTO_TEST_CASE(nobody_listens) {
    std::uint16_t port;
    {
        auto listener = transport::listen("127.0.0.1", options_for("tcp"));
        port = listener->port();
    }
    BOOST_CHECK_THROW(transport::connect("127.0.0.1", port, test_key(), options_for("tcp"), 20s),
                      transport::TransportError);
}

BOOST_AUTO_TEST_CASE(a_demand_that_cannot_be_met_is_an_error) {
    BOOST_CHECK_EXCEPTION(transport::listen("127.0.0.1", options_for("carrier-pigeon")),
                          transport::TransportError, [](const auto& error) {
                              return std::string(error.what()).find("auto, tcp, shm or rdma") !=
                                     std::string::npos;
                          });
    auto options = options_for("rdma");
    options.net_devices = "mlx5_77:1";
    BOOST_CHECK_THROW(transport::listen("127.0.0.1", options), transport::TransportError);
}

BOOST_DATA_TEST_CASE(killed_peer_is_lost, data::make(transports), name) {
    const auto options = options_for(name);
    const auto server = start_server(options, echo);
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    send_pattern(*connection, 0, 10, Body::copy);
    BOOST_TEST(connection->wait_until([&] { return checker.received() == 1; }));
    std::atomic<int> outstanding{0};
    server.process.kill(SIGKILL);
    send_pattern(*connection, 1, 40 << 20, Body::borrow, &outstanding);
    BOOST_TEST(!connection->wait_until([] { return false; }));
    BOOST_TEST(connection->lost());
    BOOST_TEST(checker.lost_count() == 1);
    BOOST_TEST_MESSAGE(checker.why());
    BOOST_TEST(eventually([&] { return outstanding == 0; }));
    send_pattern(*connection, 2, 10, Body::copy); // does nothing
    BOOST_TEST(!connection->wait_until([] { return false; }));
}

BOOST_DATA_TEST_CASE(stopped_peer_is_lost, data::make(transports), name) {
    auto options = options_for(name);
    options.heartbeat = 100ms;
    options.peer_timeout = 1000ms;
    const auto server = start_server(options_for(name), echo);
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    send_pattern(*connection, 0, 10, Body::copy);
    BOOST_TEST(connection->wait_until([&] { return checker.received() == 1; }));
    std::atomic<int> outstanding{0};
    server.process.kill(SIGSTOP);
    send_pattern(*connection, 1, 40 << 20, Body::borrow, &outstanding);
    BOOST_TEST(!connection->wait_until([] { return false; }));
    BOOST_TEST(checker.lost_count() == 1);
    BOOST_TEST_MESSAGE(checker.why());
    BOOST_TEST(checker.why().find("PeerTimeout") != std::string::npos);
    BOOST_TEST(eventually([&] { return outstanding == 0; }));
}

BOOST_DATA_TEST_CASE(a_long_call_of_the_receiver_is_no_silence, data::make(transports), name) {
    auto options = options_for(name);
    options.heartbeat = 100ms;
    const auto server = start_server(options, [](std::unique_ptr<transport::Connection> connection) {
        struct Sleeper : Checker {
            transport::Connection* connection = nullptr;
            void message(std::span<const std::byte> head, std::span<std::byte>) override {
                std::this_thread::sleep_for(3s);
                connection->send(head);
            }
        } sleeper;
        sleeper.connection = connection.get();
        connection->start(sleeper);
        return connection->wait_until([&] { return sleeper.lost_count() != 0; }) ? 0 : 1;
    });
    options.peer_timeout = 1000ms;
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    send_pattern(*connection, 0, 10, Body::copy);
    BOOST_TEST(connection->wait_until([&] { return checker.received() == 1; }));
}

BOOST_DATA_TEST_CASE(orderly_close_delivers_everything, data::make(transports), name) {
    const auto options = options_for(name);
    auto server = start_server(options, [](std::unique_ptr<transport::Connection> connection) {
        Checker checker;
        connection->start(checker);
        if (connection->wait_until([] { return false; }))
            return 1;
        if (checker.received() != 100 || checker.damaged_ != 0 || checker.lost_count() != 1)
            return 2;
        return checker.why() == "the peer closed the connection" ? 0 : 3;
    });
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    for (std::uint64_t i = 0; i < 100; ++i)
        send_pattern(*connection, i, i % 10 ? 200 : 500000, Body::borrow);
    connection->close(30s);
    BOOST_TEST(connection->lost());
    BOOST_TEST(checker.lost_count() == 0);
    connection.reset();
    BOOST_TEST(server.process.wait() == 0);
}

BOOST_AUTO_TEST_CASE(nothing_happens_in_a_forked_child) {
    const auto options = options_for("tcp");
    const auto server = start_server(options, echo);
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
        bool called = false;
        const std::vector<std::byte> body(100000);
        connection->send(body, {}, Body::borrow);
        const Head head{0, 0};
        connection->send(std::as_bytes(std::span(&head, 1)), body, Body::borrow, [&] { called = true; });
        const bool waited = connection->wait_until([] { return false; });
        connection->wake();
        connection->close(1s);
        connection.reset();
        _exit(called && !waited ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    BOOST_TEST(status == 0);
    send_pattern(*connection, 0, 10, Body::copy);
    BOOST_TEST(connection->wait_until([&] { return checker.received() == 1; }));
}

BOOST_AUTO_TEST_CASE(the_programs_signal_handlers_stay_its_own) {
    const auto options = options_for("tcp");
    const auto server = start_server(options, echo);
    auto connection = connect_to(server, options);
    for (int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
        struct sigaction found {};
        sigaction(number, nullptr, &found);
        // Boost.Test has its own for these; UCX's would be in libucs.
        Dl_info where{};
        if (found.sa_handler != SIG_DFL && found.sa_handler != SIG_IGN)
            BOOST_TEST((dladdr(reinterpret_cast<void*>(found.sa_sigaction), &where) == 0 ||
                        std::string(where.dli_fname).find("libucs") == std::string::npos));
    }
}

BOOST_AUTO_TEST_CASE(a_program_that_is_started_inherits_no_connection) {
    const auto options = options_for("tcp");
    const auto server = start_server(options, echo);
    const auto before = inheritable_sockets();
    auto connection = connect_to(server, options);
    Checker checker;
    connection->start(checker);
    send_pattern(*connection, 0, 10, Body::copy);
    BOOST_TEST(connection->wait_until([&] { return checker.received() == 1; }));
    BOOST_TEST(inheritable_sockets() == before);
}

BOOST_DATA_TEST_CASE(exit_with_a_connection_that_nobody_closes, data::make(transports), name) {
    const auto options = options_for(name);
    auto server = start_server(options, [](std::unique_ptr<transport::Connection> connection) {
        Checker checker;
        connection->start(checker);
        static_cast<void>(connection->wait_until([] { return false; }));
        return checker.received() == 20 && checker.why() == "the peer closed the connection" ? 0 : 1;
    });
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        auto& leaked = *connect_to(server, options).release();
        leaked.start(*new Checker);
        for (std::uint64_t i = 0; i < 20; ++i)
            send_pattern(leaked, i, i % 10 == 9 ? 300000 : 100, Body::copy);
        std::exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    BOOST_TEST(status == 0);
    BOOST_TEST(server.process.wait() == 0);
}
