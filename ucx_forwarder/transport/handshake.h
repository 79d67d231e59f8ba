// SPDX-License-Identifier: BSD-3-Clause
// How two ends that know a key prove it to each other. Three messages: the client's nonce; the server's nonce
// and proof; the client's proof. Pure logic, no I/O.
#pragma once

#include "ucx_forwarder/transport/connection.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace vgpu::transport {

/// What the ends know of each other once the handshake is done.
struct Tokens {
    std::uint64_t to_server = 0; ///< in every message that the client sends
    std::uint64_t to_client = 0;
};

constexpr std::size_t nonce_size = 32;
constexpr std::size_t proof_size = 32;
using Nonce = std::array<std::byte, nonce_size>;
using Proof = std::array<std::byte, proof_size>;

enum class HelloKind : std::uint32_t { ask = 1, challenge = 2, answer = 3, welcome = 4 };

struct Hello {
    std::uint32_t magic = 0x75706776; ///< "vgpu"
    std::uint32_t version = 1;
    HelloKind kind = HelloKind::ask;
    std::uint32_t unused = 0;
    Nonce nonce{};
    Proof proof{};
};

class Handshake {
public:
    enum class Role { client, server };
    Handshake(Role role, Key key);
    ~Handshake();
    Handshake(const Handshake&) = delete;
    Handshake& operator=(const Handshake&) = delete;

    /// Client: the first message.
    Hello ask() const;
    /// What to answer to a message of the peer, if anything. Throws TransportError when the peer does not
    /// know the key or speaks another version; then it must be dropped.
    std::optional<Hello> receive(std::span<const std::byte> message);
    /// The peer has proved itself, and tokens() are valid.
    bool peer_proved() const { return peer_proved_; }
    /// Both know that the other is content; the client may return to its caller.
    bool done() const { return done_; }
    const Tokens& tokens() const { return tokens_; }

private:
    Proof proof(const char* label) const;
    void derive_tokens();

    Role role_;
    std::array<std::byte, 32> key_;
    Nonce client_nonce_{};
    Nonce server_nonce_{};
    HelloKind expected_;
    bool peer_proved_ = false;
    bool done_ = false;
    Tokens tokens_;
};

} // namespace vgpu::transport
