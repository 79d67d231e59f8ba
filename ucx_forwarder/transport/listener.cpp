// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/hello.h"
#include "ucx_forwarder/transport/link.h"

#include <algorithm>
#include <cstring>
#include <list>

namespace vgpu::transport {
namespace {

using namespace std::chrono_literals;

/// Peers that have not yet proved themselves: so many at once, and so long each.
constexpr std::size_t most_candidates = 16;
constexpr auto candidate_time = 3s;

void close_by_force(ucp_ep_h endpoint) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &param);
    if (UCS_PTR_IS_PTR(request))
        ucp_request_free(request);
}

class UcxListener final : public Listener {
public:
    UcxListener(const std::string& address, const Options& options);
    ~UcxListener() override;
    std::uint16_t port() const override { return port_; }
    std::unique_ptr<Connection> accept(Key key, std::chrono::milliseconds deadline) override;

private:
    struct Candidate {
        ucp_ep_h endpoint = nullptr;
        std::string peer;
        std::unique_ptr<Handshake> handshake;
        Link::Clock::time_point until;
        std::optional<Hello> reply;
        bool refused = false;
    };

    static void on_request(ucp_conn_request_h request, void* arg);
    static ucs_status_t on_hello(void*, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*);
    void admit(ucp_conn_request_h request, Key key);
    void drop(std::list<Candidate>::iterator candidate);
    std::unique_ptr<Connection> finish(std::list<Candidate>::iterator candidate);

    const Options options_;
    std::unique_ptr<Link> link_;
    ucp_listener_h listener_ = nullptr;
    std::uint16_t port_ = 0;
    std::vector<ucp_conn_request_h> requests_;
    std::list<Candidate> candidates_;
};

UcxListener::UcxListener(const std::string& address, const Options& options) : options_(options) {
    const SocketAddress local = resolve(address, 0);
    link_ = std::make_unique<Link>(options, devices_for(local, options));
    ucp_listener_params_t params{};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr = ucs_address(local);
    params.conn_handler.cb = on_request;
    params.conn_handler.arg = this;
    if (ucs_status_t status = ucp_listener_create(link_->worker(), &params, &listener_); status != UCS_OK)
        throw TransportError("UCX cannot listen on " + local.text() + " by transport \"" + options.transport +
                             "\": " + ucs_status_string(status));
    ucp_listener_attr_t attributes{};
    attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    ucp_listener_query(listener_, &attributes);
    port_ = ntohs(attributes.sockaddr.ss_family == AF_INET6
                      ? reinterpret_cast<const sockaddr_in6*>(&attributes.sockaddr)->sin6_port
                      : reinterpret_cast<const sockaddr_in*>(&attributes.sockaddr)->sin_port);
    set_hello_handler(link_->worker(), on_hello, this);
}

UcxListener::~UcxListener() {
    while (!candidates_.empty())
        drop(candidates_.begin());
    if (listener_ != nullptr)
        ucp_listener_destroy(listener_);
}

void UcxListener::on_request(ucp_conn_request_h request, void* arg) {
    static_cast<UcxListener*>(arg)->requests_.push_back(request);
}

ucs_status_t UcxListener::on_hello(void* arg, const void*, size_t, void* data, size_t size,
                                   const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxListener*>(arg);
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP))
        return UCS_OK;
    for (auto& candidate : self.candidates_) {
        if (candidate.endpoint != param->reply_ep || candidate.refused)
            continue;
        try {
            if (auto reply = candidate.handshake->receive({static_cast<const std::byte*>(data), size}))
                candidate.reply = reply;
            if (candidate.handshake->done()) // what follows in the same breath is already the client's stream
                self.link_->open(candidate.endpoint, candidate.handshake->tokens().to_client,
                                 candidate.handshake->tokens().to_server);
        } catch (const TransportError&) {
            candidate.refused = true;
        }
    }
    return UCS_OK;
}

void UcxListener::admit(ucp_conn_request_h request, Key key) {
    if (candidates_.size() >= most_candidates) {
        ucp_listener_reject(listener_, request);
        return;
    }
    Candidate candidate;
    ucp_conn_request_attr_t attributes{};
    attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
    if (ucp_conn_request_query(request, &attributes) == UCS_OK) {
        SocketAddress peer;
        peer.storage = attributes.client_address;
        peer.size = peer.storage.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        candidate.peer = peer.text();
    }
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.conn_request = request;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = Link::on_endpoint_error;
    params.err_handler.arg = link_.get();
    if (ucp_ep_create(link_->worker(), &params, &candidate.endpoint) != UCS_OK)
        return;
    candidate.handshake = std::make_unique<Handshake>(Handshake::Role::server, key);
    candidate.until = Link::Clock::now() + candidate_time;
    candidates_.push_back(std::move(candidate));
}

void UcxListener::drop(std::list<Candidate>::iterator candidate) {
    close_by_force(candidate->endpoint);
    candidates_.erase(candidate);
}

std::unique_ptr<Connection> UcxListener::finish(std::list<Candidate>::iterator candidate) {
    link_->name_peer(candidate->peer);
    candidates_.erase(candidate);
    while (!candidates_.empty())
        drop(candidates_.begin());
    ucp_listener_destroy(listener_);
    listener_ = nullptr;
    set_hello_handler(link_->worker(), nullptr, nullptr);
    link_->become_ready();
    return std::move(link_);
}

std::unique_ptr<Connection> UcxListener::accept(Key key, std::chrono::milliseconds deadline) {
    if (!link_)
        throw TransportError("this listener has already accepted its one connection");
    const auto until = Link::Clock::now() + deadline;
    int refused = 0;
    for (;;) {
        progress_or_sleep(link_->worker(), link_->event_fd());
        for (ucp_conn_request_h request : std::exchange(requests_, {}))
            admit(request, key);
        const auto now = Link::Clock::now();
        const auto failed = link_->take_failed();
        for (auto candidate = candidates_.begin(); candidate != candidates_.end();) {
            const auto next = std::next(candidate);
            if (candidate->refused || now > candidate->until ||
                std::ranges::find(failed, candidate->endpoint) != failed.end()) {
                refused += candidate->refused;
                drop(candidate);
            } else if (candidate->reply) {
                post_hello(candidate->endpoint, *std::exchange(candidate->reply, std::nullopt));
                if (candidate->handshake->done())
                    return finish(candidate);
            }
            candidate = next;
        }
        if (link_->lost())
            throw TransportError(link_->why());
        if (now > until)
            throw TransportError("no client that knows the session's key came within " +
                                 std::to_string(deadline.count()) + " ms (" + std::to_string(refused) +
                                 " without the key were dropped)");
    }
}

} // namespace

std::unique_ptr<Listener> listen(const std::string& address, const Options& options) {
    return std::make_unique<UcxListener>(address, options);
}

} // namespace vgpu::transport
