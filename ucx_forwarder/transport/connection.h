// SPDX-License-Identifier: BSD-3-Clause
// One ordered, authenticated, supervised stream of messages between a client process and its worker, over UCX
// active messages. Knows no CUDA.
//
// A message is a head (at most max_head bytes, copied) and a body (any size). Messages arrive in the order in
// which they were sent, whatever their size and whichever thread sent them.
//
// In a forked child a connection does nothing: send ignores, wait_until returns false, the destructor leaves
// all to the parent.
//
// Threads: every method of Connection may be called by any thread. Receiver's methods are called by one
// thread at a time, by whichever thread makes progress (inside send, flush or wait_until, or the connection's
// own heartbeat thread).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace vgpu::transport {

constexpr std::size_t max_head = 4096;

/// The connection cannot be made, or is lost; the text says why, and what to do where something can be done.
struct TransportError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::string transport =
        "auto";              ///< auto, tcp, shm, rdma: as in vgpu.conf; a demand that fails is an error
    std::string net_devices; ///< as UCX_NET_DEVICES; empty: the interface that routes to the peer
    std::chrono::milliseconds heartbeat{1000};
    std::chrono::milliseconds peer_timeout{4000}; ///< silence after which the peer is lost; 0: never
    std::chrono::microseconds spin{50};           ///< a waiter spins this long before it sleeps
};

/// The user of a connection.
class Receiver {
public:
    virtual ~Receiver() = default;
    /// Where the body of the message with this head shall go: exactly `size` bytes that stay valid until
    /// message(). Called in stream order, only for bodies that did not arrive with their head, and possibly
    /// before message() of earlier messages: up to 16 bodies are received ahead. Empty: the connection
    /// provides.
    virtual std::span<std::byte> body_buffer(std::span<const std::byte> head, std::size_t size) = 0;
    /// One whole message, in stream order. Both spans are valid during the call only. Must not block for long
    /// and must not call wait_until; may call send.
    virtual void message(std::span<const std::byte> head, std::span<std::byte> body) = 0;
    /// The peer is gone, hangs, or the link is cut; called once, nothing comes after.
    virtual void lost(const std::string& why) = 0;
};

enum class Body {
    copy,  ///< copied before send returns; for small bodies
    borrow ///< the caller keeps it unchanged until `sent` is called, or until the connection is lost
};

class Connection {
public:
    virtual ~Connection() = default;

    /// Appends a message. Goes out at once when the pipe is idle, else batched with its successors. Never
    /// blocks for the peer's progress except to bound the memory of copied bodies (backpressure). After loss
    /// it does nothing. `sent`: called once a borrowed body may be changed again (also after loss).
    virtual void send(std::span<const std::byte> head, std::span<const std::byte> body = {},
                      Body mode = Body::copy, std::function<void()> sent = {}) = 0;

    /// Makes progress until done() is true: spins, then sleeps. False: the connection was lost first. done()
    /// is called with no lock held that send() needs, often, and also after every message that some thread
    /// received.
    [[nodiscard]] virtual bool wait_until(const std::function<bool()>& done) = 0;

    /// Wakes every wait_until so that it looks at done() again.
    virtual void wake() = 0;

    virtual bool lost() const = 0;

    /// What UCX uses: "tcp/eth0", "posix+cma", "rc_verbs/rxe0:1".
    virtual std::string transport_name() const = 0;

    /// Puts everything on the wire, waits for it within the deadline, tells the peer that this end is
    /// orderly. The own receiver is not told of a loss. The destructor does it with a deadline of one second.
    virtual void close(std::chrono::milliseconds deadline) = 0;

    /// After connect/accept, before any other call: who gets the messages. Messages that came earlier are
    /// kept. The receiver must outlive the connection.
    virtual void start(Receiver& receiver) = 0;
};

/// A 32-byte key that both ends know; neither end sends it. Each proves it to the other (HMAC-SHA256 over
/// both nonces).
using Key = std::span<const std::byte, 32>;

/// Client side. Throws TransportError when the peer is not there, does not know the key, or within `deadline`
/// did not answer, or when the demanded transport is not what UCX came to use.
std::unique_ptr<Connection> connect(const std::string& address, std::uint16_t port, Key key,
                                    const Options& options, std::chrono::milliseconds deadline);

/// Worker side: listens on a free port (all interfaces that net_devices names). One accepted connection.
class Listener {
public:
    virtual ~Listener() = default;
    virtual std::uint16_t port() const = 0;
    /// Waits for one peer that knows the key; whoever does not is dropped and everything it sent with it.
    virtual std::unique_ptr<Connection> accept(Key key, std::chrono::milliseconds deadline) = 0;
};
std::unique_ptr<Listener> listen(const std::string& address, const Options& options);

} // namespace vgpu::transport
