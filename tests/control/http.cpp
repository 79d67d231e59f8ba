// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "gres_vgpu/control/client.h"
#include "gres_vgpu/control/envelope.h"
#include "gres_vgpu/control/munge.h"
#include "gres_vgpu/control/server.h"
#include "tests/control/munged.h"

using namespace vgpu;
using namespace vgpu::control;
using namespace std::chrono_literals;
using nlohmann::json;
using test::munge_socket;

namespace {

/// A server with one route of each sort.
class Fixture {
public:
    explicit Fixture(std::vector<uid_t> admins = {getuid()}, std::chrono::milliseconds deadline = 10s) {
        Server::Options options;
        options.name = "g1";
        options.address = "127.0.0.1";
        options.munge_socket = munge_socket();
        options.admins = std::move(admins);
        options.deadline = deadline;
        options.max_body = 100000;
        options.max_plain_body = 1000;
        options.log = [this](const std::string& sentence) {
            std::lock_guard lock(mutex_);
            log_.push_back(sentence);
        };
        server_.emplace(std::move(options));
        server_->protect("POST", "/v1/echo", Server::Access::admins, [](const Peer& peer, const json& body) {
            if (body.contains("throw"))
                throw HttpError(body["throw"].get<int>(), "as you wish");
            return json{{"uid", peer.uid}, {"body", body}, {"address", peer.address}};
        });
        server_->protect("GET", "/v1/status", Server::Access::everyone, [](const Peer&, const json&) {
            return json{{"node", "g1"}};
        });
        server_->protect("POST", "/v1/broken", Server::Access::admins,
                         [](const Peer&, const json&) -> json { throw std::runtime_error("it broke"); });
        server_->protect("GET", "/v1/large", Server::Access::everyone, [](const Peer&, const json&) {
            return json{{"text", std::string(1500000, '"') + "\u00e9"}};
        });
        server_->plain("POST", "/v1/double", [](const Peer&, const json& body) {
            return json{{"twice", 2 * body.at("n").get<int>()}};
        });
        server_->text("/metrics", [] { return std::string("vgpu_up 1\n"); });
        server_->start();
    }

