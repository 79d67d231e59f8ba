// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/handshake.h"

#include <algorithm>
#include <cstring>
#include <sodium.h>

namespace vgpu::transport {
namespace {

const unsigned char* raw(const std::byte* p) {
    return reinterpret_cast<const unsigned char*>(p);
}

} // namespace

Handshake::Handshake(Role role, Key key)
    : role_(role), expected_(role == Role::client ? HelloKind::challenge : HelloKind::ask) {
    if (sodium_init() < 0)
        throw TransportError("libsodium cannot start: no source of randomness");
    std::ranges::copy(key, key_.begin());
    randombytes_buf(role == Role::client ? client_nonce_.data() : server_nonce_.data(), nonce_size);
}

Handshake::~Handshake() {
    sodium_memzero(key_.data(), key_.size());
}

Proof Handshake::proof(const char* label) const {
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, raw(key_.data()), key_.size());
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(label), strlen(label) + 1);
    crypto_auth_hmacsha256_update(&state, raw(client_nonce_.data()), nonce_size);
    crypto_auth_hmacsha256_update(&state, raw(server_nonce_.data()), nonce_size);
    Proof result;
    crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(result.data()));
    return result;
}

void Handshake::derive_tokens() {
    const Proof to_server = proof("vgpu token to server"), to_client = proof("vgpu token to client");
    memcpy(&tokens_.to_server, to_server.data(), sizeof tokens_.to_server);
    memcpy(&tokens_.to_client, to_client.data(), sizeof tokens_.to_client);
    // Zero stands for "not yet known".
    tokens_.to_server |= 1;
    tokens_.to_client |= 1;
}

Hello Handshake::ask() const {
    Hello hello;
    hello.nonce = client_nonce_;
    return hello;
}

std::optional<Hello> Handshake::receive(std::span<const std::byte> message) {
    Hello hello;
    if (message.size() != sizeof hello)
        throw TransportError("the peer does not speak slurm-vgpu's protocol");
    memcpy(&hello, message.data(), sizeof hello);
    if (hello.magic != Hello{}.magic)
        throw TransportError("the peer does not speak slurm-vgpu's protocol");
    if (hello.version != Hello{}.version)
        throw TransportError("the peer speaks version " + std::to_string(hello.version) +
                             " of slurm-vgpu's protocol, this end version " +
                             std::to_string(Hello{}.version) + ": install the same version on both nodes");
    if (hello.kind != expected_)
        throw TransportError("the peer's handshake is out of order");
    auto check = [&](const char* label) {
        const Proof expected = proof(label);
        if (sodium_memcmp(expected.data(), hello.proof.data(), proof_size) != 0)
            throw TransportError("the peer does not know the key of this session");
        derive_tokens();
        peer_proved_ = true;
    };
    Hello reply;
    switch (hello.kind) {
    case HelloKind::ask: // server
        client_nonce_ = hello.nonce;
        reply.kind = HelloKind::challenge;
        reply.nonce = server_nonce_;
        reply.proof = proof("vgpu server");
        expected_ = HelloKind::answer;
        return reply;
    case HelloKind::challenge: // client
        server_nonce_ = hello.nonce;
        check("vgpu server");
        reply.kind = HelloKind::answer;
        reply.proof = proof("vgpu client");
        expected_ = HelloKind::welcome;
        return reply;
    case HelloKind::answer: // server
        check("vgpu client");
        reply.kind = HelloKind::welcome;
        reply.proof = proof("vgpu welcome");
        done_ = true;
        return reply;
    case HelloKind::welcome: // client
        check("vgpu welcome");
        done_ = true;
        return std::nullopt;
    }
    throw TransportError("the peer's handshake is out of order");
}

} // namespace vgpu::transport
