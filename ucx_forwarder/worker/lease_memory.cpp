// SPDX-License-Identifier: BSD-3-Clause
// Each session has one counter per vGPU, and nothing else is stored: what the lease holds is the sum. So a
// worker that is killed at any instant leaves a page that is right, and zeroing its counters returns exactly
// what it held. The mutex (robust: its owner may die) only makes "sum, compare, add" one step among the
// workers; vgpud never waits for it, as a stopped worker may hold it.
#include "ucx_forwarder/worker/lease_memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cerrno>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace vgpu::worker {
namespace {

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free);

struct Page {
    static constexpr std::uint64_t expected_magic = 0x31304d454d475056; // "VPGMEM01"
    std::uint64_t magic;
    std::uint32_t vgpus;
    std::atomic<std::int32_t> slots_ever; ///< slots from here on were never used
    pthread_mutex_t mutex;
    std::array<Counter, LeaseMemory::max_vgpus> limits;
    std::array<std::array<Counter, LeaseMemory::max_vgpus>, LeaseMemory::max_sessions> held;
};

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

class PageLock {
public:
    explicit PageLock(pthread_mutex_t& mutex) : mutex_(mutex) {
        // The dead owner's half-done work needs no repair: its counter was or was not raised.
        if (pthread_mutex_lock(&mutex_) == EOWNERDEAD)
            pthread_mutex_consistent(&mutex_);
    }
    ~PageLock() { pthread_mutex_unlock(&mutex_); }
    PageLock(const PageLock&) = delete;
    PageLock& operator=(const PageLock&) = delete;

private:
    pthread_mutex_t& mutex_;
};

class SharedLeaseMemory final : public LeaseMemory {
public:
    SharedLeaseMemory(int fd, int slot) : fd_(fd), slot_(slot) {
        void* at = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) {
            const int error = errno;
            ::close(fd);
            errno = error;
            fail("mapping the lease's memory page");
        }
        page_ = static_cast<Page*>(at);
    }
    ~SharedLeaseMemory() override {
        munmap(page_, sizeof(Page));
        ::close(fd_);
    }
    SharedLeaseMemory(const SharedLeaseMemory&) = delete;
    SharedLeaseMemory& operator=(const SharedLeaseMemory&) = delete;

    void initialise(const std::vector<std::uint64_t>& limits) {
        page_->vgpus = static_cast<std::uint32_t>(limits.size());
        for (std::size_t i = 0; i < limits.size(); ++i)
            page_->limits[i] = limits[i];
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&page_->mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
        page_->magic = Page::expected_magic;
    }
    bool valid() const { return page_->magic == Page::expected_magic && page_->vgpus <= max_vgpus; }

    int fd() const override { return fd_; }

    bool take(int vgpu, std::uint64_t bytes) override {
        Counter& own = counter(vgpu, slot_);
        PageLock lock(page_->mutex);
        const std::uint64_t now = used(vgpu), most = page_->limits[static_cast<std::size_t>(vgpu)];
        if (now > most || bytes > most - now)
            return false;
        own.fetch_add(bytes);
        return true;
    }

    void give(int vgpu, std::uint64_t bytes) override {
        Counter& own = counter(vgpu, slot_);
        std::uint64_t now = own.load();
        while (!own.compare_exchange_weak(now, now > bytes ? now - bytes : 0)) {
        }
    }

    std::uint64_t limit(int vgpu) const override {
        check(vgpu);
        return page_->limits[static_cast<std::size_t>(vgpu)];
    }

    std::uint64_t used(int vgpu) const override {
        check(vgpu);
        std::uint64_t sum = 0;
        const int ever = std::min(page_->slots_ever.load(), max_sessions);
        for (int slot = 0; slot < ever; ++slot)
            sum += page_->held[static_cast<std::size_t>(slot)][static_cast<std::size_t>(vgpu)].load();
        return sum;
    }

    std::uint64_t used(int vgpu, int slot) const override { return counter(vgpu, slot).load(); }

    void set_limit(int vgpu, std::uint64_t bytes) override {
        check(vgpu);
        page_->limits[static_cast<std::size_t>(vgpu)] = bytes;
    }

    int open_slot() override {
        for (int slot = 0; slot < max_sessions; ++slot) {
            if (taken_[static_cast<std::size_t>(slot)])
                continue;
            taken_[static_cast<std::size_t>(slot)] = true;
            if (page_->slots_ever.load() <= slot)
                page_->slots_ever = slot + 1;
            return slot;
        }
        return -1;
    }

    void close_slot(int slot) override {
        for (int vgpu = 0; vgpu < static_cast<int>(page_->vgpus); ++vgpu)
            counter(vgpu, slot).store(0);
        taken_[static_cast<std::size_t>(slot)] = false;
    }

private:
    void check(int vgpu) const {
        if (vgpu < 0 || vgpu >= static_cast<int>(page_->vgpus))
            throw std::out_of_range("the lease has no vGPU " + std::to_string(vgpu));
    }
    Counter& counter(int vgpu, int slot) const {
        check(vgpu);
        if (slot < 0 || slot >= max_sessions)
            throw std::out_of_range("the lease has no session slot " + std::to_string(slot));
        return page_->held[static_cast<std::size_t>(slot)][static_cast<std::size_t>(vgpu)];
    }

    int fd_;
    int slot_;
    Page* page_ = nullptr;
    std::bitset<max_sessions> taken_; ///< vgpud's own; the workers of a vgpud do not outlive it
};

} // namespace

std::unique_ptr<LeaseMemory> LeaseMemory::create(const std::vector<std::uint64_t>& limits) {
    if (limits.empty() || limits.size() > max_vgpus)
        throw std::invalid_argument("a lease has 1 to " + std::to_string(max_vgpus) + " vGPUs, not " +
                                    std::to_string(limits.size()));
    const int fd = memfd_create("vgpu-lease", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        fail("memfd_create for a lease's memory page");
    // Sealed, as a page that a worker could shorten would be vgpud's end (SIGBUS).
    if (ftruncate(fd, sizeof(Page)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        const int error = errno;
        ::close(fd);
        errno = error;
        fail("sizing a lease's memory page");
    }
    auto memory = std::make_unique<SharedLeaseMemory>(fd, -1);
    memory->initialise(limits);
    return memory;
}

std::unique_ptr<LeaseMemory> LeaseMemory::attach(int fd, int slot) {
    struct stat status {};
    if (fstat(fd, &status) != 0)
        fail("the lease's memory page");
    if (status.st_size != static_cast<off_t>(sizeof(Page)) || slot < 0 || slot >= max_sessions)
        throw std::invalid_argument("descriptor " + std::to_string(fd) + " is no lease's memory page");
    auto memory = std::make_unique<SharedLeaseMemory>(fd, slot);
    if (!memory->valid())
        throw std::invalid_argument("descriptor " + std::to_string(fd) + " is no lease's memory page");
    return memory;
}

} // namespace vgpu::worker
