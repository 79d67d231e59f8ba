// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/stream.h"

#include "contrib/softgpu/context.h"
#include "contrib/softgpu/error.h"

#include <atomic>
#include <csignal>
#include <new>
#include <pthread.h>
#include <system_error>
#include <thread>

namespace softgpu {
namespace {

std::uint64_t next_stream_id() {
    static std::atomic<std::uint64_t> next{1};
    return next++;
}

// The program's signals are for its own threads.
class BlockedSignals {
public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

private:
    sigset_t before_;
};

} // namespace

void Moment::wait() const {
    if (stream)
        stream->wait(ticket);
}

bool Moment::reached() const {
    return !stream || stream->reached(ticket);
}

bool& in_callback() {
    static thread_local bool value = false;
    return value;
}

Stream::Stream(std::shared_ptr<Context> context, unsigned flags, int priority)
    : context_(std::move(context)), flags_(flags), priority_(priority), id_(next_stream_id()) {}

Stream::~Stream() = default;

std::uint64_t Stream::take_ticket() {
    const std::lock_guard guard(mutex_);
    return ++given_;
}

std::uint64_t Stream::queue(Work work, std::vector<Moment> after) {
    const std::lock_guard guard(mutex_);
    if (!has_thread_) {
        const BlockedSignals blocked;
        try {
            // It holds the stream as long as it runs, hence needs no one to join it.
            std::thread([self = shared_from_this()] { execute(self); }).detach();
        } catch (const std::system_error&) {
            throw Error(CUDA_ERROR_OPERATING_SYSTEM);
        }
        has_thread_ = true;
    }
    items_.push_back({given_ + 1, std::move(work), std::move(after)});
    ++given_;
    changed_.notify_all();
    return given_;
}

CUresult Stream::run(std::uint64_t ticket, const Work& work, const std::vector<Moment>& after) {
    {
        std::unique_lock guard(mutex_);
        changed_.wait(guard, [&] { return completed_ + 1 == ticket; });
    }
    const auto result = perform(work, after);
    finish(ticket);
    return result;
}

void Stream::execute(const std::shared_ptr<Stream>& self) {
    for (;;) {
        Item item;
        {
            std::unique_lock guard(self->mutex_);
            self->changed_.wait(guard, [&] {
                return self->items_.empty() ? self->closed_
                                            : self->items_.front().ticket == self->completed_ + 1;
            });
            if (self->items_.empty())
                return;
            item = std::move(self->items_.front());
            self->items_.pop_front();
        }
        self->perform(item.work, item.after);
        // What the work holds is let go before anyone is told that it is done.
        item.work = nullptr;
        self->finish(item.ticket);
    }
}

CUresult Stream::perform(const Work& work, const std::vector<Moment>& after) {
    for (const auto& moment : after)
        moment.wait();
    if (const auto error = context_->error(); error != CUDA_SUCCESS)
        return error;
    auto result = CUDA_SUCCESS;
    try {
        result = work();
    } catch (const Error& error) {
        result = error.code();
    } catch (const std::bad_alloc&) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& error) {
        complain(error.what());
        result = CUDA_ERROR_UNKNOWN;
    }
    if (result != CUDA_SUCCESS)
        context_->fail(result);
    return result;
}

void Stream::finish(std::uint64_t ticket) {
    const std::lock_guard guard(mutex_);
    completed_ = ticket;
    changed_.notify_all();
}

Moment Stream::last() {
    const std::lock_guard guard(mutex_);
    return {shared_from_this(), given_};
}

void Stream::wait(std::uint64_t ticket) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return completed_ >= ticket; });
}

bool Stream::reached(std::uint64_t ticket) {
    const std::lock_guard guard(mutex_);
    return completed_ >= ticket;
}

void Stream::close() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
    changed_.notify_all();
}

std::shared_ptr<Event::Record> Event::record() {
    const std::lock_guard guard(mutex_);
    return record_;
}

void Event::set_record(std::shared_ptr<Record> record) {
    const std::lock_guard guard(mutex_);
    record_ = std::move(record);
}

} // namespace softgpu
