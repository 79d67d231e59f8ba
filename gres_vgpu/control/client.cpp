// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/control/client.h"

#include <algorithm>
#include <new>
#include <thread>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <netdb.h>

#include "gres_vgpu/control/envelope.h"
#include "gres_vgpu/control/json.h"
#include "gres_vgpu/control/server.h"

namespace vgpu::control {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using nlohmann::json;

constexpr std::uint64_t max_answer = 64 << 20; // bytes

/// asio's own resolver starts a thread; the caller's process may not like one.
std::vector<tcp::endpoint> resolve(const std::string& host, std::uint16_t port, std::string& why) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    std::vector<tcp::endpoint> out;
    if (int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list); error != 0) {
        why = gai_strerror(error);
        return out;
    }
    for (auto* at = list; at != nullptr; at = at->ai_next) {
        tcp::endpoint endpoint;
        if (at->ai_addrlen > endpoint.capacity())
            continue;
        std::copy_n(reinterpret_cast<const char*>(at->ai_addr), at->ai_addrlen,
                    reinterpret_cast<char*>(endpoint.data()));
        endpoint.resize(at->ai_addrlen);
        out.push_back(endpoint);
    }
    freeaddrinfo(list);
    return out;
}

ErrorKind kind_of(int status) {
    switch (status) {
    case 409:
        return ErrorKind::no_room;
    case 503:
        return ErrorKind::not_ready;
    case 400:
    case 403:
    case 404:
    case 413:
        return ErrorKind::refused;
    default:
        return ErrorKind::internal;
    }
}

