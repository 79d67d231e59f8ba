// SPDX-License-Identifier: BSD-3-Clause
// vgpuctld's service behind a real server, asked by the real client, with fake vgpuds.
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>

#include <pwd.h>
#include <unistd.h>

#include "gres_vgpu/control/client.h"
#include "gres_vgpu/control/json.h"
#include "gres_vgpu/pool/service.h"
#include "gres_vgpu/pool/status_table.h"
#include "tests/control/fake_vgpud.h"
#include "tests/control/munged.h"

using namespace vgpu;
using namespace vgpu::control;
using namespace std::chrono_literals;
using nlohmann::json;
using pool::Service;

namespace {

std::string user_name() {
    const passwd* entry = getpwuid(getuid());
    return entry != nullptr ? entry->pw_name : "root";
}

/// Two nodes with two GPUs of 16000 MiB each, vgpuctld, and what Slurm would say.
class Cluster {
public:
    explicit Cluster(bool registered = true, std::chrono::milliseconds start_grace = 60s)
        : g1("g1", 2, 16000, test::munge_socket()), g2("g2", 2, 16000, test::munge_socket()) {
        config.path = "vgpu.conf";
        config.controller_host = config.controller_address = "127.0.0.1";
        config.munge_socket = test::munge_socket();
        config.slurm_user = user_name();
        config.start_grace = start_grace;
        config.job_grace = 0ms;
        config.node_timeout = 60s;
        config.nodes = {{"g1", "127.0.0.1", "", {}, ""}, {"g2", "127.0.0.1", "", {}, ""}};
        start();
        if (registered)
            report();
    }

    /// vgpuctld anew, knowing nothing.
    void start() {
        server.reset();
        service.reset();
        service.emplace(
            config, [this]() -> Result<std::vector<Job>> { return jobs; },
            [](const char*, const std::string&) {});
        Server::Options options;
        options.name = "vgpuctld";
        options.address = "127.0.0.1";
        options.munge_socket = config.munge_socket;
        options.admins = admin_uids(config.slurm_user);
        options.threads = 16;
        server.emplace(std::move(options));
        service->add_routes(*server);
        server->start();
        config.controller_port = server->port();
    }
    void report() {
        BOOST_REQUIRE(client().register_node(g1.status()).ok());
        BOOST_REQUIRE(client().register_node(g2.status()).ok());
    }
    Client client() const { return Client::to_controller(config); }

    Config config;
    test::FakeVgpud g1, g2;
    Result<std::vector<Job>> jobs{std::vector<Job>{}};
    std::optional<Service> service;
    std::optional<Server> server;
};

Request request(std::uint32_t job, unsigned shares, const std::string& node = "c1") {
    Request out;
    out.job = {job, 1000 + job, 0};
    out.uid = getuid();
    out.gid = getgid();
    out.user = "alice";
    out.node = node;
    out.shares = shares;
    return out;
}

template <class T>
T need(Result<T> result) {
    BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? std::string() : result.error().message));
    return std::move(result).value();
}

template <class T>
Error refusal(const Result<T>& result) {
    BOOST_REQUIRE(!result.ok());
    return result.error();
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string where(const Vgpu& v) {
    return v.node + ":" + std::to_string(v.gpu) + " " + std::to_string(v.shares) + "/" +
           std::to_string(v.memory_mib);
}

} // namespace

BOOST_AUTO_TEST_SUITE(vgpuctld)

