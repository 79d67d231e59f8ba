// SPDX-License-Identifier: BSD-3-Clause
// The HTTP/1.1 server of vgpuctld and vgpud. Three sorts of routes share one port:
//   protect  request and answer are munge credentials (see envelope.h); the handler is told who asks
//   plain    JSON in, JSON out, no authentication (the client runtime's session set-up, which has its own
//   proof) text     no body in, text out (/metrics)
// Handlers run on a pool of threads, several at once, and may block; the connections are served by one
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

namespace vgpu::control {

/// Who asks. uid and gid come from munge and are meaningless (-1) on plain and text routes.
struct Peer {
    uid_t uid = static_cast<uid_t>(-1);
    gid_t gid = static_cast<gid_t>(-1);
    std::string address; ///< IP address of the connection
};

/// Thrown by a handler to answer with an HTTP status and {"error": what()}. The statuses that clients tell
/// apart: 400 bad request, 403 not allowed, 404 no such thing, 409 no room at the moment, 503 not ready yet,
/// 500 own failure.
struct HttpError : std::runtime_error {
    HttpError(int status, const std::string& sentence) : std::runtime_error(sentence), status(status) {}
    int status;
};

class Server {
public:
    struct Options {
        std::string name; ///< whom requests must be meant for: "vgpuctld", or the node's name (vgpud)
        std::string address = "0.0.0.0";
        std::uint16_t port = 0;   ///< 0: any free one, see port()
        std::string munge_socket; ///< empty: munge's default
        unsigned threads = 8;     ///< for handlers
        std::size_t max_connections = 1024;
        std::size_t max_body = 4 << 20;            ///< bytes; a longer body is answered with 413
        std::size_t max_plain_body = 16 << 10;     ///< the same for plain routes, which anyone may call
        std::chrono::milliseconds deadline{10000}; ///< to receive a whole request, or to send a whole answer
        std::vector<uid_t> admins{0}; ///< who may use protected routes that are not open to everyone
        /// Called with one sentence for each refused or failed request (not for 409 and 503), from any
        /// thread. May be empty.
        std::function<void(const std::string&)> log;
    };
    enum class Access { admins, everyone };

    using ProtectedHandler = std::function<nlohmann::json(const Peer&, const nlohmann::json& body)>;
    using PlainHandler = std::function<nlohmann::json(const Peer&, const nlohmann::json& body)>;
    using TextHandler = std::function<std::string()>;

    explicit Server(Options options);
    ~Server(); ///< stop()

    /// Routes; all before start(). `path` is matched whole, without a query.
    void protect(const std::string& method, const std::string& path, Access access, ProtectedHandler handler);
    void plain(const std::string& method, const std::string& path, PlainHandler handler);
    void text(const std::string& path, TextHandler handler); ///< GET

    /// Binds, listens and starts the threads. Throws std::runtime_error with a sentence if the port cannot be
    /// had.
    void start();
    /// Ends all connections and joins the threads; waits for handlers that are running. Idempotent.
    void stop();
    std::uint16_t port() const; ///< the bound port, after start()

    struct State; ///< private to server.cpp

private:
    std::unique_ptr<State> state_;
};

/// root and the user named `slurm_user`, as far as that user exists here: who may reserve, claim and register
/// nodes.
std::vector<uid_t> admin_uids(const std::string& slurm_user);

} // namespace vgpu::control
