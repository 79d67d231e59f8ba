// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/cuda/session.h"

#include "ucx_forwarder/client/cuda/session_state.h"
#include "ucx_forwarder/client/cuda/stats.h"
#include "ucx_forwarder/protocol/sticky.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace vgpu::client {

using protocol::RecordHeader;
using protocol::ReplyHeader;

namespace {

/// Bodies up to this are copied by the transport; larger ones are read in place while the caller waits.
constexpr std::size_t copied_body = 64U << 10;
/// No answer is larger than this; a forged size must not exhaust the program's memory.
constexpr std::size_t max_blob = std::size_t{1} << 30;
constexpr std::uint32_t slot_index_bits = 10;

/// Calls that make sense in a context that has a fatal error: they end it.
bool ends_context(Call call) {
    return call == Call::cuCtxDestroy_v2 || call == Call::cuDevicePrimaryCtxReset_v2 ||
           call == Call::cuDevicePrimaryCtxRelease_v2;
}

/// A part of what a copy to the host wants; already there when the transport received in place.
void place(ReplySlot& slot, std::uint64_t offset, std::span<const std::byte> part) {
    if (offset > slot.body.size() || part.size() > slot.body.size() - offset) {
        slot.malformed = true;
        return;
    }
    std::byte* to = slot.body.data() + offset;
    if (!part.empty() && to != part.data()) {
        std::memcpy(to, part.data(), part.size());
    }
}

/// The sessions that are open when the process exits.
struct OpenSessions {
    std::mutex mutex;
    std::vector<Session*> sessions;

    static OpenSessions& instance() {
        static OpenSessions* const instance = new OpenSessions; // leaked: used in exit handlers
        return *instance;
    }
};

/// Runs before the transport's own exit handler, which was registered earlier, when the connection was made:
/// calls that come later must find an ended session, not a lost one.
void end_sessions() {
    OpenSessions& open = OpenSessions::instance();
    std::vector<Session*> sessions;
    {
        const std::lock_guard lock(open.mutex);
        sessions = open.sessions;
    }
    for (Session* session : sessions) {
        session->shutdown();
    }
}

void write_all(int fd, std::span<const std::byte> data) {
    while (!data.empty()) {
        const ssize_t written = ::write(fd, data.data(), data.size());
        if (written <= 0) {
            return; // a closed or full stdout is the program's affair
        }
        data = data.subspan(static_cast<std::size_t>(written));
    }
}

} // namespace

Session::State::State(std::string node, std::unique_ptr<transport::Connection> connection)
    : node_(std::move(node)), connection_(std::move(connection)) {
    static_assert(max_slots == 1U << slot_index_bits);
    for (std::uint32_t i = max_slots; i-- > 0;) {
        free_slots_.push_back(i);
    }
}

Session::State::~State() {
    {
        const std::lock_guard lock(host_mutex_);
        host_stop_ = true;
    }
    host_ready_.notify_all();
    if (host_thread_.joinable()) {
        host_thread_.join();
    }
}

ReplySlot& Session::State::take_slot() {
    std::unique_lock lock(slots_mutex_);
    slot_free_.wait(lock, [this] { return !free_slots_.empty(); });
    const std::uint32_t index = free_slots_.back();
    free_slots_.pop_back();
    ReplySlot& slot = slots_[index];
    slot.done.store(false, std::memory_order_relaxed);
    slot.head_size = 0;
    slot.status = CUDA_SUCCESS;
    slot.malformed = false;
    // Never 0, and not the id of the slot's last use: a late message must not find it.
    const std::uint32_t id = (++slot_uses_ << slot_index_bits | index);
    slot.id.store(id < max_slots ? id | max_slots : id, std::memory_order_release);
    return slot;
}

void Session::State::free_slot(ReplySlot& slot) {
    {
        const std::lock_guard lock(slots_mutex_);
        slot.id.store(0, std::memory_order_release);
        free_slots_.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
    }
    slot_free_.notify_one();
}

ReplySlot* Session::State::slot_of(std::uint32_t id) {
    ReplySlot& slot = slots_[id % max_slots];
    return id != 0 && slot.id.load(std::memory_order_acquire) == id ? &slot : nullptr;
}

std::span<std::byte> Session::State::body_buffer(std::span<const std::byte> head, std::size_t size) {
    protocol::Decoder in(head);
    const auto reply = in.take<ReplyHeader>();
    ReplySlot* slot = in.ok() ? slot_of(reply.slot) : nullptr;
    if (slot == nullptr) {
        return {};
    }
    if (reply.kind == ReplyHeader::Kind::data && reply.value <= slot->body.size() &&
        size <= slot->body.size() - reply.value) {
        return slot->body.subspan(reply.value, size);
    }
    if (reply.kind == ReplyHeader::Kind::reply && slot->blob != nullptr && size <= max_blob) {
        slot->blob->resize(size);
        return *slot->blob;
    }
    if (reply.kind == ReplyHeader::Kind::reply && size <= slot->body.size()) {
        return slot->body.first(size);
    }
    return {};
}

