// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/node/sessions.h"

#include <cerrno>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <stdexcept>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vgpu::node {

Sessions::Sessions(std::function<void()> changed)
    : changed_(std::move(changed)), poke_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Sessions::~Sessions() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
    }
    poke();
    thread_.join();
}

void Sessions::poke() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(poke_fd_.get(), &one, sizeof one);
}

Sessions::Started Sessions::start(SessionPlan plan, std::chrono::milliseconds deadline) {
    Wish wish;
    wish.plan = std::move(plan);
    auto ready = wish.ready.get_future();
    std::uint64_t id = 0;
    {
        std::lock_guard lock(mutex_);
        id = wish.id = next_id_++;
        wishes_.push_back(std::move(wish));
    }
    poke();
    if (ready.wait_for(deadline) != std::future_status::ready) {
        end_session(id);
        throw std::runtime_error("the worker did not begin to listen within " +
                                 std::to_string(deadline.count()) + " ms");
    }
    return {id, ready.get()};
}

void Sessions::run() {
    for (;;) {
        std::vector<pollfd> fds{{poke_fd_.get(), POLLIN, 0}};
        std::vector<std::uint64_t> ids;
        std::deque<Wish> wishes;
        {
            std::lock_guard lock(mutex_);
            if (stop_)
                break;
            wishes.swap(wishes_);
        }
        for (auto& wish : wishes)
            begin(std::move(wish));
        {
            std::lock_guard lock(mutex_);
            for (const auto& [id, entry] : entries_) {
                ids.push_back(id);
                fds.push_back({entry->process.pidfd.get(), POLLIN, 0});
                fds.push_back({entry->process.socket.get(), POLLIN, 0});
            }
        }
        if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR)
            spdlog::error("poll: {}", strerror(errno));
        std::uint64_t count;
        [[maybe_unused]] const auto drained = read(poke_fd_.get(), &count, sizeof count);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (fds[2 + 2 * i].revents != 0) {
                std::lock_guard lock(mutex_);
                read_reports(*entries_.at(ids[i]));
            }
            if (fds[1 + 2 * i].revents != 0)
                finish(ids[i]);
        }
    }
    std::vector<std::uint64_t> ids;
    for (const auto& [id, entry] : entries_) {
        entry->process.kill();
        ids.push_back(id);
    }
    for (const auto id : ids)
        finish(id);
    for (auto& wish : wishes_)
        wish.ready.set_exception(std::make_exception_ptr(std::runtime_error("vgpud ends")));
}

