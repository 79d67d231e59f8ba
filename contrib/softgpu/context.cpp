// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/context.h"

#include "contrib/softgpu/driver.h"
#include "contrib/softgpu/error.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace softgpu {
namespace {

std::uint64_t next_context_id() {
    static std::atomic<std::uint64_t> next{1};
    return next++;
}

// This thread's default streams, one for each context, until it ends.
class ThreadStreams {
public:
    ThreadStreams() = default;
    ~ThreadStreams() {
        for (auto& [context, stream] : streams_)
            stream->context().forget_stream(stream);
    }
    ThreadStreams(const ThreadStreams&) = delete;
    ThreadStreams& operator=(const ThreadStreams&) = delete;

    std::shared_ptr<Stream>& of(std::uint64_t context) { return streams_[context]; }

private:
    std::map<std::uint64_t, std::shared_ptr<Stream>> streams_;
};

} // namespace

// The main thread keeps its stack: programs call the driver from exit handlers, which run after the destructors of its
// thread-local objects. What another thread calls that late finds an empty one.
std::vector<std::shared_ptr<Context>>& context_stack() {
    using Stack = std::vector<std::shared_ptr<Context>>;
    static thread_local constinit Stack* stack = nullptr;
    static thread_local struct Ending {
        ~Ending() {
            if (::gettid() != ::getpid())
                delete std::exchange(stack, nullptr);
        }
    } ending;
    if (!stack) {
        (void)&ending; // its destructor is registered by this use
        stack = new Stack;
    }
    return *stack;
}

Context::Context(Device& device, unsigned flags, bool primary)
    : device_(device), id_(next_context_id()), primary_(primary), flags_(flags) {}

Context::~Context() = default;

void Context::fail(CUresult error) {
    auto none = CUDA_SUCCESS;
    error_.compare_exchange_strong(none, error);
}

std::shared_ptr<Stream> Context::stream(CUstream handle, CUstream null_stream) {
    if (handle == nullptr)
        handle = null_stream;
    if (handle == CU_STREAM_LEGACY) {
        const std::lock_guard guard(order_);
        if (!legacy_)
            legacy_ = std::make_shared<Stream>(shared_from_this(), CU_STREAM_DEFAULT, 0);
        return legacy_;
    }
    if (handle == CU_STREAM_PER_THREAD)
        return per_thread_stream();
    auto found = Driver::get().streams.find(handle);
    require(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return found;
}

std::shared_ptr<Stream> Context::per_thread_stream() {
    static thread_local ThreadStreams mine;
    auto& stream = mine.of(id_);
    const std::lock_guard guard(order_);
    // A context that was cleared has forgotten it.
    if (!stream || std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) {
        stream = std::make_shared<Stream>(shared_from_this(), CU_STREAM_DEFAULT, 0);
        streams_.push_back(stream);
    }
    return stream;
}

CUstream Context::create_stream(unsigned flags, int priority) {
    auto stream = std::make_shared<Stream>(shared_from_this(), flags, priority);
    const std::lock_guard guard(order_);
    streams_.push_back(stream);
    return Driver::get().streams.add<CUstream>(std::move(stream));
}

void Context::destroy_stream(CUstream handle) {
    if (const auto stream = Driver::get().streams.remove(handle))
        forget_stream(stream);
}

void Context::forget_stream(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard guard(order_);
    std::erase_if(destroyed_, [](const Moment& moment) { return moment.reached(); });
    if (std::erase(streams_, stream) != 0)
        destroyed_.push_back(stream->last());
    stream->close();
}

std::vector<Moment> Context::order(Stream& stream, std::vector<Moment> after) {
    const auto add = [&](const std::shared_ptr<Stream>& other) {
        auto last = other->last();
        if (!last.reached())
            after.push_back(std::move(last));
    };
    if (&stream == legacy_.get()) {
        for (const auto& other : streams_)
            if (other->blocking())
                add(other);
        for (const auto& moment : destroyed_)
            if (moment.stream->blocking())
                after.push_back(moment);
    } else if (legacy_ && stream.blocking()) {
        add(legacy_);
    }
    return after;
}

Moment Context::submit(Stream& stream, Stream::Work work, std::vector<Moment> after) {
    const std::lock_guard guard(order_);
    auto before = order(stream, std::move(after));
    const auto ticket = stream.queue(std::move(work), std::move(before));
    return {stream.shared_from_this(), ticket};
}

CUresult Context::run(Stream& stream, const Stream::Work& work) {
    std::vector<Moment> before;
    std::uint64_t ticket = 0;
    {
        const std::lock_guard guard(order_);
        before = order(stream, {});
        ticket = stream.take_ticket();
    }
    return stream.run(ticket, work, before);
}

std::vector<Moment> Context::pending() {
    const std::lock_guard guard(order_);
    auto moments = std::exchange(destroyed_, {});
    if (legacy_)
        moments.push_back(legacy_->last());
    for (const auto& stream : streams_)
        moments.push_back(stream->last());
    return moments;
}

CUresult Context::synchronize() {
    for (const auto& moment : pending())
        moment.wait();
    return error_;
}

bool Context::enable_peer(std::uint64_t context, bool enabled) {
    const std::lock_guard guard(state_);
    return enabled ? peers_.insert(context).second : peers_.erase(context) != 0;
}

std::size_t Context::limit(CUlimit limit) {
    const std::lock_guard guard(state_);
    if (const auto found = limits_.find(limit); found != limits_.end())
        return found->second;
    switch (limit) {
    case CU_LIMIT_STACK_SIZE:
        return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
        return std::size_t{1} << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
        return std::size_t{8} << 20;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        return 128;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
        return 0;
    default:
        throw Error(CUDA_ERROR_UNSUPPORTED_LIMIT);
    }
}

void Context::set_limit(CUlimit limit, std::size_t value) {
    (void)this->limit(limit); // is there such a one?
    const std::lock_guard guard(state_);
    if (limit == CU_LIMIT_STACK_SIZE)
        require(value <= std::size_t{512} << 10);
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
        require(value <= device_.shared().total());
        // The heap that kernels have used keeps its size.
        require(heap_ == nullptr);
    }
    limits_[limit] = value;
}