void Session::State::message(std::span<const std::byte> head, std::span<std::byte> body) {
    protocol::Decoder in(head);
    const auto reply = in.take<ReplyHeader>();
    if (!in.ok()) {
        return;
    }
    // Replies of several worker threads may overtake each other in this number, which only grows.
    std::uint64_t known = consumed_.load(std::memory_order_relaxed);
    while (reply.consumed > known &&
           !consumed_.compare_exchange_weak(known, reply.consumed, std::memory_order_release)) {
    }
    switch (reply.kind) {
    case ReplyHeader::Kind::data: {
        if (ReplySlot* slot = slot_of(reply.slot)) {
            place(*slot, reply.value, body);
        }
        return;
    }
    case ReplyHeader::Kind::reply: {
        ReplySlot* slot = slot_of(reply.slot);
        if (slot == nullptr) {
            return;
        }
        if (slot->blob == nullptr) {
            place(*slot, 0, body);
        } else if (slot->blob->data() != body.data()) {
            slot->blob->assign(body.begin(), body.end());
        }
        slot->status = static_cast<CUresult>(reply.status);
        slot->head_size = std::min(in.rest().size(), slot->head.size());
        std::memcpy(slot->head.data(), in.rest().data(), slot->head_size);
        slot->done.store(true, std::memory_order_release);
        return;
    }
    case ReplyHeader::Kind::output:
        // The program's own buffered output came first; stdio's buffer is the program's, so fflush is not
        // ours to skip: without it the lines of host and device would change places.
        std::fflush(stdout);
        write_all(STDOUT_FILENO, body);
        return;
    case ReplyHeader::Kind::host_function: {
        {
            const std::lock_guard lock(host_mutex_);
            host_due_.push_back(reply.value);
        }
        host_ready_.notify_one();
        return;
    }
    case ReplyHeader::Kind::context_error:
        remember({reply.value}, static_cast<CUresult>(reply.status));
        return;
    case ReplyHeader::Kind::consumed:
        return;
    }
}

void Session::State::lost(const std::string& why) {
    Life running = Life::running;
    if (life_.compare_exchange_strong(running, Life::lost)) {
        std::fprintf(stderr,
                     "vgpu: GPU node %s is lost (%s); CUDA calls for its GPUs fail from now on with "
                     "CUDA_ERROR_DEVICE_UNAVAILABLE\n",
                     node_.c_str(), why.c_str());
    }
}

void Session::State::remember(WireId context, CUresult status) {
    if (!protocol::is_sticky(status)) {
        return;
    }
    const std::lock_guard lock(sticky_mutex_);
    sticky_.emplace(context.value, status);
    any_sticky_.store(true, std::memory_order_release);
}

CUresult Session::State::check(const Request& request) {
    switch (life_.load(std::memory_order_acquire)) {
    case Life::running:
        break;
    case Life::lost:
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case Life::ended:
        return CUDA_ERROR_DEINITIALIZED;
    }
    if (any_sticky_.load(std::memory_order_acquire) && !ends_context(request.call)) {
        const std::lock_guard lock(sticky_mutex_);
        const auto found = sticky_.find(request.context.value);
        return found == sticky_.end() ? CUDA_SUCCESS : found->second;
    }
    return CUDA_SUCCESS;
}

void Session::State::wait_for_window(std::uint64_t cost) {
    const std::uint64_t before = produced_.fetch_add(cost, std::memory_order_relaxed);
    const auto room = [this, before, cost] {
        const std::uint64_t consumed = consumed_.load(std::memory_order_acquire);
        return consumed >= before || before + cost - consumed <= protocol::window_bytes;
    };
    if (!room()) {
        (void)connection_->wait_until(room); // when the connection is lost, the call that follows says so
    }
}

CUresult Session::post(Request& request) {
    State& state = *state_;
    if (const CUresult status = state.check(request); status != CUDA_SUCCESS) {
        return status;
    }
    RecordHeader header;
    header.call = request.call;
    header.context = request.context;
    if (request.parameters_in_body) {
        header.flags |= RecordHeader::parameters_in_body;
    } else if (!request.body.empty() && request.body.size() <= request.head.size() - request.head_size) {
        header.flags |= RecordHeader::body_in_head;
        std::memcpy(request.head.data() + request.head_size, request.body.data(), request.body.size());
        request.head_size += request.body.size();
        request.body = {};
    }
    std::memcpy(request.head.data(), &header, sizeof header);
    state.sent_[static_cast<std::size_t>(request.call)].value.fetch_add(1, std::memory_order_relaxed);
    state.wait_for_window(protocol::record_cost(request.head_size, request.body.size()));
    const Bytes head = request.head.first(request.head_size);
    if (request.body.size() <= copied_body) {
        state.connection_->send(head, request.body);
        return CUDA_SUCCESS;
    }
    std::atomic<bool> sent{false};
    state.connection_->send(head, request.body, transport::Body::borrow, [&sent] { sent = true; });
    // The flag is on this stack, and the transport reads the body: leave only when it has let go of both,
    // also after loss.
    while (!sent.load(std::memory_order_acquire)) {
        if (!state.connection_->wait_until([&sent] { return sent.load(std::memory_order_acquire); })) {
            std::this_thread::yield();
        }
    }
    return state.life_.load() == State::Life::lost ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
}

