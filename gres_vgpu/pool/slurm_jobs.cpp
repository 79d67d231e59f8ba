// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/pool/slurm_jobs.h"

#include <charconv>
#include <csignal>
#include <cstring>
#include <ctime>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topology/parse.h"

namespace vgpu::pool {

using control::Error;
using control::ErrorKind;
using control::Job;
using control::Result;

namespace {

constexpr std::chrono::seconds squeue_timeout{30};

class Fd {
public:
    explicit Fd(int fd) : fd_(fd) {}
    ~Fd() { reset(); }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    int get() const { return fd_; }
    void reset() {
        if (fd_ >= 0)
            close(fd_);
        fd_ = -1;
    }

private:
    int fd_;
};

/// Ours, but for what would change squeue's output.
std::vector<std::string> child_environment() {
    std::vector<std::string> out;
    for (char** at = environ; *at != nullptr; ++at)
        if (std::strncmp(*at, "SLURM_TIME_FORMAT=", 18) != 0 && std::strncmp(*at, "SQUEUE_", 7) != 0 &&
            std::strncmp(*at, "SLURM_CLUSTERS=", 15) != 0)
            out.emplace_back(*at);
    return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (auto& text : strings)
        out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

std::vector<std::vector<std::string>> table(const std::string& text) {
    std::vector<std::vector<std::string>> out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::vector<std::string> row;
        for (std::string word; words >> word;)
            row.push_back(word);
        if (!row.empty())
            out.push_back(std::move(row));
    }
    return out;
}

template <class T>
bool number(const std::string& text, T& value) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
}

/// "2026-11-30T17:00:00" in local time.
bool parse_time(const std::string& text, std::int64_t& value) {
    std::tm time{};
    const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
    if (end == nullptr || *end != '\0')
        return false;
    time.tm_isdst = -1;
    value = std::mktime(&time);
    return value > 0;
}

bool parse_job(const std::vector<std::string>& row, Job& job) {
    return row.size() >= 3 && number(row[0], job.id) && job.id != 0 && parse_time(row[1], job.submit_time) &&
           number(row[2], job.restarts);
}

Error strange(const Config& config, const std::vector<std::string>& row) {
    std::string line;
    for (const auto& word : row)
        line += (line.empty() ? "" : " ") + word;
    return {ErrorKind::internal,
            config.squeue_program + " printed what cannot be understood: \"" + line + "\""};
}

} // namespace

