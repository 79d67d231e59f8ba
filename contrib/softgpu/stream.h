// SPDX-License-Identifier: BSD-3-Clause
// Streams: queues of work, each executed in order, and the moments in them that others wait for.
#pragma once

#include "contrib/softgpu/cuda_api.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace softgpu {

class Context;
class Stream;

// A piece of work's place in its stream: it and all before it.
struct Moment {
    std::shared_ptr<Stream> stream;
    std::uint64_t ticket = 0;

    void wait() const;
    [[nodiscard]] bool reached() const;
};

// The work of a stream runs in the order in which it was given a ticket: on the stream's own thread
// (queue()), or on the thread that asks for it (run()). Thread-safe.
class Stream : public std::enable_shared_from_this<Stream> {
public:
    // An error becomes the context's sticky error; work after it is passed over.
    using Work = std::function<CUresult()>;

    Stream(std::shared_ptr<Context> context, unsigned flags, int priority);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] unsigned flags() const { return flags_; }
    [[nodiscard]] int priority() const { return priority_; }
    [[nodiscard]] std::uint64_t id() const { return id_; }
    // Whether its work is ordered with that of the legacy default stream.
    [[nodiscard]] bool blocking() const { return (flags_ & CU_STREAM_NON_BLOCKING) == 0; }

    // Called by Context alone, which decides what the work has to wait for beside what its stream holds
    // already.
    std::uint64_t queue(Work work, std::vector<Moment> after);
    std::uint64_t take_ticket();
    CUresult run(std::uint64_t ticket, const Work& work, const std::vector<Moment>& after);

    [[nodiscard]] Moment last();
    void wait(std::uint64_t ticket);
    [[nodiscard]] bool reached(std::uint64_t ticket);
    // The stream's thread ends when all that was queued is done.
    void close();

private:
    struct Item {
        std::uint64_t ticket;
        Work work;
        std::vector<Moment> after;
    };
    static void execute(const std::shared_ptr<Stream>& self);
    CUresult perform(const Work& work, const std::vector<Moment>& after);
    void finish(std::uint64_t ticket);

    const std::shared_ptr<Context> context_;
    const unsigned flags_;
    const int priority_;
    const std::uint64_t id_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Item> items_;
    std::uint64_t given_ = 0;     // the newest ticket
    std::uint64_t completed_ = 0; // all up to this one are done
    bool has_thread_ = false;
    bool closed_ = false;
};

// Whether this thread is in a callback of the program, which may not call the driver.
[[nodiscard]] bool& in_callback();

class Event {
public:
    Event(std::shared_ptr<Context> context, unsigned flags) : context_(std::move(context)), flags_(flags) {}
    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] bool timed() const { return (flags_ & CU_EVENT_DISABLE_TIMING) == 0; }

    struct Record {
        Moment moment;
        std::int64_t nanoseconds = 0; // monotonic, when the moment was reached
    };
    // nullptr: never recorded.
    [[nodiscard]] std::shared_ptr<Record> record();
    void set_record(std::shared_ptr<Record> record);

private:
    const std::shared_ptr<Context> context_;
    const unsigned flags_;
    std::mutex mutex_;
    std::shared_ptr<Record> record_;
};

} // namespace softgpu
