// SPDX-License-Identifier: BSD-3-Clause
// vgpud's inside and the client's way to a worker, with real worker processes whose executor is an echo.
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE node
#include <boost/test/unit_test.hpp>

#include "gres_vgpu/control/json.h"
#include "tests/transport/checker.h"
#include "ucx_forwarder/client/cuda/session_open.h"
#include "ucx_forwarder/node/service.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace vgpu;
using namespace vgpu::test;
namespace fs = std::filesystem;
using control::HttpError;

namespace {

const std::string secret(64, 'a');

/// A directory of its own, removed at the end.
class Place {
public:
    Place() {
        std::string name = fs::temp_directory_path() / "vgpu-node-XXXXXX";
        path_ = mkdtemp(name.data());
        fs::permissions(path_, fs::perms(0711));
    }
    ~Place() { fs::remove_all(path_); }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

std::uint16_t free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t size = sizeof address;
    BOOST_REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    close(fd);
    return ntohs(address.sin_port);
}

Config config_in(const Place& place) {
    Config config;
    config.controller_host = config.controller_address = "127.0.0.1";
    config.controller_port = free_port(); // nobody there
    config.node_port = free_port();
    config.state_dir = config.run_dir = place.path();
    config.worker_program = fs::canonical("/proc/self/exe").parent_path() / "echo_worker";
    NodeConfig node;
    node.name = "g1";
    node.address = "127.0.0.1";
    config.nodes.push_back(node);
    return config;
}

std::vector<control::Gpu> gpus() {
    return {{0, "GPU-0", "test", "", 1000}, {1, "GPU-1", "test", "", 1000}};
}

control::Vgpu vgpu_of(const Config& config) {
    return {"g1", "127.0.0.1", config.node_port, 1, "GPU-1", "test", 25, 100};
}

control::Lease lease_of(const Config& config) {
    control::Lease lease;
    lease.id = "7.c1.0";
    lease.request.job.id = 7;
    lease.request.user = "someone";
    lease.vgpus = {vgpu_of(config)};
    return lease;
}

control::Claim claim_of(const Config& config) {
    control::Claim claim;
    claim.id = "7.0.c1.0";
    claim.lease = "7.c1.0";
    claim.secret = secret;
    claim.request.uid = geteuid();
    claim.request.gid = getegid();
    claim.vgpus = {vgpu_of(config)};
    return claim;
}

void use_claim(const Place& place, const control::Claim& claim) {
    const fs::path file = place.path() / "claim.json";
    std::ofstream(file) << nlohmann::json{
        {"claim", claim}, {"transport", "auto"}, {"peer_timeout_ms", 20000}};
    setenv("VGPU_CLAIM", file.c_str(), 1);
}

struct Fixture {
    Place place;
    Config config = config_in(place);
    node::Node node{config, config.nodes[0], gpus()};
    node::Service service{config, config.nodes[0], node};
    Fixture() {
        node.put_lease(lease_of(config));
        node.put_claim(claim_of(config));
        use_claim(place, claim_of(config));
    }
    bool has_sessions(std::size_t count) const {
        return eventually([&] { return node.status().sessions.size() == count; });
    }
};

/// Collects heads.
struct Heads : transport::Receiver {
    std::span<std::byte> body_buffer(std::span<const std::byte>, std::size_t) override { return {}; }
    void message(std::span<const std::byte> head, std::span<std::byte>) override {
        std::memcpy(last, head.data(), sizeof last);
        ++count;
    }
    void lost(const std::string&) override { is_lost = true; }
    std::uint64_t last[2]{};
    std::atomic<int> count{0};
    std::atomic<bool> is_lost{false};
};

bool refused(const client::OpenError& error, CUresult status, const std::string& text) {
    BOOST_TEST_MESSAGE(error.what());
    return error.status == status && std::string(error.what()).find(text) != std::string::npos;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(a_session_from_claim_to_end, Fixture) {
    Heads heads;
    auto opened = client::open_claim();
    BOOST_REQUIRE(opened.size() == 1u);
    BOOST_TEST(opened[0].node == "g1");
    BOOST_TEST(opened[0].devices == std::vector<int>{0}, boost::test_tools::per_element());
    auto& connection = *opened[0].connection;
    connection.start(heads);
    BOOST_TEST(connection.wait_until([&] { return heads.count == 1; }));
    BOOST_TEST(heads.last[0] == geteuid());
    BOOST_TEST(heads.last[1] == 100u << 20);
    BOOST_TEST(eventually([&] {
        const auto sessions = node.status().sessions;
        return sessions.size() == 1 && sessions[0].calls_sent == 7 && !sessions[0].transport.empty();
    }));
    const auto session = node.status().sessions.at(0);
    BOOST_TEST(session.claim == "7.0.c1.0");
    BOOST_TEST(session.lease == "7.c1.0");
    BOOST_TEST(session.calls_awaited == 3u);
    BOOST_TEST(session.transport == connection.transport_name());
    BOOST_TEST(session.memory_used == std::vector<std::uint64_t>{1 << 20}, boost::test_tools::per_element());
    BOOST_TEST(session.client.find(":" + std::to_string(getpid()) + " ") != std::string::npos);
    opened.clear();
    BOOST_TEST(has_sessions(0));
}

BOOST_FIXTURE_TEST_CASE(workers_run_as_the_claims_user_and_are_closed_to_it, Fixture) {
    constexpr uid_t other = 65534;
    auto claim = claim_of(config);
    claim.request.uid = claim.request.gid = other;
    node.put_claim(claim);
    if (geteuid() != 0) { // then the worker cannot be another user's
        BOOST_CHECK_EXCEPTION(client::open_claim(), client::OpenError, [](const auto& error) {
            return refused(error, CUDA_ERROR_SYSTEM_NOT_READY, "vgpud must run as root");
        });
        return;
    }
    int down[2];
    BOOST_REQUIRE(pipe(down) == 0);
    const pid_t user = fork();
    if (user == 0) {
        if (setgroups(0, nullptr) != 0 || setresgid(other, other, other) != 0 ||
            setresuid(other, other, other) != 0)
            _exit(2);
        Heads heads;
        auto opened = client::open_claim();
        opened[0].connection->start(heads);
        if (!opened[0].connection->wait_until([&] { return heads.count == 1; }) || heads.last[0] != other)
            _exit(3);
        pid_t worker = 0;
        if (read(down[0], &worker, sizeof worker) != sizeof worker || kill(worker, 0) != 0)
            _exit(4);
        // It is of the same user, yet that user can neither read its memory nor use its descriptors.
        const std::string folder = "/proc/" + std::to_string(worker);
        for (const char* name : {"/mem", "/environ", "/fd/4"})
            if (open((folder + name).c_str(), O_RDONLY) >= 0)
                _exit(5);
        _exit(0);
    }
    BOOST_TEST(eventually([&] {
        const auto sessions = node.status().sessions;
        return !sessions.empty() && !sessions[0].transport.empty();
    }));
    const auto sessions = node.status().sessions;
    const pid_t worker = sessions.empty() ? 0 : static_cast<pid_t>(sessions[0].pid);
    BOOST_TEST(write(down[1], &worker, sizeof worker) == static_cast<ssize_t>(sizeof worker));
    int status = -1;
    waitpid(user, &status, 0);
    BOOST_TEST(status == 0);
    close(down[0]);
    close(down[1]);
}

BOOST_FIXTURE_TEST_CASE(wrong_secret_gets_nothing, Fixture) {
    auto claim = claim_of(config);
    claim.secret = std::string(64, 'b');
    use_claim(place, claim);
    BOOST_CHECK_EXCEPTION(client::open_claim(), client::OpenError, [](const auto& error) {
        return refused(error, CUDA_ERROR_NOT_PERMITTED, "proof");
    });
    BOOST_TEST(node.status().sessions.empty());
}

BOOST_FIXTURE_TEST_CASE(a_released_claim_ends_its_sessions_and_opens_none, Fixture) {
    Heads heads;
    auto opened = client::open_claim();
    opened[0].connection->start(heads);
    node.remove_claim("7.0.c1.0");
    BOOST_TEST(node.status().sessions.empty());
    BOOST_TEST(!opened[0].connection->wait_until([] { return false; }));
    BOOST_TEST(heads.is_lost);
    BOOST_CHECK_EXCEPTION(client::open_claim(), client::OpenError, [](const auto& error) {
        return refused(error, CUDA_ERROR_NOT_PERMITTED, "no claim");
    });
    node.remove_claim("7.0.c1.0"); // again is fine
}

BOOST_FIXTURE_TEST_CASE(a_released_lease_takes_all_with_it, Fixture) {
    Heads heads;
    auto opened = client::open_claim();
    opened[0].connection->start(heads);
    node.remove_lease("7.c1.0");
    const auto status = node.status();
    BOOST_TEST(status.leases.empty());
    BOOST_TEST(status.claims.empty());
    BOOST_TEST(status.sessions.empty());
    BOOST_TEST(!opened[0].connection->wait_until([] { return false; }));
}

BOOST_FIXTURE_TEST_CASE(a_killed_worker_is_noticed_on_both_sides, Fixture) {
    Heads heads;
    auto opened = client::open_claim();
    opened[0].connection->start(heads);
    BOOST_TEST(opened[0].connection->wait_until([&] { return heads.count == 1; }));
    kill(static_cast<pid_t>(node.status().sessions.at(0).pid), SIGKILL);
    BOOST_TEST(!opened[0].connection->wait_until([] { return false; }));
    BOOST_TEST(has_sessions(0));
    auto again = client::open_claim(); // and all its memory is there again
    BOOST_TEST(again.size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_proof_is_good_once, Fixture) {
    node::Node::OpenRequest request;
    request.nonces = {"7.0.c1.0", node.challenge("7.0.c1.0"), "00"};
    request.proof = transport::to_hex(transport::session_proof(secret, request.nonces));
    request.client = "evil\n\x1b[0m";
    request.client_address = "127.0.0.1";
    const auto opened = node.open(request);
    BOOST_TEST(opened.port != 0);
    BOOST_TEST(node.status().sessions.at(0).client == "evil??[0m");
    BOOST_CHECK_EXCEPTION(node.open(request), HttpError,
                          [](const auto& error) { return error.status == 403; });
    request.nonces.nonce = node.challenge("7.0.c1.0"); // the proof is for another one
    BOOST_CHECK_THROW(node.open(request), HttpError);
    request.nonces.nonce = std::string(request.nonces.nonce.size(), '0'); // not made here
    request.proof = transport::to_hex(transport::session_proof(secret, request.nonces));
    BOOST_CHECK_THROW(node.open(request), HttpError);
    BOOST_CHECK_EXCEPTION(node.challenge("8.0.c1.0"), HttpError,
                          [](const auto& error) { return error.status == 404; });
}

BOOST_FIXTURE_TEST_CASE(what_is_wrong_with_a_lease_or_claim_is_said, Fixture) {
    auto lease = lease_of(config);
    lease.vgpus[0].gpu = 5;
    BOOST_CHECK_THROW(node.put_lease(lease), HttpError);
    lease = lease_of(config);
    lease.vgpus[0].uuid = "GPU-9";
    BOOST_CHECK_THROW(node.put_lease(lease), HttpError);
    auto claim = claim_of(config);
    claim.lease = "none";
    BOOST_CHECK_THROW(node.put_claim(claim), HttpError);
    claim = claim_of(config);
    claim.secret = "xyz";
    BOOST_CHECK_THROW(node.put_claim(claim), HttpError);
}

BOOST_AUTO_TEST_CASE(leases_and_claims_outlive_vgpud) {
    const Place place;
    const Config config = config_in(place);
    {
        node::Node node(config, config.nodes[0], gpus());
        node.put_lease(lease_of(config));
        node.put_claim(claim_of(config));
        node.put_lease(lease_of(config)); // again: the claim stays
    }
    node::Node node(config, config.nodes[0], gpus());
    const auto status = node.status();
    BOOST_REQUIRE(status.leases.size() == 1u);
    BOOST_TEST(status.leases[0].vgpus.at(0).memory_mib == 100u);
    BOOST_REQUIRE(status.claims.size() == 1u);
    BOOST_TEST(status.claims[0].secret == "");
    const node::Service service(config, config.nodes[0], node);
    use_claim(place, claim_of(config)); // the secret is still known
    BOOST_TEST(client::open_claim().size() == 1u);
    node.remove_lease("7.c1.0");
    BOOST_TEST(node.status().claims.empty());
}

BOOST_AUTO_TEST_CASE(killed_vgpud_leaves_no_worker) {
    const Place place;
    const Config config = config_in(place);
    int ends[2];
    BOOST_REQUIRE(pipe(ends) == 0);
    const pid_t daemon = fork();
    if (daemon == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        node::Node node(config, config.nodes[0], gpus());
        node.put_lease(lease_of(config));
        node.put_claim(claim_of(config));
        node::Node::OpenRequest request;
        request.nonces = {"7.0.c1.0", node.challenge("7.0.c1.0"), "00"};
        request.proof = transport::to_hex(transport::session_proof(secret, request.nonces));
        request.client_address = "127.0.0.1";
        static_cast<void>(node.open(request));
        const auto worker = static_cast<pid_t>(node.status().sessions.at(0).pid);
        if (write(ends[1], &worker, sizeof worker) != sizeof worker)
            _exit(1);
        pause();
        _exit(1);
    }
    close(ends[1]);
    pid_t worker = 0;
    BOOST_REQUIRE(read(ends[0], &worker, sizeof worker) == sizeof worker);
    const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, worker, 0));
    BOOST_REQUIRE(pidfd >= 0);
    kill(daemon, SIGKILL);
    waitpid(daemon, nullptr, 0);
    pollfd ended{pidfd, POLLIN, 0};
    BOOST_TEST(poll(&ended, 1, 60000) == 1);
    close(pidfd);
    close(ends[0]);
}

BOOST_AUTO_TEST_CASE(no_claim_in_this_step) {
    unsetenv("VGPU_CLAIM");
    BOOST_CHECK_EXCEPTION(client::open_claim(), client::OpenError, [](const auto& error) {
        return refused(error, CUDA_ERROR_NO_DEVICE, "no vGPU in this job step: ask with --gres=vgpu:N");
    });
    setenv("VGPU_CLAIM", "/nowhere/claim.json", 1);
    BOOST_CHECK_EXCEPTION(client::open_claim(), client::OpenError, [](const auto& error) {
        return refused(error, CUDA_ERROR_NOT_PERMITTED, "/nowhere/claim.json cannot be read");
    });
    const Place place;
    Config config = config_in(place);
    use_claim(place, claim_of(config)); // nobody listens there
    BOOST_CHECK_EXCEPTION(client::open_claim(), client::OpenError, [](const auto& error) {
        return refused(error, CUDA_ERROR_SYSTEM_NOT_READY, "vgpud on g1");
    });
    std::ofstream(place.path() / "claim.json") << "{ no json";
    BOOST_CHECK_EXCEPTION(client::open_claim(), client::OpenError, [](const auto& error) {
        return refused(error, CUDA_ERROR_NOT_PERMITTED, "damaged");
    });
}
