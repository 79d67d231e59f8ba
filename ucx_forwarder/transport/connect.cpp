// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/hello.h"
#include "ucx_forwarder/transport/inheritance.h"
#include "ucx_forwarder/transport/link.h"

namespace vgpu::transport {
namespace {

struct Client {
    Handshake handshake;
    Link& link;
    ucp_ep_h endpoint = nullptr;
    std::optional<Hello> reply;
    std::string fault;

    static ucs_status_t on_hello(void* arg, const void*, size_t, void* data, size_t size,
                                 const ucp_am_recv_param_t*) {
        auto& self = *static_cast<Client*>(arg);
        try {
            if (auto reply = self.handshake.receive({static_cast<const std::byte*>(data), size}))
                self.reply = reply;
            if (self.handshake.peer_proved())
                self.link.open(self.endpoint, self.handshake.tokens().to_server,
                               self.handshake.tokens().to_client);
        } catch (const TransportError& error) {
            self.fault = error.what();
        }
        return UCS_OK;
    }
};

} // namespace

std::unique_ptr<Connection> connect(const std::string& address, std::uint16_t port, Key key,
                                    const Options& options, std::chrono::milliseconds deadline) {
    const auto until = Link::Clock::now() + deadline;
    const SocketAddress peer = resolve(address, port);
    const std::string devices = devices_for(local_address_towards(peer), options);
    const NewSockets sockets;
    auto link = std::make_unique<Link>(options, devices);
    link->name_peer(peer.text());
    Client client{{Handshake::Role::client, key}, *link, nullptr, {}, {}};
    set_hello_handler(link->worker(), Client::on_hello, &client);

    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = ucs_address(peer);
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = Link::on_endpoint_error;
    params.err_handler.arg = link.get();
    auto failed = [&](const std::string& why) {
        return TransportError("cannot connect to the worker at " + peer.text() + " by transport \"" +
                              options.transport + "\" on device " + devices + ": " + why);
    };
    if (ucs_status_t status = ucp_ep_create(link->worker(), &params, &client.endpoint); status != UCS_OK)
        throw failed(ucs_status_string(status));
    link->open(client.endpoint, 0, 0);
    post_hello(client.endpoint, client.handshake.ask());
    while (!client.handshake.done()) {
        progress_or_sleep(link->worker(), link->event_fd());
        if (client.reply)
            post_hello(client.endpoint, *std::exchange(client.reply, std::nullopt));
        if (!client.fault.empty())
            throw failed(client.fault);
        if (link->lost())
            throw failed(link->why());
        if (Link::Clock::now() > until)
            throw failed("no answer within " + std::to_string(deadline.count()) + " ms");
    }
    set_hello_handler(link->worker(), nullptr, nullptr);
    link->become_ready();
    sockets.close_on_exec(peer);
    return link;
}

} // namespace vgpu::transport
