// SPDX-License-Identifier: BSD-3-Clause
// Link: waiting, and the helper thread.
#include "ucx_forwarder/transport/link.h"

#include <algorithm>
#include <ctime>
#include <poll.h>
#include <unistd.h>

namespace vgpu::transport {
namespace {

using namespace std::chrono_literals;

constexpr auto owner_sleep = 1000ms;
/// After something was sent the helper stays near for so long, so that the next unsent batch needs no system
/// call.
constexpr auto active_time = 10ms;
constexpr auto active_tick = 200us;

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

void signal_fd(int fd) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
}

void drain_fd(int fd) {
    std::uint64_t count;
    [[maybe_unused]] const auto got = ::read(fd, &count, sizeof count);
}

} // namespace

/// Something changed: waiters look at their conditions.
void Link::announce() {
    events_.fetch_add(1);
    if (owner_sleeps_.load())
        signal_fd(wake_fd_.fd);
    if (guests_.load() > 0) {
        std::lock_guard lock(waiting_->mutex);
        waiting_->changed.notify_all();
    }
}

void Link::wake() {
    if (!forked())
        announce();
}

bool Link::must_stop() const {
    return lost() && (lost_told_.load() || receiver_.load() == nullptr);
}

void Link::sleep(int wake_fd, std::uint64_t seen, std::chrono::milliseconds longest) {
    int ucx_fd = -1;
    {
        std::lock_guard lock(mutex_);
        if (events_.load() != seen)
            return;
        if (halves_->outgoing.has_unflushed() && halves_->outgoing.pipe_idle())
            halves_->outgoing.flush();
        if (!dead_) {
            if (ucp_worker_arm(ucx_->worker()) != UCS_OK)
                return; // UCS_ERR_BUSY: there is something already
            ucx_fd = ucx_->event_fd();
        }
        if (lost())
            longest = std::min(longest, 5ms);
    }
    pollfd fds[2] = {{wake_fd, POLLIN, 0}, {ucx_fd, POLLIN, 0}};
    if (poll(fds, 2, static_cast<int>(longest.count())) > 0 && fds[0].revents != 0)
        drain_fd(wake_fd);
}

bool Link::become_owner() {
    bool free = false;
    return owned_.compare_exchange_strong(free, true);
}

void Link::own(const std::function<bool()>& done) {
    auto spin_until = Clock::now() + options_.spin;
    while (!must_stop()) {
        const std::uint64_t seen = events_.load();
        const bool moved = step();
        if (done())
            break;
        if (moved) {
            spin_until = Clock::now() + options_.spin;
        } else if (Clock::now() < spin_until) {
            relax();
        } else {
            owner_sleeps_ = true;
            sleep(wake_fd_.fd, seen, owner_sleep);
            owner_sleeps_ = false;
            spin_until = Clock::now() + options_.spin;
        }
    }
    owned_ = false;
    if (guests_.load() > 0) {
        std::lock_guard lock(waiting_->mutex);
        waiting_->changed.notify_all(); // one of them becomes the owner
    }
}

void Link::wait_as_guest(const std::function<bool()>& done) {
    const auto spin_until = Clock::now() + options_.spin;
    std::uint64_t seen = events_.load();
    while (Clock::now() < spin_until) {
        if (!owned_.load())
            return;
        if (const std::uint64_t now = events_.load(); now != seen) {
            seen = now;
            if (done())
                return;
        }
        relax();
    }
    ++guests_;
    seen = events_.load();
    if (!done()) {
        std::unique_lock lock(waiting_->mutex);
        waiting_->changed.wait_for(lock, owner_sleep,
                                   [&] { return events_.load() != seen || !owned_.load(); });
    }
    --guests_;
}

bool Link::wait_until(const std::function<bool()>& done) {
    if (forked())
        return false;
    {
        std::lock_guard lock(mutex_);
        halves_->outgoing.flush();
    }
    for (;;) {
        if (done())
            return true;
        if (must_stop())
            return false;
        if (become_owner())
            own(done);
        else
            wait_as_guest(done);
    }
}

