// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/control/server.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <pwd.h>
#include <unistd.h>

#include "gres_vgpu/control/envelope.h"

namespace vgpu::control {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using nlohmann::json;

struct Route {
    enum class Sort { munge, plain, text } sort = Sort::text;
    Server::Access access = Server::Access::admins;
    std::function<json(const Peer&, const json&)> json_handler;
    Server::TextHandler text_handler;
};

/// What goes back over the wire.
struct Reply {
    int status = 200;
    const char* type = "application/json";
    std::string body;
};

std::string error_body(const std::string& sentence) {
    return json{{"error", sentence}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

struct Server::State {
    explicit State(Options o)
        : options(std::move(o)), acceptor(io), retry(io), handlers(std::max(1u, options.threads)) {}

    Reply answer(const std::string& method, const std::string& path, const std::string& body,
                 const Peer& peer) const;
    Reply answer_munge(const Route& route, const std::string& method, const std::string& path,
                       const std::string& body, Peer peer) const;
    const Route* find(const std::string& method, const std::string& path) const;
    void log(const std::string& sentence) const {
        if (options.log)
            options.log(sentence);
    }
    void accept();

    Options options;
    std::map<std::pair<std::string, std::string>, Route> routes; ///< (method, path); fixed after start
    std::size_t connections = 0; ///< io thread only; before io, which ends connections as it ends
    asio::io_context io{1};
    tcp::acceptor acceptor;
    asio::steady_timer retry;
    std::thread io_thread;
    bool running = false;
    asio::thread_pool handlers; ///< last: ends first
};

namespace {

/// Runs the handler and turns whatever it throws into a status and a sentence.
template <class F>
std::pair<int, json> guarded(F&& handler) {
    auto failed = [](int status, const std::string& what) {
        return std::pair<int, json>{status, {{"error", what}}};
    };
    try {
        return {200, handler()};
    } catch (const HttpError& error) {
        return failed(error.status, error.what());
    } catch (const json::exception& error) {
        return failed(400, std::string("the request cannot be understood: ") + error.what());
    } catch (const std::exception& error) {
        return failed(500, error.what());
    }
}

/// One client's connection; its members are used by the io thread only, except that `answer` runs on the pool
/// while nothing else happens on the connection.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(Server::State& server, tcp::socket socket) : server_(server), stream_(std::move(socket)) {
        beast::error_code error;
        auto remote = stream_.socket().remote_endpoint(error);
        if (!error)
            peer_.address = remote.address().to_string();
        ++server_.connections;
    }
    ~Connection() { --server_.connections; }

    void read() {
        parser_.emplace();
        parser_->header_limit(8 << 10);
        parser_->body_limit(server_.options.max_body);
        stream_.expires_after(server_.options.deadline);
        http::async_read_header(
            stream_, buffer_, *parser_,
            [self = shared_from_this()](beast::error_code error, std::size_t) { self->have_header(error); });
    }

private:
    void have_header(beast::error_code error) {
        if (error)
            return give_up(error);
        const auto& request = parser_->get();
        method_ = std::string(request.method_string());
        path_ = std::string(request.target().substr(0, request.target().find('?')));
        const auto* route = server_.find(method_, path_);
        if (route == nullptr || route->sort != Route::Sort::munge) {
            // Anyone may call these: little memory for each.
            auto limit = server_.options.max_plain_body;
            if (parser_->content_length().value_or(0) > limit)
                return give_up(http::error::body_limit);
            parser_->body_limit(limit);
        }
        http::async_read(
            stream_, buffer_, *parser_,
            [self = shared_from_this()](beast::error_code e, std::size_t) { self->have_request(e); });
    }

    void have_request(beast::error_code error) {
        if (error)
            return give_up(error);
        stream_.expires_never(); // the handler takes its time
        keep_alive_ = parser_->get().keep_alive();
        asio::post(server_.handlers, [self = shared_from_this()]() mutable {
            auto reply =
                self->server_.answer(self->method_, self->path_, self->parser_->get().body(), self->peer_);
            auto& io = self->server_.io;
            // The last reference must not go away on this thread.
            asio::post(io, [self = std::move(self), reply = std::move(reply)]() mutable {
                self->write(std::move(reply));
            });
        });
    }

    void write(Reply reply) {
        response_ = {};
        response_.version(11);
        response_.result(static_cast<unsigned>(reply.status));
        response_.set(http::field::server, "slurm-vgpu");
        response_.set(http::field::content_type, reply.type);
        response_.keep_alive(keep_alive_);
        response_.body() = std::move(reply.body);
        response_.prepare_payload();
        stream_.expires_after(server_.options.deadline);
        http::async_write(stream_, response_,
                          [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (!error && self->keep_alive_)
                                  self->read();
                              else
                                  self->close();
                          });
    }

    void give_up(beast::error_code error) {
        if (error == http::error::end_of_stream || error == asio::error::operation_aborted ||
            error == asio::error::connection_reset)
            return close();
        if (error == beast::error::timeout) {
            server_.log("a request from " + peer_.address + " was not complete in time");
            return close(); // the stream is shut already
        }
        keep_alive_ = false;
        int status = error == http::error::body_limit ? 413 : error == http::error::header_limit ? 431 : 400;
        auto sentence =
            status == 413 ? "the request is too long" : "the request is not HTTP: " + error.message();
        server_.log(sentence + " (from " + peer_.address + ")");
        write({status, "application/json", error_body(sentence)});
    }

    /// Ends the connection so that the last answer arrives: closing with unread input would reset it.
    void close() {
        beast::error_code ignored;
        stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
        stream_.expires_after(std::chrono::seconds(1));
        drain();
    }

    void drain() {
        stream_.async_read_some(boost::asio::buffer(rest_),
                                [self = shared_from_this()](beast::error_code error, std::size_t count) {
                                    self->drained_ += count;
                                    if (!error && self->drained_ < max_drained)
                                        self->drain();
                                });
    }

    static constexpr std::size_t max_drained = 1 << 20;

    Server::State& server_; ///< outlives all connections: its io_context owns them
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    std::optional<http::request_parser<http::string_body>> parser_;
    http::response<http::string_body> response_;
    Peer peer_;
    std::string method_, path_;
    bool keep_alive_ = false;
    std::array<char, 4096> rest_{};
    std::size_t drained_ = 0;
};

} // namespace

const Route* Server::State::find(const std::string& method, const std::string& path) const {
    auto found = routes.find({method, path});
    return found == routes.end() ? nullptr : &found->second;
}

Reply Server::State::answer(const std::string& method, const std::string& path, const std::string& body,
                            const Peer& peer) const {
    const auto* route = find(method, path);
    if (route == nullptr)
        return {404, "application/json", error_body(options.name + " does not know " + method + " " + path)};
    if (route->sort == Route::Sort::munge)
        return answer_munge(*route, method, path, body, peer);
    std::string text;
    auto [status, result] = guarded([&]() -> json {
        if (route->sort == Route::Sort::text) {
            text = route->text_handler();
            return {};
        }
        auto parsed = body.empty() ? json::object() : json::parse(body);
        return route->json_handler(peer, parsed);
    });
    if (status != 200)
        log(method + " " + path + " from " + peer.address + ": " + result["error"].get<std::string>());
    else if (route->sort == Route::Sort::text)
        return {200, "text/plain; version=0.0.4", std::move(text)};
    return {status, "application/json", result.dump(-1, ' ', false, json::error_handler_t::replace)};
}

Reply Server::State::answer_munge(const Route& route, const std::string& method, const std::string& path,
                                  const std::string& body, Peer peer) const {
    auto refuse = [&](int status, const std::string& sentence) -> Reply {
        log(method + " " + path + " from " + peer.address + ": " + sentence);
        return {status, "application/json", error_body(sentence)};
    };
    auto question = open_question(body, options.munge_socket);
    if (!question)
        return refuse(question.error().kind == ErrorKind::refused ? 403 : 500, question.error().message);
    peer.uid = question->uid;
    peer.gid = question->gid;
    auto [status, result] = guarded([&] {
        if (question->to != question_to(options.name, method, path))
            throw HttpError(403, "the credential is meant for \"" + question->to + "\", not for \"" +
                                     question_to(options.name, method, path) + "\"");
        if (route.access == Access::admins &&
            std::find(options.admins.begin(), options.admins.end(), peer.uid) == options.admins.end())
            throw HttpError(403, "uid " + std::to_string(peer.uid) + " may not " + method + " " + path +
                                     " at " + options.name + ": only root and SlurmUser may");
        return route.json_handler(peer, question->body);
    });
    // No room and not ready are answers like others, and askers repeat themselves.
    if (status != 200 && status != 409 && status != 503)
        log(method + " " + path + " from uid " + std::to_string(peer.uid) + " at " + peer.address + ": " +
            result["error"].get<std::string>());
    auto sealed = seal_answer({question->nonce, status, std::move(result)}, options.munge_socket, peer.uid);
    if (!sealed)
        return refuse(500, sealed.error().message);
    return {status, "application/x-munge", *sealed};
}

void Server::State::accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
        if (!acceptor.is_open())
            return;
        if (!error) {
            if (connections < options.max_connections)
                std::make_shared<Connection>(*this, std::move(socket))->read();
            else
                log("a connection was closed at once: there are " + std::to_string(options.max_connections) +
                    " already");
            return accept();
        }
        // Out of file descriptors, most likely: trying again at once would spin.
        log("cannot accept a connection: " + error.message());
        retry.expires_after(std::chrono::milliseconds(100));
        retry.async_wait([this](beast::error_code stopped) {
            if (!stopped)
                accept();
        });
    });
}

