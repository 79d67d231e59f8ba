// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/session_open.h"

#include "gres_vgpu/control/json.h"
#include "ucx_forwarder/transport/session_key.h"

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace vgpu::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::chrono::seconds deadline_per_node{30};

/// What the claim's file says. The client reads no other configuration.
struct ClaimFile {
    control::Claim claim;
    std::string transport = "auto";
    std::string net_devices; ///< empty: by the route
    std::chrono::milliseconds peer_timeout{4000};
};

/// One GPU node of the claim.
struct NodePart {
    std::string node;
    std::vector<control::Vgpu> vgpus;
    std::vector<int> devices;
};

OpenError not_there(const std::string& sentence) {
    return OpenError(CUDA_ERROR_SYSTEM_NOT_READY, sentence);
}

/// What vgpud answered with an HTTP status other than 200.
struct Refused : OpenError {
    Refused(const std::string& sentence, unsigned http_status_)
        : OpenError(http_status_ == 403 || http_status_ == 404 ? CUDA_ERROR_NOT_PERMITTED
                                                               : CUDA_ERROR_SYSTEM_NOT_READY,
                    sentence),
          http_status(http_status_) {}
    unsigned http_status;
};

/// A POST to vgpud, ended by the deadline whatever happens.
class Post {
public:
    Post(const std::string& node, const std::string& address, std::uint16_t port)
        : node_(node), address_(address), port_(port) {}

    json operator()(const std::string& path, const json& body, Clock::time_point until) const {
        asio::io_context io;
        beast::tcp_stream stream(io);
        asio::ip::tcp::resolver resolver(io);
        beast::flat_buffer buffer;
        http::request<http::string_body> request(http::verb::post, path, 11);
        request.set(http::field::host, address_);
        request.set(http::field::content_type, "application/json");
        request.set(http::field::connection, "close");
        request.body() = body.dump(-1, ' ', false, json::error_handler_t::replace);
        request.prepare_payload();
        http::response_parser<http::string_body> parser;
        parser.body_limit(1 << 20);
        beast::error_code result = asio::error::timed_out;
        const char* step = "resolve the name";
        auto finish = [&](beast::error_code error) { result = error; };
        stream.expires_at(until);
        resolver.async_resolve(
            address_, std::to_string(port_), [&](beast::error_code error, const auto& endpoints) {
                if (error)
                    return finish(error);
                step = "connect";
                stream.async_connect(endpoints, [&](beast::error_code error, const auto&) {
                    if (error)
                        return finish(error);
                    step = "ask";
                    http::async_write(stream, request, [&](beast::error_code error, std::size_t) {
                        if (error)
                            return finish(error);
                        step = "get an answer";
                        http::async_read(stream, buffer, parser,
                                         [&](beast::error_code error, std::size_t) { finish(error); });
                    });
                });
            });
        io.run_until(until);
        if (result)
            throw not_there(
                "vgpud on " + node_ + " (" + address_ + ":" + std::to_string(port_) +
                ") is not reached, cannot " + step + ": " +
                (result == beast::error::timeout ? std::string("time is over") : result.message()));
        const auto& response = parser.get();
        const json answer = json::parse(response.body(), nullptr, false);
        if (response.result() != http::status::ok)
            throw Refused("vgpud on " + node_ + " refuses: " +
                              (answer.is_object() ? answer.value("error", "no reason given")
                                                  : "HTTP status " + std::to_string(response.result_int())),
                          response.result_int());
        if (!answer.is_object())
            throw not_there("vgpud on " + node_ + " answered what is no JSON object");
        return answer;
    }

private:
    const std::string &node_, &address_;
    std::uint16_t port_;
};

std::string program_name() {
    std::string name;
    std::ifstream("/proc/self/comm") >> name;
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    return std::string(host) + ":" + std::to_string(getpid()) + " " + name;
}

