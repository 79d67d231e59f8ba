// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/executor.h"

#include "ucx_forwarder/protocol/sticky.h"

#include <spdlog/spdlog.h>

#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

namespace vgpu::worker {

using protocol::RecordHeader;
using protocol::ReplyHeader;

namespace {

/// After the client is gone, the executing thread has this long to come back from a driver call.
constexpr std::chrono::seconds grace{3};

} // namespace

Executor::Executor(transport::Connection& connection, const WorkerJob& job)
    : connection_(connection), job_(job), ledger_(job), images_(job.image_cache),
      host_functions_([this](std::uint64_t number) {
          ReplyHeader header;
          header.kind = ReplyHeader::Kind::host_function;
          header.value = number;
          connection_.send(std::as_bytes(std::span(&header, 1)));
      }) {
    try {
        driver_ = std::make_unique<Driver>(job.cuda_library);
        for (const WorkerVgpu& vgpu : job.vgpus) {
            CUdevice device = 0;
            if (const CUresult status = driver_->cuDeviceGet(&device, vgpu.gpu); status != CUDA_SUCCESS) {
                throw DriverError("GPU " + std::to_string(vgpu.gpu) +
                                  " of the lease is not there: cuDeviceGet gives " +
                                  driver_->name_of(status) + "; restart vgpud on the GPU node");
            }
            devices_.push_back(device);
        }
        retains_.assign(devices_.size(), 0);
    } catch (const DriverError& error) {
        spdlog::error("{}", error.what());
        failure_ = error.what();
        driver_.reset();
    }
}

Executor::~Executor() {
    *finished_ = true;
    host_functions_.stop();
    if (!waiters_.stop(500)) {
        // Threads of ours are inside the driver and use what would now be destroyed.
        spdlog::info("a kernel still runs; the worker ends with it");
        spdlog::shutdown();
        ::_exit(0);
    }
}

void Executor::run() {
    bool alive = true;
    while (alive) {
        alive = connection_.wait_until([this] { return !queue_.empty(); });
        while (auto incoming = alive ? queue_.pop() : nullptr) {
            if (queue_.bytes() > 2 * protocol::window_bytes) {
                throw ProtocolError("the client sends more than the window allows");
            }
            execute(*incoming);
            const std::uint64_t cost = incoming->cost();
            queue_.recycle(std::move(incoming));
            if (consumed_.fetch_add(cost) + cost - told_consumed_.load() > protocol::window_bytes / 8) {
                tell_consumed();
            }
        }
    }
}

std::span<std::byte> Executor::body_buffer(std::span<const std::byte>, std::size_t size) {
    return queue_.reserve(size);
}

void Executor::message(std::span<const std::byte> head, std::span<std::byte> body) {
    Decoder in(head);
    const auto header = in.take<RecordHeader>();
    if (in.ok() && header.call == Call::host_function_done) {
        // Not queued: the executing thread may be inside the driver, waiting for this very function.
        host_functions_.done(in.take<std::uint64_t>());
        job_.counters->calls_sent.fetch_add(1, std::memory_order_relaxed);
        consumed_.fetch_add(protocol::record_cost(head.size(), body.size()));
        return;
    }
    queue_.push(head, body);
}

void Executor::lost(const std::string& why) {
    spdlog::info("client {}: the session ends ({})", job_.client, why);
    host_functions_.stop();
    // A driver call may last for ever (a kernel that never ends); a process that ends releases everything.
    std::thread([finished = finished_] {
        std::this_thread::sleep_for(grace);
        if (!*finished) {
            spdlog::warn("a call of the driver does not return; the worker ends without it");
            spdlog::shutdown();
            ::_exit(1);
        }
    }).detach();
}

void Executor::execute(const Incoming& incoming) {
    Decoder in(incoming.head_bytes());
    const auto header = in.take<RecordHeader>();
    const auto number = static_cast<std::size_t>(header.call);
    if (!in.ok() || number >= protocol::call_count) {
        throw ProtocolError("a record without a valid head came from the client");
    }
    if (!greeted_ && header.call != Call::hello) {
        throw ProtocolError("the client's first call is not hello");
    }
    job_.counters->calls_sent.fetch_add(1, std::memory_order_relaxed);
    if (header.slot != 0) {
        job_.counters->calls_awaited.fetch_add(1, std::memory_order_relaxed);
    }
    if ((header.flags & RecordHeader::parameters_in_body) != 0) {
        Decoder parameters(incoming.body_bytes());
        (this->*handlers_[number])(header, parameters, incoming);
    } else {
        (this->*handlers_[number])(header, in, incoming);
    }
}

CUresult Executor::enter(Record& record) {
    tables_.entered = record.caller.context.value;
    if (record.caller.context == protocol::null_id) {
        return CUDA_SUCCESS;
    }
    const auto found = tables_.contexts.find(record.caller.context.value);
    if (found == tables_.contexts.end()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    record.context = &found->second;
    if (current_ != record.caller.context.value) {
        if (const CUresult status = driver_->cuCtxSetCurrent(found->second.handle); status != CUDA_SUCCESS) {
            return status;
        }
        current_ = record.caller.context.value;
    }
    return CUDA_SUCCESS;
}

void Executor::reply(Caller to, CUresult status, Bytes outs, Bytes body) {
    if (to.slot == 0) {
        if (status != CUDA_SUCCESS) {
            defer(to.context, status);
        }
        return;
    }
    ReplyHeader header;
    header.slot = to.slot;
    header.status = status;
    header.consumed = consumed_.load();
    std::byte head[protocol::max_head];
    Encoder out{std::span<std::byte>(head)};
    out.put(header);
    out.put_bytes(outs.data(), outs.size());
    connection_.send(out.written(), body);
}

void Executor::reply_synchronised(Caller to, CUresult status) {
    send_output();
    const CUresult earlier = take_deferred(to.context);
    reply(to, status != CUDA_SUCCESS ? status : earlier);
}

void Executor::send_output() {
    for (std::string text = output_.take(); !text.empty(); text = output_.take()) {
        ReplyHeader header;
        header.kind = ReplyHeader::Kind::output;
        header.consumed = consumed_.load();
        connection_.send(std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(text)));
    }
}

void Executor::tell_consumed() {
    ReplyHeader header;
    header.kind = ReplyHeader::Kind::consumed;
    header.consumed = consumed_.load();
    told_consumed_.store(header.consumed);
    connection_.send(std::as_bytes(std::span(&header, 1)));
}

void Executor::defer(WireId context, CUresult status) {
    spdlog::debug("a call that nobody awaits failed with error {} in context {}", static_cast<int>(status),
                  context.value);
    {
        const std::lock_guard lock(deferred_mutex_);
        deferred_.emplace(context.value, status); // the first one counts
        has_deferred_.store(true, std::memory_order_release);
    }
    if (protocol::is_sticky(status)) {
        ReplyHeader header;
        header.kind = ReplyHeader::Kind::context_error;
        header.value = context.value;
        header.status = status;
        header.consumed = consumed_.load();
        connection_.send(std::as_bytes(std::span(&header, 1)));
    }
}

CUresult Executor::take_deferred(WireId context) {
    if (!has_deferred_.load(std::memory_order_acquire)) {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(deferred_mutex_);
    const auto found = deferred_.find(context.value);
    if (found == deferred_.end()) {
        return CUDA_SUCCESS;
    }
    const CUresult status = found->second;
    deferred_.erase(found);
    has_deferred_.store(!deferred_.empty(), std::memory_order_release);
    return status;
}

bool Executor::soon(const std::function<CUresult()>& ready) {
    constexpr std::chrono::microseconds patience{50};
    const auto end = std::chrono::steady_clock::now() + patience;
    do {
        if (ready() != CUDA_ERROR_NOT_READY) {
            return true;
        }
    } while (queue_.empty() && std::chrono::steady_clock::now() < end);
    return false;
}

CUresult Executor::wait_elsewhere(const Record& record, std::function<CUresult()> blocking) {
    waiters_.run(
        [this, caller = record.caller, context = record.context->handle, blocking = std::move(blocking)] {
            CUresult status = driver_->cuCtxSetCurrent(context);
            if (status == CUDA_SUCCESS) {
                status = blocking();
            }
            reply_synchronised(caller, status);
        });
    return replies_later;
}

int run_session(transport::Connection& connection, const WorkerJob& job) {
    Executor executor(connection, job);
    connection.start(executor);
    int status = 0;
    try {
        executor.run();
    } catch (const ProtocolError& error) {
        spdlog::error("client {}: {}; the session is ended", job.client, error.what());
        status = 1;
    }
    connection.close(std::chrono::milliseconds(500));
    // False only when its threads have made their last call of the executor, which goes now.
    (void)connection.wait_until([] { return false; });
    return status;
}

} // namespace vgpu::worker