/// Backpressure: until the peer is done with enough of what it was sent. The helper delivers meanwhile, as
/// this thread may hold locks of its own.
void Link::wait_for_window() {
    const auto spin_until = Clock::now() + options_.spin;
    for (;;) {
        {
            std::lock_guard lock(mutex_);
            progress_locked();
            if (lost() || halves_->outgoing.unacknowledged() <= window)
                break;
        }
        if (Clock::now() < spin_until) {
            relax();
        } else {
            kick_helper();
            std::this_thread::sleep_for(active_tick);
        }
    }
    run_finished();
}

void Link::kick_helper() {
    if (!helper_awake_.load())
        signal_fd(kick_fd_.fd);
}

void Link::help() {
    const auto tick = std::max<std::chrono::milliseconds>(
        10ms,
        std::min(options_.heartbeat, options_.peer_timeout.count() > 0 ? options_.peer_timeout : 4000ms) / 4);
    auto last_beat = Clock::now(), active_until = last_beat;
    while (!stop_helper_.load()) {
        auto now = Clock::now();
        // A long call of the receiver belongs to the waiting thread, else nobody would send heartbeats.
        if (now - last_beat >= tick) {
            step(!owned_.load());
            beat(now, last_beat, tick);
            last_beat = now;
        }
        const auto to_beat = std::chrono::ceil<std::chrono::milliseconds>(last_beat + tick - now);
        const bool alone = !owned_.load() || delivering_.load();
        const std::uint64_t seen = events_.load();
        bool busy, bulk;
        {
            std::lock_guard lock(mutex_);
            busy = halves_->outgoing.busy() || (lost() && !lost_told_);
            bulk = halves_->outgoing.in_flight() > 0 || halves_->outgoing.bulk_pending() ||
                   halves_->incoming.receiving() > 0;
            if (now - last_sent_ < active_time)
                active_until = std::max(active_until, last_sent_ + active_time);
        }
        if (alone && bulk && !dead_) {
            helper_awake_ = true;
            if (!step(!owned_.load()))
                sleep(kick_fd_.fd, seen, std::min<std::chrono::milliseconds>(to_beat, 5ms));
        } else if (now < active_until || (alone && busy)) {
            helper_awake_ = true;
            std::this_thread::sleep_for(active_tick);
            if (!owned_.load() || delivering_.load())
                step(!owned_.load());
        } else if (helper_awake_.exchange(false)) {
            continue; // look once more: who saw us awake did not kick
        } else {
            pollfd kicked{kick_fd_.fd, POLLIN, 0};
            if (poll(&kicked, 1, static_cast<int>(std::max<std::int64_t>(1, to_beat.count()))) > 0) {
                drain_fd(kick_fd_.fd);
                active_until = Clock::now() + active_time;
                helper_awake_ = true;
            }
        }
    }
}

/// Tells the peer that we live, and looks whether it does.
void Link::beat(Clock::time_point now, Clock::time_point last, std::chrono::milliseconds tick) {
    timespec coarse{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    const std::int64_t now_ms = std::int64_t{coarse.tv_sec} * 1000 + coarse.tv_nsec / 1000000;
    // Who was stopped itself cannot know whether the peer was silent.
    if (now - last > 4 * tick)
        last_heard_ = now_ms;
    std::lock_guard lock(mutex_);
    if (lost())
        return;
    // By a quarter earlier than asked: the ticks are coarse.
    if (now - last_sent_ >= options_.heartbeat * 3 / 4) {
        halves_->outgoing.send_control(halves_->incoming.consumed());
        last_sent_ = now;
    }
    const auto silence = std::chrono::milliseconds(now_ms - last_heard_.load());
    if (options_.peer_timeout.count() > 0 && silence > options_.peer_timeout)
        lose_locked("nothing came from " + peer_ + " for " + std::to_string(silence.count()) +
                    " ms (PeerTimeout in vgpu.conf): the process there hangs, or the link is cut");
}

} // namespace vgpu::transport