json open_at_vgpud(const ClaimFile& file, const NodePart& session, transport::SessionNonces& nonces,
                   Clock::time_point until) {
    const control::Vgpu& first = session.vgpus.front();
    const Post post(session.node, first.address, first.port);
    for (;;) {
        nonces.claim = file.claim.id;
        nonces.nonce = post("/v1/session/challenge", {{"claim", nonces.claim}}, until).at("nonce");
        nonces.client_nonce = transport::random_hex(32);
        const json body{{"claim", nonces.claim},
                        {"nonce", nonces.nonce},
                        {"client_nonce", nonces.client_nonce},
                        {"proof", transport::to_hex(transport::session_proof(file.claim.secret, nonces))},
                        {"client", program_name()}};
        try {
            return post("/v1/session", body, until);
        } catch (const Refused& refused) {
            // 503: many start at this moment.
            if (refused.http_status != 503 || Clock::now() + std::chrono::milliseconds(200) > until)
                throw;
        }
        usleep(200000);
    }
}

std::unique_ptr<transport::Connection> open_one(const ClaimFile& file, const NodePart& session,
                                                std::chrono::milliseconds deadline) {
    const auto until = Clock::now() + deadline;
    try {
        transport::SessionNonces nonces;
        const json opened = open_at_vgpud(file, session, nonces, until);
        const auto key = transport::session_key(file.claim.secret, nonces);
        transport::Options options;
        options.transport = file.transport;
        options.net_devices = file.net_devices;
        options.peer_timeout = file.peer_timeout;
        options.heartbeat =
            std::min<std::chrono::milliseconds>(std::chrono::seconds(1), file.peer_timeout / 4);
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        return transport::connect(opened.at("address").get<std::string>(),
                                  opened.at("port").get<std::uint16_t>(), transport::Key(key), options,
                                  std::max(std::chrono::milliseconds(1000), left));
    } catch (const json::exception& error) {
        throw not_there("vgpud on " + session.node +
                        " answered what this client does not understand: " + error.what());
    } catch (const transport::TransportError& error) {
        throw not_there(std::string(error.what()) + " (GPU node " + session.node + ")");
    } catch (const std::invalid_argument& error) { // the secret
        throw OpenError(CUDA_ERROR_NOT_PERMITTED, error.what());
    }
}

ClaimFile read_claim() {
    const char* path = std::getenv("VGPU_CLAIM");
    if (path == nullptr || *path == '\0')
        throw OpenError(CUDA_ERROR_NO_DEVICE, "no vGPU in this job step: ask with --gres=vgpu:N");
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in)
        throw OpenError(CUDA_ERROR_NOT_PERMITTED, std::string("the step's vGPU claim ") + path +
                                                      " cannot be read: " + strerror(errno) +
                                                      " (the step has ended, or it is another user's)");
    try {
        const json content = json::parse(text.str());
        ClaimFile file;
        file.claim = content.at("claim").get<control::Claim>();
        file.transport = content.value("transport", file.transport);
        file.net_devices = content.value("net_devices", file.net_devices);
        file.peer_timeout =
            std::chrono::milliseconds(content.value("peer_timeout_ms", file.peer_timeout.count()));
        if (file.claim.vgpus.empty() || file.claim.secret.empty())
            throw OpenError(CUDA_ERROR_NOT_PERMITTED,
                            std::string("the step's vGPU claim ") + path + " names no vGPU or has no secret");
        return file;
    } catch (const json::exception& error) {
        throw OpenError(CUDA_ERROR_NOT_PERMITTED,
                        std::string("the step's vGPU claim ") + path + " is damaged: " + error.what());
    }
}

} // namespace

std::vector<OpenedNode> open_claim() {
    const ClaimFile file = read_claim();
    std::vector<NodePart> parts;
    for (std::size_t device = 0; device < file.claim.vgpus.size(); ++device) {
        const control::Vgpu& vgpu = file.claim.vgpus[device];
        auto part = std::ranges::find(parts, vgpu.node, &NodePart::node);
        if (part == parts.end())
            part = parts.insert(part, NodePart{vgpu.node, {}, {}});
        part->vgpus.push_back(vgpu);
        part->devices.push_back(static_cast<int>(device));
    }
    std::vector<OpenedNode> opened;
    for (const auto& part : parts)
        opened.push_back({part.node, open_one(file, part, deadline_per_node), part.devices});
    return opened;
}

} // namespace vgpu::client
