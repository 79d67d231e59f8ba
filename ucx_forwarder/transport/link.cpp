// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/link.h"

#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace vgpu::transport {
namespace {

using namespace std::chrono_literals;

/// How long UCX gets to give back buffers after the loss of the peer.
constexpr auto settle_time = 300ms;
/// Messages that follow the last one closer than this are batched.
constexpr auto batching_gap = 10us;
/// Receiving goes on beside a receiver that is busy with so large a body.
constexpr std::size_t long_body = 256 << 10;

std::atomic<unsigned> fork_generation{0};

unsigned watch_forks() {
    static const int registered = pthread_atfork(nullptr, nullptr, [] { ++fork_generation; });
    (void)registered;
    return fork_generation.load();
}

std::unique_ptr<Ucx> start_ucx(const Options& options, const std::string& net_devices) {
    const SignalsBlocked blocked; // for UCX's own thread
    return std::make_unique<Ucx>(options, net_devices);
}

std::int64_t coarse_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

} // namespace

Link::Descriptor::~Descriptor() {
    if (fd >= 0)
        ::close(fd);
}

Link::Link(const Options& options, const std::string& net_devices)
    : options_(options), fork_generation_(watch_forks()), ucx_(start_ucx(options, net_devices)) {
    const struct {
        unsigned id;
        ucp_am_recv_callback_t callback;
        std::uint32_t flags;
    } handlers[] = {{am_batch, on_batch, UCP_AM_FLAG_WHOLE_MSG},
                    {am_fragment, on_fragment, UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA},
                    {am_control, on_control, UCP_AM_FLAG_WHOLE_MSG}};
    for (const auto& handler : handlers) {
        ucp_am_handler_param_t param{};
        param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                           UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
        param.id = handler.id;
        param.flags = handler.flags;
        param.cb = handler.callback;
        param.arg = this;
        if (ucs_status_t status = ucp_worker_set_am_recv_handler(ucx_->worker(), &param); status != UCS_OK)
            throw TransportError(std::string("UCX takes no handler: ") + ucs_status_string(status));
    }
}

Link::~Link() {
    if (forked()) { // all of this belongs to the parent
        ucx_->leak();
        static_cast<void>(ucx_.release());
        static_cast<void>(halves_.release());
        static_cast<void>(waiting_.release());
        static_cast<void>(helper_.release());
        return;
    }
    strike_off();
    if (helper_ && !lost())
        close(1s);
    stop_helper();
    receiver_ = nullptr;
    std::unique_lock lock(mutex_);
    lose_locked("closed");
    const auto until = Clock::now() + settle_time;
    while (!dead_ &&
           (!endpoint_closed_ || halves_->outgoing.in_flight() + halves_->incoming.receiving() > 0) &&
           Clock::now() < until)
        progress_locked();
    for (int i = 0; i < 100 && !dead_; ++i) // lets the endpoint's own end go out
        ucp_worker_progress(ucx_->worker());
    if (dead_ || halves_->outgoing.in_flight() + halves_->incoming.receiving() > 0) {
        // UCX still holds our buffers: better a leak than freed memory in its hands.
        ucx_->leak();
        halves_->outgoing.abandon();
        lock.unlock();
        run_finished();
        static_cast<void>(halves_.release());
        return;
    }
    lock.unlock();
    run_finished();
    halves_.reset();
}

bool Link::forked() const {
    return fork_generation.load(std::memory_order_relaxed) != fork_generation_;
}

void Link::heard() {
    last_heard_.store(coarse_ms(), std::memory_order_relaxed);
}

ucs_status_t Link::on_batch(void* arg, const void* header, size_t header_size, void* data, size_t size,
                            const ucp_am_recv_param_t*) {
    auto& self = *static_cast<Link*>(arg);
    self.heard();
    return self.halves_->incoming.on_batch(header, header_size, data, size);
}

ucs_status_t Link::on_fragment(void* arg, const void* header, size_t header_size, void* data, size_t size,
                               const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<Link*>(arg);
    self.heard();
    return self.halves_->incoming.on_fragment(header, header_size, data, size, *param);
}

ucs_status_t Link::on_control(void* arg, const void* header_bytes, size_t header_size, void*, size_t,
                              const ucp_am_recv_param_t*) {
    auto& self = *static_cast<Link*>(arg);
    ControlHeader header;
    if (header_size != sizeof header)
        return UCS_OK;
    memcpy(&header, header_bytes, sizeof header);
    if (self.token_in_ == 0 || header.token != self.token_in_)
        return UCS_OK;
    self.heard();
    self.halves_->outgoing.acknowledged(header.consumed);
    return UCS_OK;
}

