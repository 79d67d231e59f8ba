// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>

#include "gres_vgpu/control/json.h"

using namespace vgpu::control;
using nlohmann::json;

namespace {

NodeStatus full() {
    Request request{{42, 1764520000, 3}, 1000, 1001, "alice", "c1", 4294967291u, 25, 1, 1024};
    Vgpu vgpu{"g1", "10.0.0.1", 6831, 2, "GPU-1", "Soft", 25, 1024};
    NodeStatus status;
    status.node = "g1";
    status.address = "10.0.0.1";
    status.port = 6831;
    status.gpus = {{2, "GPU-1", "Soft", "0000:01:00.0", 16384}};
    status.leases = {{"42.c1.abc", request, {vgpu}}};
    status.claims = {{"42.0.c1.abc", "42.c1.abc", "5ec4e7", request, {vgpu}}};
    status.sessions = {{7, "42.0.c1.abc", "42.c1.abc", 4711, "c1:12 saxpy", "tcp/eth0", 100, 6, {4096}}};
    status.version = "0.1.0";
    status.state = "up";
    return status;
}

} // namespace

BOOST_AUTO_TEST_SUITE(messages)

BOOST_AUTO_TEST_CASE(round_trip) {
    PoolStatus pool{10, {full()}};
    json first = pool;
    auto again = json::parse(first.dump()).get<PoolStatus>();
    BOOST_TEST(json(again) == first);
    BOOST_TEST(again.shares_per_gpu == 10u);
    const auto& node = again.nodes.at(0);
    BOOST_TEST(node.gpus.at(0).memory_mib == 16384u);
    BOOST_TEST(node.leases.at(0).request.job.submit_time == 1764520000);
    BOOST_TEST(node.leases.at(0).request.step == 4294967291u);
    BOOST_TEST(node.leases.at(0).vgpus.at(0).gpu == 2);
    BOOST_TEST(node.claims.at(0).secret == "5ec4e7");
    BOOST_TEST(node.sessions.at(0).calls_awaited == 6u);
    BOOST_TEST(node.sessions.at(0).memory_used.at(0) == 4096u);
}

BOOST_AUTO_TEST_CASE(empty_secret_is_left_out) {
    Claim claim;
    BOOST_TEST(!json(claim).contains("secret"));
}

BOOST_AUTO_TEST_CASE(other_versions) {
    auto request = json::parse(R"({"shares": 5, "colour": "red", "job": {"id": 1}})").get<Request>();
    BOOST_TEST(request.shares == 5u);
    BOOST_TEST(request.job.id == 1u);
    BOOST_TEST(request.devices == 0u);
    BOOST_TEST(request.node == "");
}

BOOST_AUTO_TEST_CASE(wrong_types) {
    BOOST_CHECK_THROW(json::parse(R"({"shares": "many"})").get<Request>(), json::exception);
    BOOST_CHECK_THROW(json::parse(R"([1])").get<Request>(), json::exception);
    BOOST_CHECK_THROW(json::parse(R"(null)").get<Lease>(), json::exception);
    BOOST_CHECK_THROW(json::parse(R"({"vgpus": {"gpu": 1}})").get<Lease>(), json::exception);
}

BOOST_AUTO_TEST_SUITE_END()
