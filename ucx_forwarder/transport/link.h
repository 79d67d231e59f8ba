// SPDX-License-Identifier: BSD-3-Clause
// A connection: the UCX worker and endpoint with their two halves, who makes progress, how one waits, and how
// the loss of the peer is noticed.
//
// Locks: mutex_ guards UCX and both halves and is never held while a function of the user runs. Progress is
// made by one waiting thread, the owner; the others sleep until something was delivered or the ownership is
// free. The helper thread sends heartbeats, looks at the peer's, and steps in where no waiting thread makes
// progress but something is to be done: an unsent batch, a transfer in flight, a receiver inside a long call.
#pragma once

#include "ucx_forwarder/transport/handshake.h"
#include "ucx_forwarder/transport/incoming.h"
#include "ucx_forwarder/transport/outgoing.h"
#include "ucx_forwarder/transport/ucx.h"

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace vgpu::transport {

/// Threads that are started while one of these lives get none of the program's signals.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_;
};

class Link final : public Connection {
public:
    using Clock = std::chrono::steady_clock;

    /// Registers the message handlers; there is no endpoint yet.
    Link(const Options& options, const std::string& net_devices);
    ~Link() override;

    /// For connect() and the listener, before become_ready, from one thread.
    ucp_worker_h worker() const { return ucx_->worker(); }
    int event_fd() const { return ucx_->event_fd(); }
    /// Messages with the token to this end are accepted from here on.
    void open(ucp_ep_h endpoint, std::uint64_t token_out, std::uint64_t token_in);
    /// UCX's error handler for endpoints of this worker; `link` is the Link.
    static void on_endpoint_error(void* link, ucp_ep_h endpoint, ucs_status_t status);
    /// Endpoints other than this link's that failed; the listener's candidates.
    std::vector<ucp_ep_h> take_failed() { return std::exchange(failed_, {}); }
    void name_peer(const std::string& peer) { peer_ = peer; }
    /// Why it was lost.
    const std::string& why() const { return why_; }
    /// Descriptors and the check of the demanded transport; the last step of setting up.
    void become_ready();

    void send(std::span<const std::byte> head, std::span<const std::byte> body, Body mode,
              std::function<void()> sent) override;
    bool wait_until(const std::function<bool()>& done) override;
    void wake() override;
    bool lost() const override { return lost_.load(std::memory_order_acquire); }
    std::string transport_name() const override { return transport_name_; }
    void close(std::chrono::milliseconds deadline) override;
    void start(Receiver& receiver) override;

private:
    struct Descriptor {
        int fd = -1;
        ~Descriptor();
    };
    struct Halves {
        ChunkPool pool;
        Outgoing outgoing{pool};
        Incoming incoming{pool};
    };
    struct Waiting {
        std::mutex mutex; ///< taken after mutex_, never before it
        std::condition_variable changed;
    };

    static ucs_status_t on_batch(void*, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*);
    static ucs_status_t on_fragment(void*, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*);
    static ucs_status_t on_control(void*, const void*, size_t, void*, size_t, const ucp_am_recv_param_t*);

    // link.cpp
    bool forked() const;
    void heard();
    void lose_locked(const std::string& why);
    bool progress_locked();
    bool loss_due_locked();
    void endpoint_failed(ucs_status_t status);
    bool step(bool may_deliver = true);
    bool deliver();
    bool deliver_some(Receiver& receiver);
    void tell_lost(Receiver& receiver);
    void run_finished();

    // link_wait.cpp
    void announce();
    bool must_stop() const;
    void sleep(int wake_fd, std::uint64_t seen, std::chrono::milliseconds longest);
    bool become_owner();
    void own(const std::function<bool()>& done);
    void wait_as_guest(const std::function<bool()>& done);
    void wait_for_window();
    void kick_helper();
    void help();
    void beat(Clock::time_point now, Clock::time_point last, std::chrono::milliseconds tick);

    // link_exit.cpp
    void enrol();
    void strike_off();
    void at_exit();
    void stop_helper();

    const Options options_;
    const unsigned fork_generation_;
    std::string peer_;
    std::string transport_name_ = "?";

    std::mutex mutex_; ///< UCX, both halves, and the plain members down to failed_
    std::unique_ptr<Ucx> ucx_;
    std::unique_ptr<Halves> halves_ = std::make_unique<Halves>();
    ucp_ep_h endpoint_ = nullptr;
    std::uint64_t token_in_ = 0;
    std::uint64_t consumed_told_ = 0;
    Clock::time_point last_sent_{};
    Clock::time_point lost_since_{};
    bool endpoint_closed_ = false;
    bool dead_ = false; ///< UCX is not to be called again
    std::string why_;
    std::vector<ucp_ep_h> failed_;

    std::atomic<bool> lost_{false};
    std::atomic<bool> lost_told_{false};
    std::atomic<bool> closing_{false}; ///< this end closes: lost() is not told to the receiver
    std::atomic<std::int64_t> last_heard_{0};
    std::atomic<std::uint64_t> events_{0}; ///< counts what may change a waiter's mind
    std::atomic<Receiver*> receiver_{nullptr};
    std::atomic<bool> delivering_{false};
    std::atomic<std::thread::id> deliverer_{};
    std::atomic<bool> deliver_again_{false}; ///< something came while another thread was delivering

    std::unique_ptr<Waiting> waiting_ = std::make_unique<Waiting>();
    std::atomic<bool> owned_{false};
    std::atomic<bool> owner_sleeps_{false};
    std::atomic<int> guests_{0};
    Descriptor wake_fd_;
    Descriptor kick_fd_;
    std::atomic<bool> helper_awake_{false};
    std::atomic<bool> stop_helper_{false};
    std::unique_ptr<std::thread> helper_;
};

} // namespace vgpu::transport
