// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/session_key.h"

#include <cstring>
#include <sodium.h>
#include <stdexcept>

namespace vgpu::transport {
namespace {

constexpr std::size_t random_size = 16;
constexpr std::size_t stamp_size = random_size + sizeof(long long);

class Hmac {
public:
    explicit Hmac(std::span<const std::byte> key) {
        crypto_auth_hmacsha256_init(&state_, reinterpret_cast<const unsigned char*>(key.data()), key.size());
    }
    /// With its length, so that two texts never run into each other.
    Hmac& add(const void* data, std::size_t size) {
        const std::uint64_t length = size;
        crypto_auth_hmacsha256_update(&state_, reinterpret_cast<const unsigned char*>(&length),
                                      sizeof length);
        crypto_auth_hmacsha256_update(&state_, static_cast<const unsigned char*>(data), size);
        return *this;
    }
    Hmac& add(const std::string& text) { return add(text.data(), text.size()); }
    SessionBytes done() {
        SessionBytes result;
        crypto_auth_hmacsha256_final(&state_, reinterpret_cast<unsigned char*>(result.data()));
        return result;
    }

private:
    crypto_auth_hmacsha256_state state_;
};

SessionBytes derive(const char* label, const std::string& secret_hex, const SessionNonces& nonces) {
    const auto secret = from_hex(secret_hex);
    if (secret.size() < 16)
        throw std::invalid_argument("the claim's secret is no hex number of at least 16 bytes");
    return Hmac(secret).add(label).add(nonces.claim).add(nonces.nonce).add(nonces.client_nonce).done();
}

void start_sodium() {
    if (sodium_init() < 0)
        throw std::runtime_error("libsodium cannot start: no source of randomness");
}

} // namespace

SessionBytes session_proof(const std::string& secret_hex, const SessionNonces& nonces) {
    return derive("vgpu session proof", secret_hex, nonces);
}

SessionBytes session_key(const std::string& secret_hex, const SessionNonces& nonces) {
    return derive("vgpu session key", secret_hex, nonces);
}

Challenges::Challenges() {
    start_sodium();
    randombytes_buf(key_.data(), key_.size());
}

SessionBytes Challenges::mark(const std::string& claim, std::span<const std::byte> random_and_time) const {
    return Hmac(key_)
        .add("vgpu challenge")
        .add(claim)
        .add(random_and_time.data(), random_and_time.size())
        .done();
}

std::string Challenges::make(const std::string& claim, long long now_ms) const {
    std::array<std::byte, stamp_size> stamp;
    randombytes_buf(stamp.data(), random_size);
    memcpy(stamp.data() + random_size, &now_ms, sizeof now_ms);
    return to_hex(stamp) + to_hex(mark(claim, stamp));
}

bool Challenges::valid(const std::string& claim, const std::string& nonce, long long now_ms) const {
    const auto bytes = from_hex(nonce);
    if (bytes.size() != stamp_size + sizeof(SessionBytes))
        return false;
    const std::span all(bytes);
    long long made = 0;
    memcpy(&made, bytes.data() + random_size, sizeof made);
    return same(mark(claim, all.first(stamp_size)), all.subspan(stamp_size)) && now_ms >= made &&
           now_ms - made <= lifetime_ms;
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string hex(2 * bytes.size() + 1, '\0');
    sodium_bin2hex(hex.data(), hex.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                   bytes.size());
    hex.pop_back();
    return hex;
}

std::vector<std::byte> from_hex(const std::string& hex) {
    std::vector<std::byte> bytes(hex.size() / 2);
    std::size_t size = 0;
    if (hex.size() % 2 != 0 ||
        sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), hex.data(), hex.size(),
                       nullptr, &size, nullptr) != 0 ||
        size != bytes.size())
        return {};
    return bytes;
}

std::string random_hex(std::size_t bytes) {
    start_sodium();
    std::vector<std::byte> random(bytes);
    randombytes_buf(random.data(), random.size());
    return to_hex(random);
}

bool same(const SessionBytes& a, std::span<const std::byte> b) {
    return b.size() == a.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace vgpu::transport
