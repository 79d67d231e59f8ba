// SPDX-License-Identifier: BSD-3-Clause
// Launches: blocks over CPU threads. Each CPU thread takes blocks in order. One that only spins, or takes
// long, gets company: further blocks, which take turns with it, for it may wait for them.
#include "contrib/softgpu/ptx/block.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>

namespace softgpu::ptx {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSlice{
    20}; // after which another block may be started beside a running one
// Blocks a CPU thread has started and not ended, unless cooperative: when they seem to wait for others, or
// are slow.
constexpr std::size_t kMostResident = 128, kMostSlow = 8;
constexpr std::uint64_t kMostBlocks = 0x7fffffff;
std::atomic<std::uint64_t> launches{0};

// What one CPU thread does for a launch.
class BlockRunner {
public:
    BlockRunner(Launch& launch, unsigned cpu, unsigned cpus) : launch_(launch), cpu_(cpu), cpus_(cpus) {}

    void run() {
        if (launch_.options->cooperative)
            for (std::uint64_t i = cpu_; i < launch_.blocks; i += cpus_)
                start(i);
        else
            start_next();
        while (!resident_.empty() && !launch_.stopping())
            turn();
    }

private:
    void start(std::uint64_t index) {
        std::unique_ptr<Block> block;
        if (spare_.empty()) {
            block = std::make_unique<Block>();
        } else {
            block = std::move(spare_.back());
            spare_.pop_back();
        }
        block->start(launch_, index, cpu_);
        resident_.push_back(std::move(block));
    }

    bool start_next() {
        if (launch_.options->cooperative)
            return false;
        const std::uint64_t index = launch_.next_block.fetch_add(1);
        if (index >= launch_.blocks) {
            launch_.next_block.store(launch_.blocks); // no overflow however often this is tried
            return false;
        }
        start(index);
        return true;
    }

    // Lets the block at the front run for its slice.
    void turn() {
        const Clock::time_point begin = Clock::now();
        BlockState state = BlockState::running;
        unsigned spins = 0;
        do {
            state = resident_.front()->round();
            spins = state == BlockState::spinning ? spins + 1 : 0;
        } while (state != BlockState::done && spins < 2 && !launch_.stopping() &&
                 (resident_.size() == 1 || spins == 0) && Clock::now() - begin < kSlice);
        if (state == BlockState::done) {
            spare_.push_back(std::move(resident_.front()));
            resident_.pop_front();
            if (resident_.empty())
                start_next();
            return;
        }
        std::unique_ptr<Block> block = std::move(resident_.front());
        resident_.pop_front();
        resident_.push_back(std::move(block));
        // All of them had a turn and none ended.
        if (++turns_ < resident_.size())
            return;
        turns_ = 0;
        if (resident_.size() >= (spins > 0 ? kMostResident : kMostSlow) || !start_next())
            std::this_thread::yield();
    }

    Launch& launch_;
    unsigned cpu_, cpus_;
    std::deque<std::unique_ptr<Block>> resident_;
    std::vector<std::unique_ptr<Block>> spare_;
    std::size_t turns_ = 0;
};

} // namespace

// CPU threads that sleep until there is a launch.
struct Engine::Pool {
    struct Job {
        Launch* launch = nullptr;
        unsigned wanted = 0, started = 0, running = 0; // helpers
        unsigned cpus = 1;
    };

    explicit Pool(unsigned threads) {
        for (unsigned i = 1; i < std::max(1U, threads); ++i)
            workers.emplace_back([this] { work(); });
    }
    ~Pool() {
        {
            const std::lock_guard lock(mutex);
            closing = true;
        }
        wake.notify_all();
        for (std::thread& t : workers)
            t.join();
    }
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    void work() {
        std::unique_lock lock(mutex);
        for (;;) {
            wake.wait(lock, [&] { return closing || !jobs.empty(); });
            if (closing)
                return;
            Job& job = *jobs.front();
            const unsigned cpu = ++job.started;
            ++job.running;
            if (job.started == job.wanted)
                jobs.pop_front();
            lock.unlock();
            BlockRunner(*job.launch, cpu, job.cpus).run();
            lock.lock();
            --job.running;
            done.notify_all();
        }
    }