void Link::open(ucp_ep_h endpoint, std::uint64_t token_out, std::uint64_t token_in) {
    endpoint_ = endpoint;
    token_in_ = token_in;
    halves_->outgoing.open(endpoint, token_out);
    halves_->incoming.open(ucx_->worker(), token_in);
}

void Link::become_ready() {
    transport_name_ = lane_names(endpoint_);
    check_demand(options_, transport_name_, peer_);
    wake_fd_.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    kick_fd_.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_.fd < 0 || kick_fd_.fd < 0)
        throw TransportError(std::string("eventfd: ") + strerror(errno));
    heard();
    last_sent_ = Clock::now();
}

void Link::start(Receiver& receiver) {
    receiver_ = &receiver;
    if (forked() || helper_)
        return;
    enrol();
    const SignalsBlocked blocked;
    helper_ = std::make_unique<std::thread>([this] { help(); });
}

/// Called from inside UCX, hence with mutex_ held.
void Link::on_endpoint_error(void* link, ucp_ep_h endpoint, ucs_status_t status) {
    auto& self = *static_cast<Link*>(link);
    if (endpoint == self.endpoint_)
        self.endpoint_failed(status);
    else
        self.failed_.push_back(endpoint);
}

void Link::endpoint_failed(ucs_status_t status) {
    lose_locked(std::string("the connection to ") + peer_ + " broke: " + ucs_status_string(status) +
                " (the process there ended, or the node or the link is down)");
}

void Link::lose_locked(const std::string& why) {
    if (lost_)
        return;
    why_ = why;
    lost_since_ = Clock::now();
    halves_->outgoing.abort();
    lost_ = true;
    announce();
}

bool Link::progress_locked() {
    if (dead_)
        return false;
    int rounds = 0;
    while (rounds < 32 && ucp_worker_progress(ucx_->worker()) != 0)
        ++rounds;
    auto& outgoing = halves_->outgoing;
    auto& incoming = halves_->incoming;
    if (!lost_) {
        outgoing.pump();
        if (incoming.consumed() - consumed_told_ > window / 4) {
            consumed_told_ = incoming.consumed();
            outgoing.send_control(consumed_told_);
        }
        if (outgoing.error() != UCS_OK)
            endpoint_failed(outgoing.error());
        else if (!incoming.fault().empty())
            lose_locked(incoming.fault());
    }
    if (lost_ && !endpoint_closed_ && endpoint_ != nullptr) {
        endpoint_closed_ = true;
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &param);
        if (UCS_PTR_IS_PTR(request))
            ucp_request_free(request);
    }
    return rounds > 0;
}

/// The receiver may be told of the loss: UCX no longer touches anyone's buffers.
bool Link::loss_due_locked() {
    if (!lost_ || lost_told_)
        return false;
    if (halves_->outgoing.in_flight() + halves_->incoming.receiving() == 0)
        return true;
    if (Clock::now() - lost_since_ < settle_time)
        return false;
    dead_ = true;
    halves_->outgoing.abandon();
    halves_->incoming.abort();
    return true;
}

bool Link::step(bool may_deliver) {
    bool moved, deliverable, finished;
    {
        std::lock_guard lock(mutex_);
        moved = progress_locked();
        deliverable = loss_due_locked() || halves_->incoming.deliverable();
        finished = halves_->outgoing.has_finished();
    }
    if (finished)
        run_finished();
    if (deliverable && may_deliver && deliver())
        moved = true;
    return moved;
}

bool Link::deliver() {
    Receiver* receiver = receiver_.load(std::memory_order_acquire);
    if (receiver == nullptr)
        return false;
    if (delivering_.exchange(true)) {
        deliver_again_ = true;
        if (delivering_.exchange(true)) // the other one looks at deliver_again_ when it ends
            return false;
    }
    deliverer_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    bool any = deliver_some(*receiver);
    deliverer_.store(std::thread::id{}, std::memory_order_relaxed);
    delivering_ = false;
    if (deliver_again_.exchange(false))
        any = true; // look again
    if (any)
        announce();
    return any;
}