BOOST_AUTO_TEST_CASE(reserve_first_fit) {
    Cluster c;
    auto first = need(c.client().reserve({request(1, 60)}));
    BOOST_REQUIRE(first.size() == 1u);
    BOOST_TEST(where(first[0].vgpus.at(0)) == "g1:0 60/9600");
    BOOST_TEST(first[0].vgpus[0].uuid == "GPU-g1-0");
    BOOST_TEST(first[0].vgpus[0].port == c.g1.status().port);
    BOOST_TEST(first[0].id.rfind("1.c1.", 0) == 0u);
    BOOST_TEST(where(need(c.client().reserve({request(2, 60)}))[0].vgpus.at(0)) == "g1:1 60/9600");
    BOOST_TEST(where(need(c.client().reserve({request(3, 40)}))[0].vgpus.at(0)) == "g1:0 40/6400");
    BOOST_TEST(where(need(c.client().reserve({request(4, 60)}))[0].vgpus.at(0)) == "g2:0 60/9600");
    BOOST_TEST(c.g1.lease_count() == 3u);
    BOOST_TEST(c.g2.lease_count() == 1u);
    // the same again is the same lease
    BOOST_TEST(need(c.client().reserve({request(1, 60)}))[0].id == first[0].id);
    BOOST_TEST(c.g1.lease_count() == 3u);
}

BOOST_AUTO_TEST_CASE(whole_gpus_over_two_nodes) {
    Cluster c;
    auto leases = need(c.client().reserve({request(1, 300)}));
    BOOST_REQUIRE(leases[0].vgpus.size() == 3u);
    BOOST_TEST(where(leases[0].vgpus[2]) == "g2:0 100/16000");
    BOOST_TEST(c.g1.lease(leases[0].id).has_value());
    BOOST_TEST(c.g2.lease(leases[0].id).has_value());
    BOOST_TEST(need(c.client().release({1, 0, 0})) == 1u);
    BOOST_TEST(c.g1.lease_count() + c.g2.lease_count() == 0u);
}

BOOST_AUTO_TEST_CASE(refusals) {
    Cluster c;
    auto error = refusal(c.client().reserve({request(1, 130)}));
    BOOST_CHECK(error.kind == ErrorKind::refused);
    BOOST_TEST(has(error.message, "130 shares cannot be divided"));
    BOOST_CHECK(refusal(c.client().reserve({})).kind == ErrorKind::refused);
    BOOST_CHECK(refusal(c.client().reserve({request(0, 10)})).kind == ErrorKind::refused);
    BOOST_CHECK(refusal(c.client().reserve({request(1, 10, "")})).kind == ErrorKind::refused);
    BOOST_CHECK(refusal(c.client().reserve({request(1, 0)})).kind == ErrorKind::refused);
    auto claim = refusal(c.client().claim(request(1, 0)));
    BOOST_TEST(has(claim.message, "job 1 holds no lease on c1"));
    auto stranger = c.g1.status();
    stranger.node = "g9";
    BOOST_TEST(
        has(refusal(c.client().register_node(stranger)).message, "the node g9 is in no NodeName line"));
    BOOST_TEST(c.g1.lease_count() == 0u);
}

BOOST_AUTO_TEST_CASE(no_room) {
    Cluster c;
    for (std::uint32_t job = 1; job <= 4; ++job)
        need(c.client().reserve({request(job, 90)}));
    auto error = refusal(c.client().reserve({request(5, 25)}));
    BOOST_CHECK(error.kind == ErrorKind::no_room);
    BOOST_TEST(error.message == "no room: 25 shares asked, at most 10 free on one GPU (g1 gpu 0)");
    BOOST_TEST(need(c.client().release({2, 0, 0})) == 1u);
    BOOST_TEST(where(need(c.client().reserve({request(5, 25)}))[0].vgpus[0]) == "g1:1 25/4000");
    auto memory = request(6, 5);
    memory.memory_mib = 14000;
    BOOST_TEST(has(refusal(c.client().reserve({memory})).message, "no room: 5 shares with 14000 MiB asked"));
}