Server::Server(Options options) : state_(std::make_unique<State>(std::move(options))) {}

Server::~Server() {
    stop();
}

void Server::protect(const std::string& method, const std::string& path, Access access,
                     ProtectedHandler handler) {
    state_->routes[{method, path}] = {Route::Sort::munge, access, std::move(handler), {}};
}

void Server::plain(const std::string& method, const std::string& path, PlainHandler handler) {
    state_->routes[{method, path}] = {Route::Sort::plain, Access::everyone, std::move(handler), {}};
}

void Server::text(const std::string& path, TextHandler handler) {
    state_->routes[{"GET", path}] = {Route::Sort::text, Access::everyone, {}, std::move(handler)};
}

void Server::start() {
    auto& s = *state_;
    const auto where = s.options.address + ":" + std::to_string(s.options.port);
    try {
        tcp::endpoint endpoint(asio::ip::make_address(s.options.address), s.options.port);
        s.acceptor.open(endpoint.protocol());
        s.acceptor.set_option(tcp::acceptor::reuse_address(true));
        s.acceptor.bind(endpoint);
        s.acceptor.listen();
    } catch (const boost::system::system_error& error) {
        throw std::runtime_error(s.options.name + " cannot listen on " + where + ": " +
                                 error.code().message() + "; is another one running?");
    }
    s.running = true;
    s.accept();
    s.io_thread = std::thread([&s] { s.io.run(); });
}

void Server::stop() {
    auto& s = *state_;
    if (!s.running)
        return;
    s.running = false;
    asio::post(s.io, [&s] {
        beast::error_code ignored;
        s.acceptor.close(ignored);
        s.retry.cancel();
    });
    s.handlers.stop(); // what has not begun is dropped
    s.handlers.join();
    s.io.stop();
    s.io_thread.join();
}

std::uint16_t Server::port() const {
    return state_->acceptor.local_endpoint().port();
}

std::vector<uid_t> admin_uids(const std::string& slurm_user) {
    std::vector<uid_t> uids{0};
    std::vector<char> buffer(16384);
    passwd entry{};
    passwd* found = nullptr;
    if (getpwnam_r(slurm_user.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
        found != nullptr && found->pw_uid != 0)
        uids.push_back(found->pw_uid);
    return uids;
}

} // namespace vgpu::control