    void run(Launch& launch) {
        Job job;
        job.launch = &launch;
        job.wanted = static_cast<unsigned>(std::min<std::uint64_t>(workers.size(), launch.blocks - 1));
        job.cpus = job.wanted + 1;
        if (job.wanted > 0) {
            const std::lock_guard lock(mutex);
            jobs.push_back(&job);
        }
        for (unsigned i = 0; i < job.wanted; ++i)
            wake.notify_one();
        BlockRunner(launch, 0, job.cpus).run();
        if (job.wanted == 0)
            return;
        std::unique_lock lock(mutex);
        // A cooperative launch needs the blocks of every CPU thread; of another one nothing is left to take.
        if (!launch.options->cooperative)
            std::erase(jobs, &job);
        done.wait(lock, [&] {
            const bool queued = std::find(jobs.begin(), jobs.end(), &job) != jobs.end();
            return !queued && job.running == 0;
        });
    }

    std::mutex mutex;
    std::condition_variable wake, done;
    std::deque<Job*> jobs;
    std::vector<std::thread> workers;
    bool closing = false;
};

Engine::Engine(const AddressSpace& space, unsigned threads)
    : space_(space), pool_(std::make_unique<Pool>(threads)) {}
Engine::~Engine() = default;

LaunchResult Engine::launch(const Kernel& kernel, const Dim3& grid, const Dim3& block,
                            std::uint32_t dynamic_shared_bytes, std::span<const std::byte> parameters,
                            const LaunchOptions& options) {
    const auto refuse = [&](const std::string& why) {
        return LaunchResult{Status::invalid_launch, "kernel " + kernel.name + ": " + why, 0};
    };
    if (!kernel.unsupported.empty())
        return {Status::not_supported, "kernel " + kernel.name + ": " + kernel.unsupported, 0};
    if (grid.count() == 0 || grid.count() > (kMostBlocks << 16) || block.count() == 0 || block.x > 1024 ||
        block.y > 1024 || block.z > 64 || block.count() > kernel.max_threads)
        return refuse("a grid of " + std::to_string(grid.count()) + " blocks of " +
                      std::to_string(block.count()) + " threads cannot run, a block has 1 to " +
                      std::to_string(kernel.max_threads) + " threads");
    const Dim3& required = kernel.required_block;
    if (required.count() != 0 && (block.x != required.x || block.y != required.y || block.z != required.z))
        return refuse("its .reqntid asks for another block shape");
    if (parameters.size() < kernel.parameter_bytes)
        return refuse("it takes " + std::to_string(kernel.parameter_bytes) + " bytes of parameters and got " +
                      std::to_string(parameters.size()));
    Launch launch;
    launch.kernel = &kernel;
    launch.grid = grid;
    launch.block = block;
    launch.static_shared = (kernel.static_shared_bytes + 15) & ~15U;
    launch.dynamic_begin = launch.static_shared;
    launch.dynamic_shared = dynamic_shared_bytes;
    if (std::uint64_t{launch.static_shared} + dynamic_shared_bytes > options.max_shared_bytes)
        return refuse(std::to_string(std::uint64_t{launch.static_shared} + dynamic_shared_bytes) +
                      " bytes of shared memory are more than a block can have (" +
                      std::to_string(options.max_shared_bytes) + ")");
    launch.shared_bytes = launch.static_shared + dynamic_shared_bytes;
    if (kernel.program->reserved_shared) {
        launch.reserved_begin = (launch.shared_bytes + 127) & ~127U;
        launch.shared_bytes = launch.reserved_begin + kReservedSharedBytes;
    }
    launch.parameters.assign(parameters.begin(), parameters.begin() + kernel.parameter_bytes);
    launch.options = &options;
    launch.space = space_;
    launch.blocks = grid.count();
    launch.id = ++launches;
    // Calls here keep parameters in local memory where a device has them in registers: leave room for that.
    launch.local_limit = std::uint64_t{kernel.local_bytes} + options.stack_bytes * 16 + 16384;
    launch.depth_limit =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(options.stack_bytes / 4 + 256, 65536));
    pool_->run(launch);
    if (launch.result.status == Status::ok && launch.next_block.load() < launch.blocks &&
        !options.cooperative)
        launch.result = {Status::stopped, "kernel " + kernel.name + " was stopped", 0};
    if (launch.result.status == Status::ok && options.stop != nullptr && options.stop->load())
        launch.result = {Status::stopped, "kernel " + kernel.name + " was stopped", 0};
    return launch.result;
}

} // namespace softgpu::ptx