BOOST_AUTO_TEST_CASE(what_the_pool_can_never_hold) {
    Cluster c;
    auto asked = request(1, 25);
    asked.memory_mib = 20000;
    auto error = refusal(c.client().reserve({asked}));
    BOOST_CHECK(error.kind == ErrorKind::refused);
    BOOST_TEST(error.message == "20000 MiB are more than any GPU of the pool has: ask at most 16000M");
    error = refusal(c.client().reserve({request(1, 500)}));
    BOOST_CHECK(error.kind == ErrorKind::refused);
    BOOST_TEST(error.message == "5 vGPUs need as many GPUs, and the pool has 4: ask fewer");
    need(c.client().reserve({request(1, 25)}));
    BOOST_CHECK(refusal(c.client().claim(asked)).kind == ErrorKind::refused);
    BOOST_TEST(c.g1.lease_count() == 1u);
    c.g1.stop();
    asked.job.id = 2;
    asked.memory_mib = 16000;
    need(c.client().reserve({asked}));
    asked.job.id = 3;
    asked.shares = 300; // that it does not fit on what is up says nothing for good
    BOOST_CHECK(refusal(c.client().reserve({asked})).kind == ErrorKind::no_room);
}

BOOST_AUTO_TEST_CASE(all_nodes_of_a_job_or_none) {
    Cluster c;
    for (std::uint32_t job = 1; job <= 3; ++job)
        need(c.client().reserve({request(job, 100)}));
    auto error = refusal(c.client().reserve({request(4, 80, "c1"), request(4, 80, "c2")}));
    BOOST_CHECK(error.kind == ErrorKind::no_room);
    BOOST_TEST(c.g2.lease_count() == 1u);
    auto both = need(c.client().reserve({request(4, 50, "c1"), request(4, 50, "c2")}));
    BOOST_TEST(both.size() == 2u);
    BOOST_TEST(both[1].request.node == "c2");
    BOOST_TEST(need(c.client().release({4, 0, 0}, "c2")) == 1u);
    BOOST_TEST(need(c.client().release({4, 0, 0})) == 1u);
}