Result<std::string> run_program(const std::vector<std::string>& arguments, std::chrono::milliseconds timeout,
                                const std::atomic<bool>* stop) {
    auto failed = [&](const std::string& why) {
        return Error{ErrorKind::unreachable, arguments[0] + ": " + why};
    };
    int out_pipe[2], err_pipe[2];
    if (pipe2(out_pipe, O_CLOEXEC) != 0)
        return failed(std::generic_category().message(errno));
    Fd out_read(out_pipe[0]), out_write(out_pipe[1]);
    if (pipe2(err_pipe, O_CLOEXEC) != 0)
        return failed(std::generic_category().message(errno));
    Fd err_read(err_pipe[0]), err_write(err_pipe[1]);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
    posix_spawn_file_actions_adddup2(&actions, err_write.get(), 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none); // a daemon blocks its signals in all threads; the child must not inherit that
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    auto words = arguments;
    auto environment = child_environment();
    pid_t pid = -1;
    int error = posix_spawnp(&pid, words[0].c_str(), &actions, &attributes, pointers(words).data(),
                             pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0)
        return failed(std::generic_category().message(error));
    out_write.reset();
    err_write.reset();

    std::string out, err;
    const auto end = std::chrono::steady_clock::now() + timeout;
    const char* killed = nullptr;
    while (out_read.get() >= 0 || err_read.get() >= 0) {
        if (stop != nullptr && *stop)
            killed = "stopped";
        else if (std::chrono::steady_clock::now() >= end)
            killed = "no end in sight, killed";
        if (killed != nullptr) {
            kill(pid, SIGKILL);
            break;
        }
        pollfd polled[2] = {{out_read.get(), POLLIN, 0}, {err_read.get(), POLLIN, 0}};
        if (poll(polled, 2, 100) <= 0)
            continue;
        auto drain = [](const pollfd& p, Fd& fd, std::string& text) {
            if (p.revents == 0)
                return;
            char buffer[16384];
            auto got = read(p.fd, buffer, sizeof buffer);
            if (got > 0)
                text.append(buffer, static_cast<std::size_t>(got));
            else if (got == 0 || errno != EINTR)
                fd.reset();
        };
        drain(polled[0], out_read, out);
        drain(polled[1], err_read, err);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (killed != nullptr)
        return failed(killed);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return failed(err.empty() ? "it failed with status " + std::to_string(status) : first_line(err));
    return out;
}

Result<std::vector<Job>> live_jobs(const Config& config, const std::atomic<bool>* stop) {
    auto text = run_program({config.squeue_program, "--noheader", "--all", "--Format",
                             "JobID:20,SubmitTime:24,RestartCnt:12,StateCompact:8"},
                            squeue_timeout, stop);
    if (!text)
        return text.error();
    std::vector<Job> jobs;
    for (const auto& row : table(*text)) {
        if (row.size() == 4 && row[3] == "PD")
            continue;
        Job job;
        if (row.size() != 4 || !parse_job(row, job))
            return strange(config, row);
        jobs.push_back(job);
    }
    return jobs;
}

Result<SlurmJob> slurm_job(const Config& config, std::uint32_t id) {
    auto text = run_program({config.squeue_program, "--noheader", "--all", "--states=all", "--jobs",
                             std::to_string(id), "--Format",
                             "JobID:20,SubmitTime:24,RestartCnt:12,UserID:12,GroupID:12,UserName:64,tres-per-"
                             "node:512,NodeList:4096"},
                            squeue_timeout);
    if (!text && text.error().message.find("Invalid job id") != std::string::npos)
        return Error{ErrorKind::refused, "Slurm knows no job " + std::to_string(id)};
    if (!text)
        return text.error();
    for (const auto& row : table(*text)) {
        SlurmJob job;
        if (row.size() < 7 || row.size() > 8 || !parse_job(row, job.job) || !number(row[3], job.uid) ||
            !number(row[4], job.gid))
            return strange(config, row);
        if (job.job.id != id)
            continue; // another element of the array that this id names
        job.user = row[5];
        auto shares = vgpu_shares(row[6]);
        if (!shares)
            return strange(config, row);
        job.shares = *shares;
        try {
            if (row.size() == 8 && row[7] != "(null)")
                job.nodes = expand_hostlist(row[7]);
        } catch (const ParseError&) {
            return strange(config, row);
        }
        return job;
    }
    return Error{ErrorKind::refused, "Slurm knows no job " + std::to_string(id)};
}

std::optional<unsigned> vgpu_shares(const std::string& gres) {
    std::uint64_t sum = 0;
    std::istringstream entries(gres);
    for (std::string entry; std::getline(entries, entry, ',');) {
        for (const char* prefix : {"gres:", "gres/"})
            if (entry.rfind(prefix, 0) == 0)
                entry.erase(0, 5);
        if (entry.rfind("vgpu", 0) != 0)
            continue;
        entry.erase(0, 4);
        if (auto detail = entry.find('('); detail != std::string::npos)
            entry.erase(detail);
        if (entry.empty()) { // Slurm's default count
            sum += 1;
            continue;
        }
        if (entry[0] != ':' && entry[0] != '=')
            continue; // another name that begins alike
        auto last = entry.find_last_of(":=");
        auto count = entry.substr(last + 1);
        std::uint64_t scale = 1;
        if (!count.empty() && (count.back() == 'K' || count.back() == 'k')) {
            scale = 1024;
            count.pop_back();
        }
        std::uint64_t value = 0;
        if (!number(count, value)) {
            if (last != 0)
                return std::nullopt;
            value = 1; // "vgpu:a100": one of that type
        }
        if (value > 1000000)
            return std::nullopt;
        sum += value * scale;
    }
    if (sum > 1000000000)
        return std::nullopt;
    return static_cast<unsigned>(sum);
}

} // namespace vgpu::pool
