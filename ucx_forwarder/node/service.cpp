// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/node/service.h"

#include "gres_vgpu/control/client.h"
#include "gres_vgpu/control/json.h"
#include "ucx_forwarder/node/metrics.h"

#include <spdlog/spdlog.h>

namespace vgpu::node {
namespace {

using namespace std::chrono_literals;
using control::Peer;
using nlohmann::json;

control::Server::Options options_for(const Config& config, const NodeConfig& settings) {
    control::Server::Options options;
    options.name = settings.name;
    options.port = config.node_port;
    options.munge_socket = config.munge_socket;
    options.threads = 32; // most may wait for workers that start
    options.admins = control::admin_uids(config.slurm_user);
    options.log = [](const std::string& sentence) { spdlog::warn("{}", sentence); };
    return options;
}

std::string text_of(const json& body, const char* name) {
    const auto found = body.find(name);
    if (found == body.end() || !found->is_string())
        throw control::HttpError(400, std::string("the request has no text \"") + name + "\"");
    return found->get<std::string>();
}

template <typename T>
T message_of(const json& body) {
    try {
        return body.get<T>();
    } catch (const json::exception& error) {
        throw control::HttpError(400, error.what());
    }
}

} // namespace

Service::Service(const Config& config, const NodeConfig& settings, Node& node)
    : config_(config), node_(node), server_(options_for(config, settings)) {
    add_routes();
    server_.start();
    registration_ = std::thread([this] { keep_registered(); });
}

Service::~Service() {
    stop_ = true;
    node_.wake();
    registration_.join();
    server_.stop();
}

void Service::add_routes() {
    using Access = control::Server::Access;
    server_.protect("PUT", "/v1/lease", Access::admins, [this](const Peer&, const json& body) {
        node_.put_lease(message_of<control::Lease>(body));
        return json::object();
    });
    server_.protect("DELETE", "/v1/lease", Access::admins, [this](const Peer&, const json& body) {
        node_.remove_lease(text_of(body, "id"));
        return json::object();
    });
    server_.protect("PUT", "/v1/claim", Access::admins, [this](const Peer&, const json& body) {
        node_.put_claim(message_of<control::Claim>(body));
        return json::object();
    });
    server_.protect("DELETE", "/v1/claim", Access::admins, [this](const Peer&, const json& body) {
        node_.remove_claim(text_of(body, "id"));
        return json::object();
    });
    server_.protect("GET", "/v1/status", Access::everyone,
                    [this](const Peer&, const json&) { return json(node_.status()); });
    server_.text("/metrics", [this] { return metrics(node_.status()); });
    // The two of the client runtime; it has no munge, it proves that it knows the claim's secret.
    server_.plain("POST", "/v1/session/challenge", [this](const Peer&, const json& body) {
        return json{{"nonce", node_.challenge(text_of(body, "claim"))}};
    });
    server_.plain("POST", "/v1/session", [this](const Peer& peer, const json& body) {
        Node::OpenRequest request;
        request.nonces = {text_of(body, "claim"), text_of(body, "nonce"), text_of(body, "client_nonce")};
        request.proof = text_of(body, "proof");
        request.client = text_of(body, "client");
        request.client_address = peer.address;
        const auto opened = node_.open(request);
        return json{{"session", opened.session}, {"address", opened.address}, {"port", opened.port}};
    });
}

void Service::keep_registered() {
    const auto controller = control::Client::to_controller(config_);
    std::chrono::milliseconds interval = 2000ms;
    std::string trouble;
    bool registered = false;
    std::uint64_t seen = 0;
    while (!stop_) {
        const auto result = controller.register_node(node_.status());
        if (result.ok()) {
            interval =
                std::clamp<std::chrono::milliseconds>(std::chrono::milliseconds(*result), 200ms, 60000ms);
            if (!registered)
                spdlog::info("registered with vgpuctld on {}", config_.controller_host);
            registered = true;
            trouble.clear();
        } else {
            interval = 2000ms;
            registered = false;
            if (trouble != result.error().message) // once, not every two seconds
                spdlog::warn("not registered with vgpuctld: {}; it is tried again", result.error().message);
            trouble = result.error().message;
        }
        if (stop_)
            break;
        seen = node_.wait_for_change(seen, interval);
    }
}

} // namespace vgpu::node