BOOST_AUTO_TEST_CASE(rollback_and_elsewhere) {
    Cluster c;
    c.g1.fail_leases(true);
    BOOST_TEST(where(need(c.client().reserve({request(1, 25)}))[0].vgpus[0]) == "g2:0 25/4000");
    auto error = refusal(c.client().reserve({request(2, 300)}));
    BOOST_CHECK(error.kind == ErrorKind::no_room);
    BOOST_TEST(has(error.message, "the disk is full"));
    BOOST_TEST(c.g1.lease_count() == 0u);
    BOOST_TEST(c.g2.lease_count() == 1u);
    // g2 is written first here, and must be taken back
    c.g1.fail_leases(false);
    c.g2.fail_leases(true);
    refusal(c.client().reserve({request(3, 300)}));
    BOOST_TEST(c.g1.lease_count() == 0u);
    c.g2.fail_leases(false);
    auto status = need(c.client().status());
    BOOST_TEST(status.nodes[0].leases.size() == 0u);
    BOOST_TEST(status.nodes[1].leases.size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_dead_node_gets_nothing) {
    Cluster c;
    auto held = need(c.client().reserve({request(1, 25)}));
    c.g1.stop();
    BOOST_TEST(where(need(c.client().reserve({request(2, 25)}))[0].vgpus[0]) == "g2:0 25/4000");
    auto status = need(c.client().status());
    BOOST_TEST(status.nodes[0].state == "down");
    BOOST_TEST(status.nodes[0].leases.size() == 1u); // kept
    BOOST_TEST(status.nodes[1].state == "up");
    auto error = refusal(c.client().claim(request(1, 25)));
    BOOST_TEST(has(error.message, "does not answer"));
}

BOOST_AUTO_TEST_CASE(claim_of_a_reserved_lease) {
    Cluster c;
    auto lease = need(c.client().reserve({request(1, 50)}))[0];
    auto step = request(1, 20);
    step.step = 3;
    auto claim = need(c.client().claim(step));
    BOOST_TEST(claim.lease == lease.id);
    BOOST_TEST(claim.secret.size() == 64u);
    BOOST_TEST(claim.id.rfind("1.3.c1.", 0) == 0u);
    BOOST_REQUIRE(claim.vgpus.size() == 1u);
    BOOST_TEST(where(claim.vgpus[0]) == "g1:0 20/3200");
    BOOST_TEST(c.g1.claim(claim.id)->secret == claim.secret);
    // once more: the same; another step: another
    BOOST_TEST(need(c.client().claim(step)).secret == claim.secret);
    step.step = 4;
    step.shares = 0;
    auto other = need(c.client().claim(step));
    BOOST_TEST(other.secret != claim.secret);
    BOOST_TEST(where(other.vgpus[0]) == "g1:0 50/8000");
    BOOST_TEST(c.g1.claim_count() == 2u);
    // no secret in a status
    BOOST_TEST(!has(json(need(c.client().status())).dump(), claim.secret));
    BOOST_TEST(need(c.client().status()).nodes[0].claims.size() == 2u);
    BOOST_TEST(c.client().release_claim(claim.id).ok());
    BOOST_TEST(c.client().release_claim(claim.id).ok());
    BOOST_TEST(c.g1.claim_count() == 1u);
    BOOST_TEST(need(c.client().release({1, 0, 0})) == 1u);
    BOOST_TEST(c.g1.claim_count() == 0u);
    BOOST_TEST(need(c.client().release({1, 0, 0})) == 0u);
}

BOOST_AUTO_TEST_CASE(claim_without_a_reserve) {
    Cluster c;
    auto step = request(1, 25);
    step.job.submit_time = 0; // as slurmstepd knows it
    step.memory_mib = 1024;
    auto claim = need(c.client().claim(step));
    BOOST_TEST(where(claim.vgpus[0]) == "g1:0 25/1024");
    BOOST_TEST(c.g1.lease_count() == 1u);
    c.g1.fail_claims(true);
    auto failed = refusal(c.client().claim(request(2, 25)));
    BOOST_TEST(has(failed.message, "the disk is full"));
    BOOST_TEST(c.g1.lease_count() == 1u); // the lease made for it is gone again
}

BOOST_AUTO_TEST_CASE(a_step_asks_more_than_the_lease_holds) {
    Cluster c;
    auto lease = need(c.client().reserve({request(1, 25)}))[0];
    auto step = request(1, 25);
    step.memory_mib = 9000; // reserve could not know: the lease grows where it is
    BOOST_TEST(where(need(c.client().claim(step)).vgpus[0]) == "g1:0 25/9000");
    BOOST_TEST(c.g1.lease(lease.id)->vgpus[0].memory_mib == 9000u);
    // another shape, while the first step is at work
    auto second = request(1, 50);
    second.step = 1;
    second.devices = 2;
    auto error = refusal(c.client().claim(second));
    BOOST_CHECK(error.kind == ErrorKind::no_room);
    BOOST_TEST(has(error.message, "another step is at work there"));
    // and when it has ended
    auto claims = c.g1.status().claims;
    BOOST_REQUIRE(claims.size() == 1u);
    BOOST_TEST(c.client().release_claim(claims[0].id).ok());
    auto claim = need(c.client().claim(second));
    BOOST_REQUIRE(claim.vgpus.size() == 2u);
    BOOST_TEST(where(claim.vgpus[0]) == "g1:0 25/4000");
    BOOST_TEST(where(claim.vgpus[1]) == "g1:1 25/4000");
    BOOST_TEST(c.g1.lease_count() == 1u);
    BOOST_TEST(!c.g1.lease(lease.id).has_value());
}

BOOST_AUTO_TEST_CASE(an_earlier_job_of_the_same_id) {
    Cluster c;
    auto old = need(c.client().reserve({request(1, 25)}))[0];
    auto again = request(1, 50);
    again.job.restarts = 1;
    auto lease = need(c.client().reserve({again}))[0];
    BOOST_TEST(lease.id != old.id);
    BOOST_TEST(c.g1.lease_count() == 1u);
    auto other_user = request(1, 10);
    other_user.job.submit_time = 0;
    other_user.uid = getuid() + 1;
    BOOST_TEST(need(c.client().claim(other_user)).lease != lease.id);
    BOOST_TEST(c.g1.lease_count() == 1u);
    // a late release of the first run does not touch a later one
    auto last = need(c.client().reserve({request(2, 10)}))[0];
    BOOST_TEST(need(c.client().release({2, 999, 0})) == 0u);
    BOOST_TEST(c.g1.lease(last.id).has_value());
}

BOOST_AUTO_TEST_CASE(restart_of_vgpuctld) {
    Cluster c;
    auto lease = need(c.client().reserve({request(1, 25), request(1, 25, "c2")}))[0];
    auto claim = need(c.client().claim(request(1, 25)));
    c.start();
    auto config = c.config;
    auto impatient = Client::to_controller(config);
    BOOST_TEST(!need(impatient.ping()).ready);
    BOOST_CHECK_EXCEPTION(c.service->reserve({request(2, 25)}), HttpError, [](const HttpError& error) {
        return error.status == 503 && has(error.what(), "waits for the vgpud of g1, g2 to report");
    });
    c.report();
    BOOST_TEST(need(c.client().ping()).ready);
    BOOST_TEST(need(c.client().status()).nodes[0].leases.size() == 2u);
    BOOST_TEST(where(need(c.client().reserve({request(2, 75)}))[0].vgpus[0]) ==
               "g1:1 75/12000"); // 50 are taken
    BOOST_TEST(need(c.client().reserve({request(1, 25)}))[0].id == lease.id);
    auto renewed = need(c.client().claim(request(1, 25))); // the old secret is lost
    BOOST_TEST(renewed.id != claim.id);
    BOOST_TEST(renewed.lease == lease.id);
    BOOST_TEST(c.g1.claim_count() == 1u);
    BOOST_TEST(need(c.client().release({1, 0, 0})) == 2u);
}

BOOST_AUTO_TEST_CASE(the_grace_after_a_start_ends) {
    Cluster c(false, 1ms);
    BOOST_TEST(c.client().register_node(c.g2.status()).ok());
    std::this_thread::sleep_for(2ms);
    BOOST_TEST(where(need(c.client().reserve({request(1, 25)}))[0].vgpus[0]) == "g2:0 25/4000");
    BOOST_TEST(need(c.client().status()).nodes[0].state == "unknown");
}

BOOST_AUTO_TEST_CASE(a_release_that_vgpud_missed) {
    Cluster c;
    c.service->start(); // the repair thread
    auto lease = need(c.client().reserve({request(1, 100)}))[0];
    auto before = c.g1.status();
    BOOST_TEST(need(c.client().release({1, 0, 0})) == 1u);
    // vgpud has it still, as after a crash in between
    Client::Options options;
    options.name = options.server = "g1";
    options.address = "127.0.0.1";
    options.port = before.port;
    options.munge_socket = test::munge_socket();
    options.trusted_uids = {getuid()};
    BOOST_TEST(Client(options).put_lease(lease).ok());
    BOOST_TEST(c.client().register_node(c.g1.status()).ok());
    while (c.g1.lease_count() != 0) // ends by the test's own time limit, if at all
        std::this_thread::sleep_for(5ms);
    BOOST_TEST(need(c.client().status()).nodes[0].leases.empty());
}

BOOST_AUTO_TEST_CASE(reconcile) {
    Cluster c;
    need(c.client().reserve({request(1, 25)}));
    need(c.client().reserve({request(2, 25)}));
    auto step = request(3, 25);
    step.job.submit_time = 0;
    need(c.client().claim(step));
    c.jobs = Error{ErrorKind::unreachable, "squeue: it failed"};
    c.service->reconcile();
    c.service->reconcile();
    BOOST_TEST(c.g1.lease_count() == 3u); // no answer frees nothing
    c.jobs = std::vector<Job>{{1, 1001, 0}, {2, 1002, 1}, {3, 5555, 2}, {9, 1, 0}};
    c.service->reconcile();
    c.service->reconcile();
    BOOST_TEST(c.g1.lease_count() == 2u); // job 2 runs again, for the second time
    BOOST_TEST(c.g1.claim_count() == 1u);
    c.jobs = std::vector<Job>{};
    c.service->reconcile();
    BOOST_TEST(c.g1.lease_count() == 0u);
    BOOST_TEST(c.g1.claim_count() == 0u);
}

BOOST_AUTO_TEST_CASE(reconcile_waits_for_the_grace) {
    Cluster c;
    c.config.job_grace = 1h;
    c.start();
    c.report();
    need(c.client().reserve({request(1, 25)}));
    c.service->reconcile();
    c.service->reconcile();
    BOOST_TEST(c.g1.lease_count() == 1u);
}

BOOST_AUTO_TEST_CASE(many_jobs_at_once) {
    Cluster c;
    std::atomic<int> placed{0}, full{0};
    {
        std::vector<std::jthread> threads;
        for (std::uint32_t t = 0; t < 8; ++t)
            threads.emplace_back([&, t] {
                for (std::uint32_t i = 0; i < 6; ++i) {
                    auto made = c.client().reserve({request(1 + t * 6 + i, 10)});
                    if (made.ok())
                        ++placed;
                    else if (made.error().kind == ErrorKind::no_room)
                        ++full;
                }
            });
    }
    BOOST_TEST(placed == 40); // 4 GPUs, 10 each
    BOOST_TEST(full == 8);
    std::map<std::pair<std::string, int>, unsigned> used;
    for (const auto& node : need(c.client().status()).nodes)
        for (const auto& lease : node.leases)
            used[{node.node, lease.vgpus[0].gpu}] += lease.vgpus[0].shares;
    BOOST_TEST(used.size() == 4u);
    for (const auto& [gpu, shares] : used)
        BOOST_TEST(shares == 100u);
    BOOST_TEST(c.g1.lease_count() == 20u);
}

BOOST_AUTO_TEST_CASE(many_tasks_of_one_step) {
    Cluster c;
    std::mutex mutex;
    std::set<std::string> secrets;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 8; ++t)
            threads.emplace_back([&] {
                auto claim = c.client().claim(request(1, 25));
                std::lock_guard lock(mutex);
                secrets.insert(claim.ok() ? claim->secret : claim.error().message);
            });
    }
    BOOST_TEST(secrets.size() == 1u);
    BOOST_TEST(c.g1.lease_count() == 1u);
    BOOST_TEST(c.g1.claim_count() == 1u);
}

