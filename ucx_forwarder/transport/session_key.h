// SPDX-License-Identifier: BSD-3-Clause
// What follows from a claim's secret: the proof by which a client opens a session at vgpud, and the key that
// client and worker then know. No I/O, no UCX.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace vgpu::transport {

using SessionBytes = std::array<std::byte, 32>;

/// All in hex: the claim's secret, the nonce that vgpud gave, the nonce that the client made.
struct SessionNonces {
    std::string claim; ///< the claim's id
    std::string nonce;
    std::string client_nonce;
};

/// HMAC-SHA256 by the secret over claim and nonces; two labels, so that one says nothing about the other.
SessionBytes session_proof(const std::string& secret_hex, const SessionNonces& nonces);
SessionBytes session_key(const std::string& secret_hex, const SessionNonces& nonces);

/// The challenges of one vgpud. They need no memory: a nonce carries its own age and mark, so that nobody can
/// fill a table by asking. That each is used once only the caller must see to, for those with a right proof.
class Challenges {
public:
    Challenges(); ///< with a new random mark
    std::string make(const std::string& claim, long long now_ms) const;
    bool valid(const std::string& claim, const std::string& nonce, long long now_ms) const;
    static constexpr long long lifetime_ms = 10000;

private:
    SessionBytes mark(const std::string& claim, std::span<const std::byte> random_and_time) const;
    SessionBytes key_;
};

std::string to_hex(std::span<const std::byte> bytes);
/// Empty: not hex.
std::vector<std::byte> from_hex(const std::string& hex);
std::string random_hex(std::size_t bytes);
/// In constant time.
bool same(const SessionBytes& a, std::span<const std::byte> b);

} // namespace vgpu::transport