void Sessions::begin(Wish wish) {
    auto entry = std::make_unique<Entry>();
    entry->plan = std::move(wish.plan);
    entry->ready = std::move(wish.ready);
    SessionPlan& plan = entry->plan;
    try {
        {
            std::lock_guard lock(mutex_);
            entry->slot = plan.memory->open_slot();
        }
        if (entry->slot < 0)
            throw std::runtime_error("lease " + plan.lease + " has " +
                                     std::to_string(worker::LeaseMemory::max_sessions) +
                                     " sessions already, more are not possible");
        plan.job.slot = entry->slot;
        plan.job.job.session = wish.id;
        plan.spawn.memory_fd = plan.memory->fd();
        entry->process = spawn(plan.spawn);
        const std::string line = to_line(plan.job);
        // A fresh socket takes this much without waiting.
        if (send(entry->process.socket.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(line.size()))
            spdlog::warn("session {}: the worker took no job: {}", wish.id, strerror(errno));
    } catch (const std::exception& error) {
        spdlog::error("session {} of claim {}: {}", wish.id, plan.claim, error.what());
        if (entry->slot >= 0) {
            std::lock_guard lock(mutex_);
            plan.memory->close_slot(entry->slot);
        }
        entry->ready.set_exception(std::current_exception());
        return;
    }
    entry->shown.id = wish.id;
    entry->shown.claim = plan.claim;
    entry->shown.lease = plan.lease;
    entry->shown.pid = entry->process.pid;
    entry->shown.client = plan.job.job.client;
    spdlog::info("session {}: worker {} as uid {} for {}, claim {}", wish.id, entry->process.pid,
                 plan.spawn.uid, plan.job.job.client, plan.claim);
    std::lock_guard lock(mutex_);
    entries_.emplace(wish.id, std::move(entry));
}

void Sessions::read_reports(Entry& entry) {
    char buffer[4096];
    const ssize_t got = recv(entry.process.socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got == 0 && entry.process.socket.get() >= 0)
        entry.process.socket = OwnedFd(); // its end follows
    if (got <= 0)
        return;
    entry.input.append(buffer, static_cast<std::size_t>(got));
    for (std::size_t end; (end = entry.input.find('\n')) != std::string::npos; entry.input.erase(0, end + 1))
        take_report(entry, entry.input.substr(0, end));
    if (entry.input.size() > (1u << 16)) {
        spdlog::warn("session {}: the worker sends no lines; it is killed", entry.shown.id);
        entry.process.kill();
        entry.input.clear();
    }
}

void Sessions::take_report(Entry& entry, const std::string& line) {
    try {
        const worker::Report report = worker::report_from_line(line);
        if (report.port != 0 && !entry.answered) {
            entry.answered = true;
            entry.ready.set_value(report.port);
        }
        if (!report.failure.empty())
            entry.failure = report.failure;
        if (!report.transport.empty())
            entry.shown.transport = report.transport;
        entry.shown.calls_sent = std::max(entry.shown.calls_sent, report.calls_sent);
        entry.shown.calls_awaited = std::max(entry.shown.calls_awaited, report.calls_awaited);
    } catch (const std::exception& error) {
        spdlog::warn("session {}: {}", entry.shown.id, error.what());
    }
}

void Sessions::finish(std::uint64_t id) {
    std::unique_ptr<Entry> entry;
    int status = 0;
    {
        std::lock_guard lock(mutex_);
        const auto found = entries_.find(id);
        if (found == entries_.end())
            return;
        read_reports(*found->second); // its last words
        // Reaped under the lock: nobody sends a signal to an entry that is found in the table and not alive.
        status = found->second->process.reap();
        found->second->plan.memory->close_slot(found->second->slot);
        entry = std::move(found->second);
        entries_.erase(found);
    }
    spdlog::info("session {}: worker ended with status {}; transport {}, {} calls, {} awaited", id, status,
                 entry->shown.transport.empty() ? "none" : entry->shown.transport, entry->shown.calls_sent,
                 entry->shown.calls_awaited);
    if (!entry->answered)
        entry->ready.set_exception(std::make_exception_ptr(std::runtime_error(
            entry->failure.empty() ? "the worker ended with status " + std::to_string(status) +
                                         " before it listened; vgpud's log has its message"
                                   : entry->failure)));
    ended_.notify_all();
    changed_();
}

void Sessions::end(const std::function<bool(const Entry&)>& which, std::chrono::milliseconds deadline) {
    std::unique_lock lock(mutex_);
    auto any = [&] {
        bool found = false;
        for (const auto& [id, entry] : entries_)
            if (which(*entry)) {
                entry->process.kill();
                found = true;
            }
        return found;
    };
    if (any() && !ended_.wait_for(lock, deadline, [&] { return !any(); }))
        spdlog::warn("a killed worker has not ended within {} ms; it is looked after further",
                     deadline.count());
}

void Sessions::end_lease(const std::string& lease, std::chrono::milliseconds deadline) {
    end([&](const Entry& entry) { return entry.plan.lease == lease; }, deadline);
}

void Sessions::end_claim(const std::string& claim, std::chrono::milliseconds deadline) {
    end([&](const Entry& entry) { return entry.plan.claim == claim; }, deadline);
}

void Sessions::end_session(std::uint64_t id) {
    std::lock_guard lock(mutex_);
    if (const auto found = entries_.find(id); found != entries_.end())
        found->second->process.kill();
}

std::vector<control::Session> Sessions::list() const {
    std::lock_guard lock(mutex_);
    std::vector<control::Session> all;
    for (const auto& [id, entry] : entries_) {
        control::Session session = entry->shown;
        for (std::size_t vgpu = 0; vgpu < entry->plan.vgpus; ++vgpu)
            session.memory_used.push_back(entry->plan.memory->used(static_cast<int>(vgpu), entry->slot));
        all.push_back(std::move(session));
    }
    return all;
}

} // namespace vgpu::node