BOOST_AUTO_TEST_CASE(status_for_people_and_prometheus) {
    Cluster c;
    auto report = c.g1.status();
    need(c.client().reserve({request(42, 25)}));
    report = c.g1.status();
    report.sessions = {{7, "x", report.leases[0].id, 4711, "c1:12 saxpy", "tcp/eth0", 100, 6, {3 << 20}}};
    BOOST_TEST(c.client().register_node(report).ok());
    auto status = need(c.client().status());
    auto text = pool::status_table(status);
    BOOST_TEST(has(text, "2/2 nodes up, 4 GPUs, 25/400 shares leased, 1 lease, 1 session"));
    BOOST_TEST(has(text, "25/100  4000/16000   GPU-g1-0"));
    BOOST_TEST(has(text, "42   alice(" + std::to_string(getuid()) + ")"));
    BOOST_TEST(has(text, "c1:12 saxpy"));
    BOOST_TEST(has(text, "tcp/eth0   100   6        3.0"));
    auto one = pool::only_nodes(status, {"g2"});
    BOOST_TEST(one.nodes.size() == 1u);
    BOOST_TEST(!has(pool::status_table(one), "saxpy"));
    auto metrics = c.service->metrics_text();
    BOOST_TEST(has(metrics, "vgpu_nodes{state=\"up\"} 2\n"));
    BOOST_TEST(has(metrics, "vgpu_shares 400\n"));
    BOOST_TEST(has(metrics, "vgpu_shares_leased 25\n"));
    BOOST_TEST(has(metrics, "vgpu_memory_leased_bytes 4194304000\n"));
    BOOST_TEST(has(metrics, "vgpu_sessions 1\n"));
    BOOST_TEST(has(metrics, "vgpu_gpu_shares_leased{node=\"g1\",gpu=\"0\"} 25\n"));
}

BOOST_AUTO_TEST_SUITE_END()