std::string seconds(std::chrono::milliseconds time) {
    auto ms = time.count();
    return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

/// One question and its answer over HTTP; the bodies are credentials already.
class Exchange {
public:
    explicit Exchange(const Client::Options& options) : options_(options), stream_(io_) {}

    Result<http::response<http::string_body>> run(const std::string& method, const std::string& path,
                                                  std::string body) {
        std::string why;
        auto endpoints = resolve(options_.address, options_.port, why);
        if (endpoints.empty())
            return no_answer(options_.address + ": " + why);
        beast::error_code error;
        stream_.expires_after(options_.connect_timeout);
        stream_.async_connect(endpoints, [&error](beast::error_code e, const tcp::endpoint&) { error = e; });
        wait();
        if (error)
            return no_answer(error == beast::error::timeout
                                 ? "no connection within " + seconds(options_.connect_timeout)
                                 : error.message());
        http::request<http::string_body> request;
        request.version(11);
        request.method_string(method);
        request.target(path);
        request.set(http::field::host, options_.address);
        request.set(http::field::user_agent, "slurm-vgpu");
        request.set(http::field::content_type, "application/x-munge");
        request.keep_alive(false);
        request.body() = std::move(body);
        request.prepare_payload();
        stream_.expires_after(options_.timeout);
        http::async_write(stream_, request, [&error](beast::error_code e, std::size_t) { error = e; });
        wait();
        if (error)
            return broken(error);
        http::response_parser<http::string_body> parser;
        parser.body_limit(max_answer);
        beast::flat_buffer buffer;
        http::async_read(stream_, buffer, parser, [&error](beast::error_code e, std::size_t) { error = e; });
        wait();
        if (error)
            return broken(error);
        return parser.release();
    }

private:
    void wait() {
        io_.restart();
        io_.run();
    }
    std::string where() const {
        return options_.name + " on " + options_.address + ":" + std::to_string(options_.port);
    }
    Error no_answer(const std::string& why) const {
        return {ErrorKind::unreachable, where() + " does not answer: " + why + "; is it running?"};
    }
    Error broken(beast::error_code error) const {
        return {ErrorKind::unreachable, where() + (error == beast::error::timeout
                                                       ? " did not answer within " + seconds(options_.timeout)
                                                       : " ended the connection: " + error.message())};
    }

    const Client::Options& options_;
    asio::io_context io_{1};
    beast::tcp_stream stream_;
};

Result<json> ask(const Client::Options& options, const std::string& method, const std::string& path,
                 const json& body) {
    const auto where = options.name + " on " + options.address + ":" + std::to_string(options.port);
    Question question{question_to(options.server, method, path), random_hex(16), body};
    auto sealed = seal_question(question, options.munge_socket, options.restrict_to);
    if (!sealed)
        return sealed.error();
    auto response = Exchange(options).run(method, path, *sealed);
    if (!response)
        return response.error();
    auto status = static_cast<int>(response->result_int());
    if ((*response)[http::field::content_type] != "application/x-munge") {
        // Nobody vouches for this; it can be an error only.
        auto parsed = json::parse(response->body(), nullptr, false);
        std::string text = parsed.is_object() && parsed.contains("error") && parsed["error"].is_string()
                               ? parsed["error"].get<std::string>()
                               : "HTTP status " + std::to_string(status);
        auto kind =
            status == 403 || status == 404 || status == 413 ? ErrorKind::refused : ErrorKind::internal;
        return Error{kind, where + " refuses: " + text};
    }
    auto answer = open_answer(response->body(), options.munge_socket);
    if (!answer)
        return Error{answer.error().kind,
                     "the answer of " + where + " cannot be opened: " + answer.error().message};
    if (std::find(options.trusted_uids.begin(), options.trusted_uids.end(), answer->uid) ==
        options.trusted_uids.end())
        return Error{ErrorKind::internal,
                     "the answer of " + where + " comes from uid " + std::to_string(answer->uid) +
                         ", who is neither root nor SlurmUser: another program listens there"};
    if (answer->nonce != question.nonce)
        return Error{ErrorKind::internal, "the answer of " + where + " belongs to another question"};
    if (answer->status == 200)
        return std::move(answer).value().body;
    const auto& error = answer->body;
    return Error{kind_of(answer->status),
                 error.is_object() && error.contains("error") && error["error"].is_string()
                     ? error["error"].get<std::string>()
                     : where + " answers with status " + std::to_string(answer->status)};
}

/// A call whose answer is `read` from JSON.
template <class T, class Read>
Result<T> typed(const Client& client, const Client::Options& options, const char* method, const char* path,
                const json& body, Read read) {
    auto answer = client.call(method, path, body);
    if (!answer)
        return answer.error();
    try {
        return read(*answer);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        return Error{ErrorKind::internal, options.name + " answered " + method + " " + path +
                                              " with what cannot be understood: " + error.what()};
    }
}

Nothing nothing(const json&) {
    return {};
}

/// Asks again while the answer is "not ready", for at most `wait`.
template <class Call>
auto when_ready(std::chrono::milliseconds wait, Call call) {
    const auto end = std::chrono::steady_clock::now() + wait;
    while (true) {
        auto result = call();
        if (result.ok() || result.error().kind != ErrorKind::not_ready ||
            std::chrono::steady_clock::now() >= end)
            return result;
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
}

} // namespace

Client::Client(Options options) : options_(std::move(options)) {}

Client Client::to_controller(const Config& config) {
    Options options;
    options.name = options.server = "vgpuctld";
    options.address = config.controller_address;
    options.port = config.controller_port;
    options.munge_socket = config.munge_socket;
    options.trusted_uids = admin_uids(config.slurm_user);
    return Client(std::move(options));
}

Client Client::to_node(const Config& config, const NodeConfig& node) {
    Options options;
    options.name = "vgpud of " + node.name;
    options.server = node.name;
    options.address = node.address;
    options.port = config.node_port;
    options.munge_socket = config.munge_socket;
    options.trusted_uids = admin_uids(config.slurm_user);
    options.restrict_to = 0; // vgpud starts workers as other users, so it is root
    return Client(std::move(options));
}

Result<json> Client::call(const std::string& method, const std::string& path, const json& body) const {
    try {
        return ask(options_, method, path, body);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        return Error{ErrorKind::internal, "the call to " + options_.name + " failed: " + error.what()};
    }
}

Result<std::vector<Lease>> Client::reserve(const std::vector<Request>& requests) const {
    return when_ready(options_.ready_wait, [&] {
        return typed<std::vector<Lease>>(
            *this, options_, "POST", "/v1/reserve", {{"requests", requests}},
            [](const json& j) { return j.at("leases").get<std::vector<Lease>>(); });
    });
}

Result<Claim> Client::claim(const Request& request) const {
    return when_ready(options_.ready_wait, [&] {
        return typed<Claim>(*this, options_, "POST", "/v1/claim", request,
                            [](const json& j) { return j.get<Claim>(); });
    });
}

Result<unsigned> Client::release(const Job& job, const std::string& node) const {
    return typed<unsigned>(*this, options_, "POST", "/v1/release", {{"job", job}, {"node", node}},
                           [](const json& j) { return j.at("released").get<unsigned>(); });
}

Result<Nothing> Client::release_claim(const std::string& claim_id) const {
    return typed<Nothing>(*this, options_, "POST", "/v1/release_claim", {{"id", claim_id}}, nothing);
}

Result<PoolStatus> Client::status() const {
    return typed<PoolStatus>(*this, options_, "GET", "/v1/status", json::object(),
                             [](const json& j) { return j.get<PoolStatus>(); });
}

Result<Pong> Client::ping() const {
    return typed<Pong>(*this, options_, "GET", "/v1/ping", json::object(), [](const json& j) {
        return Pong{j.at("version").get<std::string>(), j.at("ready").get<bool>(),
                    j.at("uptime_s").get<std::int64_t>()};
    });
}

Result<unsigned> Client::register_node(const NodeStatus& status) const {
    return typed<unsigned>(*this, options_, "POST", "/v1/node", status,
                           [](const json& j) { return j.at("interval_ms").get<unsigned>(); });
}

Result<Nothing> Client::put_lease(const Lease& lease) const {
    return typed<Nothing>(*this, options_, "PUT", "/v1/lease", lease, nothing);
}

Result<Nothing> Client::delete_lease(const std::string& lease_id) const {
    return typed<Nothing>(*this, options_, "DELETE", "/v1/lease", {{"id", lease_id}}, nothing);
}

Result<Nothing> Client::put_claim(const Claim& claim) const {
    return typed<Nothing>(*this, options_, "PUT", "/v1/claim", claim, nothing);
}

Result<Nothing> Client::delete_claim(const std::string& claim_id) const {
    return typed<Nothing>(*this, options_, "DELETE", "/v1/claim", {{"id", claim_id}}, nothing);
}

Result<NodeStatus> Client::node_status() const {
    return typed<NodeStatus>(*this, options_, "GET", "/v1/status", json::object(),
                             [](const json& j) { return j.get<NodeStatus>(); });
}

} // namespace vgpu::control