CUresult Session::exchange(Request& request) {
    State& state = *state_;
    if (const CUresult status = state.check(request); status != CUDA_SUCCESS) {
        return status;
    }
    ReplySlot& slot = state.take_slot();
    slot.head = request.head;
    slot.body = request.reply_to;
    slot.blob = request.reply_blob;
    RecordHeader header;
    header.call = request.call;
    header.context = request.context;
    header.slot = slot.id.load(std::memory_order_relaxed);
    header.flags = request.parameters_in_body ? RecordHeader::parameters_in_body : 0;
    std::memcpy(request.head.data(), &header, sizeof header);
    auto& count = state.awaited_[static_cast<std::size_t>(request.call)].value;
    count.fetch_add(1, std::memory_order_relaxed);
    state.wait_for_window(protocol::record_cost(request.head_size, request.body.size()));
    state.connection_->send(Bytes(request.head).first(request.head_size), request.body);
    const bool answered =
        state.connection_->wait_until([&slot] { return slot.done.load(std::memory_order_acquire); });
    CUresult status = CUDA_SUCCESS;
    if (answered) {
        status = slot.malformed ? CUDA_ERROR_UNKNOWN : slot.status;
        request.reply_size = slot.head_size;
        if (status != CUDA_SUCCESS) {
            state.remember(request.context, status);
        }
    } else {
        status = state.life_.load() == State::Life::ended ? CUDA_ERROR_DEINITIALIZED
                                                          : CUDA_ERROR_DEVICE_UNAVAILABLE;
    }
    state.free_slot(slot);
    return status;
}

Session::Session(std::string node, std::unique_ptr<transport::Connection> connection)
    : state_(std::make_unique<State>(std::move(node), std::move(connection))) {
    State& state = *state_;
    state.connection_->start(state);
    std::vector<std::byte> body;
    const CUresult status = call<Call::hello>(no_context, protocol::table_hash, &body);
    state.awaited_[static_cast<std::size_t>(Call::hello)].value = 0;
    if (status != CUDA_SUCCESS) {
        const std::string text(reinterpret_cast<const char*>(body.data()), body.size());
        throw SessionError("GPU node " + state.node_ + ": " +
                           (text.empty() ? "the worker ended before it answered" : text));
    }
    if (!decode(Bytes(body), state.devices_)) {
        throw SessionError("GPU node " + state.node_ + ": the worker's list of devices cannot be read");
    }
    static const int registered = std::atexit(end_sessions);
    (void)registered;
    {
        OpenSessions& open = OpenSessions::instance();
        const std::lock_guard lock(open.mutex);
        open.sessions.push_back(this);
    }
    add_to_stats(*this);
}

Session::~Session() {
    {
        OpenSessions& open = OpenSessions::instance();
        const std::lock_guard lock(open.mutex);
        std::erase(open.sessions, this);
    }
    remove_from_stats(*this);
    shutdown();
}

const std::vector<DeviceSnapshot>& Session::devices() const {
    return state_->devices_;
}
const std::string& Session::node() const {
    return state_->node_;
}
std::string Session::transport_name() const {
    return state_->connection_->transport_name();
}
bool Session::lost() const {
    return state_->life_.load() == State::Life::lost;
}

void Session::shutdown() {
    State::Life running = State::Life::running;
    if (state_->life_.compare_exchange_strong(running, State::Life::ended)) {
        state_->connection_->close(std::chrono::milliseconds(1000));
    }
}

CUresult Session::sticky(WireId context) const {
    if (!state_->any_sticky_.load(std::memory_order_acquire)) {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(state_->sticky_mutex_);
    const auto found = state_->sticky_.find(context.value);
    return found == state_->sticky_.end() ? CUDA_SUCCESS : found->second;
}

void Session::forget_context(WireId context) {
    const std::lock_guard lock(state_->sticky_mutex_);
    state_->sticky_.erase(context.value);
    state_->any_sticky_.store(!state_->sticky_.empty(), std::memory_order_release);
}

std::vector<Session::Counts> Session::counts() const {
    std::vector<Counts> counts(protocol::call_count);
    for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i].sent = state_->sent_[i].value.load(std::memory_order_relaxed);
        counts[i].awaited = state_->awaited_[i].value.load(std::memory_order_relaxed);
    }
    return counts;
}

} // namespace vgpu::client