ptx::DeviceHeap* Context::heap() {
    const auto bytes = limit(CU_LIMIT_MALLOC_HEAP_SIZE);
    const std::lock_guard guard(state_);
    if (!heap_ && bytes != 0) {
        Allocation wanted;
        wanted.size = bytes;
        wanted.device = device_.index();
        wanted.context = id_;
        try {
            heap_ =
                std::make_unique<ptx::DeviceHeap>(Driver::get().memory().allocate(wanted), page_ceil(bytes));
        } catch (const Error&) {
            return nullptr; // malloc gives NULL, as when the heap is used up
        }
    }
    return heap_.get();
}

std::uint64_t Context::grid_workspace() {
    constexpr std::size_t kBytes = 64;
    const std::lock_guard guard(state_);
    if (grid_workspace_ == 0) {
        Allocation wanted;
        wanted.size = kBytes;
        wanted.device = device_.index();
        wanted.context = id_;
        try {
            grid_workspace_ = Driver::get().memory().allocate(wanted);
        } catch (const Error&) {
            return 0; // grid.sync traps
        }
        std::memset(reinterpret_cast<void*>(grid_workspace_), 0, kBytes);
    }
    return grid_workspace_;
}

void Context::clear() {
    auto& driver = Driver::get();
    (void)synchronize();
    const auto mine = [this](const auto& object) { return &object.context() == this; };
    driver.streams.remove_if(mine);
    driver.events.remove_if(mine);
    driver.remove_modules(*this);
    {
        const std::lock_guard guard(order_);
        if (legacy_)
            legacy_->close();
        for (const auto& stream : streams_)
            stream->close();
        legacy_ = nullptr;
        streams_.clear();
        destroyed_.clear();
    }
    const std::lock_guard guard(state_);
    heap_ = nullptr;
    grid_workspace_ = 0;
    limits_.clear();
    peers_.clear();
    driver.memory().remove_context(id_);
    error_ = CUDA_SUCCESS;
}

} // namespace softgpu