    Client::Options options() const {
        Client::Options options;
        options.name = "vgpud of g1";
        options.server = "g1";
        options.address = "127.0.0.1";
        options.port = server_->port();
        options.munge_socket = munge_socket();
        options.trusted_uids = {getuid()};
        return options;
    }
    Client client() const { return Client(options()); }
    Server& server() { return *server_; }
    std::vector<std::string> log() {
        std::lock_guard lock(mutex_);
        return log_;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> log_;
    std::optional<Server> server_;
};

/// Sends the text as it is and returns all that comes back until the server ends the connection.
std::string raw(std::uint16_t port, const std::string& text) {
    boost::asio::io_context io;
    boost::asio::ip::tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    boost::system::error_code error;
    boost::asio::write(socket, boost::asio::buffer(text), error);
    std::string out;
    boost::asio::read(socket, boost::asio::dynamic_buffer(out), error);
    return out;
}

std::string post(const std::string& path, const std::string& body) {
    return "POST " + path +
           " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(munge)

BOOST_AUTO_TEST_CASE(round_trip) {
    std::string payload("with a \0 in it", 14);
    auto credential = munge_encode(payload, munge_socket(), std::nullopt);
    BOOST_REQUIRE(credential.ok());
    BOOST_TEST(!has(*credential, "with"));
    auto opened = munge_decode(*credential, munge_socket());
    BOOST_REQUIRE(opened.ok());
    BOOST_TEST(opened->payload == payload);
    BOOST_TEST(opened->uid == getuid());
    BOOST_TEST(opened->gid == getgid());
}

BOOST_AUTO_TEST_CASE(replayed) {
    auto credential = munge_encode("x", munge_socket(), std::nullopt);
    BOOST_REQUIRE(credential.ok());
    BOOST_TEST(munge_decode(*credential, munge_socket()).ok());
    auto again = munge_decode(*credential, munge_socket());
    BOOST_REQUIRE(!again.ok());
    BOOST_CHECK(again.error().kind == ErrorKind::refused);
    BOOST_TEST(again.error().message == "munge: this credential was used before (replayed)");
}

BOOST_AUTO_TEST_CASE(pieces_of_two_answers) {
    auto pieces = [](const std::string& nonce) {
        auto sealed =
            seal_answer({nonce, 200, json{{"a", std::string(300000, 'x')}}, 0}, munge_socket(), getuid());
        BOOST_REQUIRE(sealed.ok());
        auto cut = sealed->find('\n');
        BOOST_REQUIRE(cut != std::string::npos);
        return std::pair(sealed->substr(0, cut), sealed->substr(cut + 1));
    };
    auto a = pieces("a"), b = pieces("b"), c = pieces("c");
    BOOST_TEST(!open_answer(a.first + "\n" + b.second, munge_socket()).ok());
    BOOST_TEST(!open_answer(c.second + "\n" + c.first, munge_socket()).ok());
    BOOST_TEST(!open_answer(b.first, munge_socket()).ok());
}

BOOST_AUTO_TEST_CASE(for_another_uid) {
    auto credential = munge_encode("x", munge_socket(), getuid() + 1);
    BOOST_REQUIRE(credential.ok());
    auto opened = munge_decode(*credential, munge_socket());
    BOOST_REQUIRE(!opened.ok());
    BOOST_TEST(has(opened.error().message, "meant for another user"));
}

BOOST_AUTO_TEST_CASE(forged) {
    auto credential = munge_encode("payload", munge_socket(), std::nullopt);
    BOOST_REQUIRE(credential.ok());
    auto text = *credential;
    auto& c = text[text.size() / 2];
    c = c == 'A' ? 'B' : 'A';
    BOOST_TEST(!munge_decode(text, munge_socket()).ok());
    BOOST_TEST(!munge_decode("MUNGE:nonsense:", munge_socket()).ok());
    BOOST_TEST(!munge_decode("", munge_socket()).ok());
}

BOOST_AUTO_TEST_CASE(of_another_key) {
    test::Munged other;
    auto credential = munge_encode("x", other.socket(), std::nullopt);
    BOOST_REQUIRE(credential.ok());
    auto opened = munge_decode(*credential, munge_socket());
    BOOST_REQUIRE(!opened.ok());
    BOOST_TEST(has(opened.error().message, "have the two machines the same munge key?"));
}

BOOST_AUTO_TEST_CASE(no_munged) {
    auto credential = munge_encode("x", "/nonexistent/socket", std::nullopt);
    BOOST_REQUIRE(!credential.ok());
    BOOST_CHECK(credential.error().kind == ErrorKind::unreachable);
    BOOST_TEST(has(credential.error().message,
                   "is munged running on this machine with the socket /nonexistent/socket?"));
}

BOOST_AUTO_TEST_CASE(too_long) {
    auto credential = munge_encode(std::string(2 << 20, 'x'), munge_socket(), std::nullopt);
    BOOST_REQUIRE(!credential.ok());
    BOOST_TEST(has(credential.error().message, "longer than munge takes"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http)

BOOST_AUTO_TEST_CASE(protected_call) {
    Fixture fixture;
    auto answer = fixture.client().call("POST", "/v1/echo", {{"a", 1}});
    BOOST_REQUIRE_MESSAGE(answer.ok(), (answer.ok() ? std::string() : answer.error().message));
    BOOST_TEST((*answer)["uid"] == getuid());
    BOOST_TEST((*answer)["body"]["a"] == 1);
    BOOST_TEST((*answer)["address"] == "127.0.0.1");
    auto status = fixture.client().node_status();
    BOOST_REQUIRE(status.ok());
    BOOST_TEST(status->node == "g1");
    BOOST_TEST(fixture.log().empty());
}

BOOST_AUTO_TEST_CASE(an_answer_longer_than_munge_takes) {
    Fixture fixture;
    auto answer = fixture.client().call("GET", "/v1/large", json::object());
    BOOST_REQUIRE_MESSAGE(answer.ok(), (answer.ok() ? std::string() : answer.error().message));
    BOOST_TEST(((*answer)["text"].get<std::string>() == std::string(1500000, '"') + "\u00e9"));
}

BOOST_AUTO_TEST_CASE(statuses_become_kinds) {
    Fixture fixture;
    const std::pair<int, ErrorKind> cases[] = {{400, ErrorKind::refused},   {403, ErrorKind::refused},
                                               {404, ErrorKind::refused},   {409, ErrorKind::no_room},
                                               {503, ErrorKind::not_ready}, {500, ErrorKind::internal}};
    for (auto [status, kind] : cases) {
        auto answer = fixture.client().call("POST", "/v1/echo", {{"throw", status}});
        BOOST_REQUIRE(!answer.ok());
        BOOST_CHECK(answer.error().kind == kind);
        BOOST_TEST(answer.error().message == "as you wish");
    }
    auto broken = fixture.client().call("POST", "/v1/broken", json::object());
    BOOST_REQUIRE(!broken.ok());
    BOOST_TEST(broken.error().message == "it broke");
    BOOST_TEST(fixture.log().size() == 5u); // but for 409 and 503
    auto unknown = fixture.client().call("POST", "/v1/unknown", json::object());
    BOOST_REQUIRE(!unknown.ok());
    BOOST_TEST(has(unknown.error().message, "g1 does not know POST /v1/unknown"));
}

BOOST_AUTO_TEST_CASE(a_uid_that_is_no_admin) {
    Fixture fixture({getuid() + 1});
    auto answer = fixture.client().call("POST", "/v1/echo", json::object());
    BOOST_REQUIRE(!answer.ok());
    BOOST_CHECK(answer.error().kind == ErrorKind::refused);
    BOOST_TEST(answer.error().message == "uid " + std::to_string(getuid()) +
                                             " may not POST /v1/echo at g1: only root and SlurmUser may");
    BOOST_TEST(fixture.client().node_status().ok()); // open to everyone
}

BOOST_AUTO_TEST_CASE(an_answer_from_a_stranger) {
    Fixture fixture;
    auto options = fixture.options();
    options.trusted_uids = {getuid() + 1};
    auto answer = Client(options).node_status();
    BOOST_REQUIRE(!answer.ok());
    BOOST_CHECK(answer.error().kind == ErrorKind::internal);
    BOOST_TEST(has(answer.error().message, "neither root nor SlurmUser"));
}

BOOST_AUTO_TEST_CASE(a_request_restricted_to_another_uid) {
    Fixture fixture;
    auto options = fixture.options();
    options.restrict_to = getuid() + 1;
    auto answer = Client(options).call("POST", "/v1/echo", json::object());
    BOOST_REQUIRE(!answer.ok());
    BOOST_CHECK(answer.error().kind == ErrorKind::refused);
    BOOST_TEST(has(answer.error().message, "meant for another user"));
}

BOOST_AUTO_TEST_CASE(a_replayed_request) {
    Fixture fixture;
    auto sealed = seal_question({"g1 POST /v1/echo", "00", {{"a", 1}}, 0, 0}, munge_socket(), std::nullopt);
    BOOST_REQUIRE(sealed.ok());
    BOOST_TEST(has(raw(fixture.server().port(), post("/v1/echo", *sealed)), "200 OK"));
    auto second = raw(fixture.server().port(), post("/v1/echo", *sealed));
    BOOST_TEST(has(second, "403 Forbidden"));
    BOOST_TEST(has(second, "replayed"));
}

BOOST_AUTO_TEST_CASE(a_credential_for_another_route_or_server) {
    Fixture fixture;
    for (auto to : {"g1 GET /v1/status", "g2 POST /v1/echo", "g1 PUT /v1/echo", ""}) {
        auto sealed = seal_question({to, "00", json::object(), 0, 0}, munge_socket(), std::nullopt);
        BOOST_REQUIRE(sealed.ok());
        auto response = raw(fixture.server().port(), post("/v1/echo", *sealed));
        BOOST_TEST(has(response, "403 Forbidden"));
        auto answer = open_answer(response.substr(response.find("\r\n\r\n") + 4), munge_socket());
        BOOST_REQUIRE(answer.ok());
        BOOST_TEST(has(answer->body["error"].get<std::string>(), "the credential is meant for"));
    }
}

BOOST_AUTO_TEST_CASE(no_credential_at_all) {
    Fixture fixture;
    auto response = raw(fixture.server().port(), post("/v1/echo", "{\"a\":1}"));
    BOOST_TEST(has(response, "403 Forbidden"));
    auto credential = munge_encode("[1,2", munge_socket(), std::nullopt);
    BOOST_REQUIRE(credential.ok());
    BOOST_TEST(has(raw(fixture.server().port(), post("/v1/echo", *credential)), "does not hold a question"));
}

BOOST_AUTO_TEST_CASE(plain_and_text) {
    Fixture fixture;
    auto port = fixture.server().port();
    BOOST_TEST(has(raw(port, post("/v1/double", "{\"n\":21}")), "{\"twice\":42}"));
    BOOST_TEST(has(raw(port, post("/v1/double", "{\"n\":\"x\"}")), "400 Bad Request"));
    BOOST_TEST(has(raw(port, post("/v1/double", "{")), "400 Bad Request"));
    BOOST_TEST(has(raw(port, post("/v1/double", std::string(1001, ' '))), "413 "));
    auto metrics = raw(port, "GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    BOOST_TEST(has(metrics, "text/plain"));
    BOOST_TEST(has(metrics, "vgpu_up 1\n"));
    BOOST_TEST(has(raw(port, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), "404 Not Found"));
}

BOOST_AUTO_TEST_CASE(two_requests_on_one_connection) {
    Fixture fixture;
    auto get = [](const char* connection) {
        return "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: " + std::string(connection) + "\r\n\r\n";
    };
    auto both = raw(fixture.server().port(), get("keep-alive") + get("close"));
    auto first = both.find("vgpu_up 1");
    BOOST_REQUIRE(first != std::string::npos);
    BOOST_TEST(both.find("vgpu_up 1", first + 1) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_no_http) {
    Fixture fixture;
    auto port = fixture.server().port();
    BOOST_TEST(has(raw(port, "hello\r\n\r\n"), "400 Bad Request"));
    BOOST_TEST(has(raw(port, "GET /" + std::string(10000, 'a') + " HTTP/1.1\r\n\r\n"), "431 "));
    BOOST_TEST(has(raw(port, "POST /v1/echo HTTP/1.1\r\nContent-Length: 100001\r\n\r\n"), "413 "));
    BOOST_TEST(fixture.client().node_status().ok());
}

BOOST_AUTO_TEST_CASE(a_request_that_does_not_end) {
    Fixture fixture({getuid()}, 100ms);
    BOOST_TEST(raw(fixture.server().port(), "POST /v1/double HTTP/1.1\r\nContent-Length: 10\r\n\r\n{") == "");
    auto log = fixture.log();
    for (; log.empty(); log = fixture.log()) // it is written after the connection's end
        std::this_thread::sleep_for(1ms);
    BOOST_REQUIRE(log.size() == 1u);
    BOOST_TEST(has(log[0], "not complete in time"));
}

BOOST_AUTO_TEST_CASE(nobody_listens) {
    std::uint16_t port;
    {
        Fixture fixture;
        port = fixture.server().port();
    }
    Client::Options options;
    options.name = options.server = "vgpuctld";
    options.address = "localhost";
    options.port = port;
    options.munge_socket = munge_socket();
    auto answer = Client(options).ping();
    BOOST_REQUIRE(!answer.ok());
    BOOST_CHECK(answer.error().kind == ErrorKind::unreachable);
    BOOST_TEST(answer.error().message == "vgpuctld on localhost:" + std::to_string(port) +
                                             " does not answer: Connection refused; is it running?");
    options.address = "no-such-host.invalid";
    answer = Client(options).ping();
    BOOST_REQUIRE(!answer.ok());
    BOOST_TEST(has(answer.error().message, "does not answer: no-such-host.invalid: "));
}

BOOST_AUTO_TEST_CASE(a_server_that_is_silent) {
    boost::asio::io_context io;
    boost::asio::ip::tcp::acceptor silent(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
    Client::Options options;
    options.name = options.server = "vgpuctld";
    options.address = "127.0.0.1";
    options.port = silent.local_endpoint().port();
    options.munge_socket = munge_socket();
    options.timeout = 200ms;
    auto answer = Client(options).ping();
    BOOST_REQUIRE(!answer.ok());
    BOOST_CHECK(answer.error().kind == ErrorKind::unreachable);
    BOOST_TEST(has(answer.error().message, "did not answer within 200 ms"));
}

BOOST_AUTO_TEST_CASE(the_port_is_taken) {
    Fixture fixture;
    Server::Options options;
    options.name = "vgpuctld";
    options.address = "127.0.0.1";
    options.port = fixture.server().port();
    Server second(options);
    try {
        second.start();
        BOOST_ERROR("listens on a port in use");
    } catch (const std::runtime_error& error) {
        BOOST_TEST(has(error.what(), "vgpuctld cannot listen on 127.0.0.1:"));
        BOOST_TEST(has(error.what(), "Address already in use"));
    }
}

BOOST_AUTO_TEST_CASE(many_at_once) {
    Fixture fixture;
    std::atomic<int> good{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 10; ++i) {
                auto answer = fixture.client().call("POST", "/v1/echo", {{"n", t * 100 + i}});
                if (answer.ok() && (*answer)["body"]["n"] == t * 100 + i)
                    ++good;
            }
        });
    threads.clear();
    BOOST_TEST(good == 80);
}

BOOST_AUTO_TEST_SUITE_END()