bool Link::deliver_some(Receiver& receiver) {
    constexpr int most = 64; // then waiters look at their condition
    auto& incoming = halves_->incoming;
    bool any = false;
    std::unique_lock lock(mutex_);
    for (int i = 0; i < most && !lost_told_; ++i) {
        Incoming::Announced announced;
        while (!lost_ && incoming.next_announced(announced)) {
            lock.unlock();
            const auto buffer = receiver.body_buffer(announced.head, announced.size);
            lock.lock();
            try {
                incoming.assign(announced.number, buffer);
            } catch (const std::bad_alloc&) {
                lose_locked("no memory for a body of " + std::to_string(announced.size) + " bytes");
            }
            any = true;
        }
        Incoming::Message message;
        if (!incoming.next_message(message)) {
            if (!loss_due_locked())
                break;
            lock.unlock();
            tell_lost(receiver);
            return true;
        }
        any = true;
        if (message.bye) {
            incoming.done_message();
            lose_locked("");
            why_ = "the peer closed the connection"; // also when UCX noticed the end first
            continue;
        }
        if (halves_->outgoing.has_unflushed() && halves_->outgoing.pipe_idle())
            halves_->outgoing.flush(); // what the last message() sent must not wait for this one
        const bool long_call = message.body.size() >= long_body || incoming.receiving() > 0;
        lock.unlock();
        if (long_call)
            kick_helper();
        receiver.message(message.head, message.body);
        lock.lock();
        incoming.done_message();
    }
    return any;
}

void Link::tell_lost(Receiver& receiver) {
    run_finished();
    if (!closing_)
        receiver.lost(why_);
    lost_told_ = true;
    announce();
}

void Link::run_finished() {
    std::vector<std::function<void()>> due;
    {
        std::lock_guard lock(mutex_);
        halves_->outgoing.take_finished(due);
    }
    for (auto& sent : due)
        sent();
}

void Link::send(std::span<const std::byte> head, std::span<const std::byte> body, Body mode,
                std::function<void()> sent) {
    if (forked() || lost()) {
        if (sent)
            sent();
        return;
    }
    if (head.size() > max_head)
        throw TransportError("a message's head has " + std::to_string(head.size()) + " bytes, at most " +
                             std::to_string(max_head) + " are possible");
    const bool inside = Outgoing::fits_inline(head.size(), body.size());
    std::shared_ptr<std::byte[]> copy;
    if (!inside && mode == Body::copy) {
        copy = std::shared_ptr<std::byte[]>(new std::byte[body.size()]);
        memcpy(copy.get(), body.data(), body.size());
        body = {copy.get(), body.size()};
    }
    const bool by_deliverer = deliverer_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    bool left, lost_already, full;
    {
        std::lock_guard lock(mutex_);
        auto& outgoing = halves_->outgoing;
        lost_already = lost();
        const auto now = Clock::now();
        const bool at_once = now - last_sent_ > batching_gap || owner_sleeps_.load();
        last_sent_ = now;
        if (lost_already) {
        } else if (inside) {
            outgoing.append(head, body);
            if (at_once && outgoing.pipe_idle())
                outgoing.flush();
        } else if (mode == Body::copy) {
            outgoing.append_large(head, body, RecordKind::copied_body, [copy, sent] {
                if (sent)
                    sent();
            });
        } else {
            outgoing.append_large(head, body, RecordKind::borrowed_body, std::move(sent));
        }
        left = outgoing.busy();
        full = !lost_already && outgoing.unacknowledged() > window;
    }
    if (sent && (inside || lost_already))
        sent();
    const bool someone_progresses = by_deliverer || (owned_.load() && !delivering_.load());
    if (left && !someone_progresses)
        kick_helper();
    if (full && !by_deliverer)
        wait_for_window();
}

void Link::close(std::chrono::milliseconds deadline) {
    if (forked() || !helper_)
        return;
    closing_ = true;
    const auto until = Clock::now() + deadline;
    {
        std::lock_guard lock(mutex_);
        if (!lost_) {
            halves_->outgoing.append({}, {}, RecordKind::bye);
            halves_->outgoing.flush();
        }
    }
    bool idle = false;
    while (!idle && !lost() && Clock::now() < until) {
        const bool moved = step();
        std::unique_lock lock(mutex_);
        idle = !halves_->outgoing.busy();
        lock.unlock();
        if (!moved && !idle)
            std::this_thread::sleep_for(50us);
    }
    std::unique_lock lock(mutex_);
    if (!lost_ && idle && !endpoint_closed_) {
        // An orderly close flushes what UCX itself still holds.
        endpoint_closed_ = true;
        ucp_request_param_t param{};
        ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint_, &param);
        while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS &&
               Clock::now() < until)
            ucp_worker_progress(ucx_->worker());
        if (UCS_PTR_IS_PTR(request))
            ucp_request_free(request);
    }
    lose_locked("closed");
    lock.unlock();
    step();
}

} // namespace vgpu::transport
