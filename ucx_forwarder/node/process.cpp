// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/node/process.h"

#include "ucx_forwarder/worker/session_job.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace vgpu::node {
namespace {

std::vector<gid_t> groups_of(uid_t uid, gid_t gid) {
    std::vector<char> buffer(1 << 16);
    passwd entry{}, *found = nullptr;
    if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
        return {gid}; // GPU nodes need not know every user
    int count = 1024;
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    if (getgrouplist(found->pw_name, gid, groups.data(), &count) < 0)
        return {gid};
    groups.resize(static_cast<std::size_t>(count));
    return groups;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (auto& text : strings)
        result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

/// In the child: nothing here allocates or locks.
[[noreturn]] void become(const Spawn& what, int socket, int null, char** arguments, char** environment,
                         const std::vector<gid_t>& groups, pid_t parent) {
    auto fail = [](const char* step) {
        const char* text = strerrordesc_np(errno);
        dprintf(STDERR_FILENO, "vgpud: starting a worker: %s: %s\n", step, text ? text : "?");
        _exit(126);
    };
    // First out of the way of the numbers that they shall get.
    socket = fcntl(socket, F_DUPFD, 10);
    const int memory = what.memory_fd < 0 ? -1 : fcntl(what.memory_fd, F_DUPFD, 10);
    if (socket < 0 || dup2(null, STDIN_FILENO) < 0)
        fail("descriptors");
    if (dup2(what.keep_stdout ? socket : STDERR_FILENO, STDOUT_FILENO) < 0)
        fail("descriptors");
    if (!what.keep_stdout && dup2(socket, worker::session_fd) < 0)
        fail("descriptors");
    if (memory >= 0 && dup2(memory, worker::memory_fd) < 0)
        fail("descriptors");
    const unsigned first_other =
        what.keep_stdout ? worker::session_fd : worker::memory_fd + (memory >= 0 ? 1 : 0);
    syscall(SYS_close_range, first_other, ~0u, 0);
    setsid();
    umask(077);
    if (chdir("/") != 0)
        fail("chdir");
    if (what.change_user) {
        if (setgroups(groups.size(), groups.data()) != 0 || setresgid(what.gid, what.gid, what.gid) != 0 ||
            setresuid(what.uid, what.uid, what.uid) != 0)
            fail("changing to the job's user");
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        fail("no_new_privs");
    // After the change of user, which clears it.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        fail("vgpud is gone");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int number = 1; number < 32; ++number)
        signal(number, SIG_DFL);
    execve(what.program.c_str(), arguments, environment);
    fail(what.program.c_str());
    _exit(126);
}

} // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
        if (fd_ >= 0)
            ::close(fd_);
        fd_ = other.release();
    }
    return *this;
}

OwnedFd::~OwnedFd() {
    if (fd_ >= 0)
        ::close(fd_);
}

int OwnedFd::release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
}

void Process::kill() const {
    syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
}

int Process::reap() {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Process spawn(const Spawn& what) {
    auto failed = [&](const char* step) {
        return std::runtime_error("cannot start " + what.program + ": " + step + ": " + strerror(errno));
    };
    std::vector<std::string> arguments{what.program}, environment;
    arguments.insert(arguments.end(), what.arguments.begin(), what.arguments.end());
    for (const auto& [name, value] : what.environment)
        environment.push_back(name + "=" + value);
    auto argument_pointers = pointers(arguments), environment_pointers = pointers(environment);
    const auto groups = what.change_user ? groups_of(what.uid, what.gid) : std::vector<gid_t>{};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        throw failed("socketpair");
    OwnedFd ours(ends[0]), theirs(ends[1]), null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const pid_t parent = getpid();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // no handler of ours runs in the child
    const pid_t pid = fork();
    if (pid == 0)
        become(what, theirs.get(), null.get(), argument_pointers.data(), environment_pointers.data(), groups,
               parent);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0)
        throw failed("fork");
    Process process;
    process.pid = pid;
    process.socket = std::move(ours);
    process.pidfd = OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (process.pidfd.get() < 0) {
        const int error = errno;
        ::kill(pid, SIGKILL); // not yet reaped, so the pid is surely its
        process.reap();
        errno = error;
        throw failed("pidfd_open");
    }
    return process;
}

std::map<std::string, std::string> worker_environment(const std::map<std::string, std::string>& cuda_env) {
    std::map<std::string, std::string> environment{{"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}};
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const auto equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (name.starts_with("UCX_") || name.ends_with("SAN_OPTIONS") || name == "LD_LIBRARY_PATH")
            environment[name] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : cuda_env)
        environment[name] = value;
    return environment;
}

std::string run_for_output(Spawn what, int seconds) {
    what.keep_stdout = true;
    Process process = spawn(what);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    std::string output;
    bool in_time = true;
    for (;;) {
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
        pollfd waiting{process.socket.get(), POLLIN, 0};
        in_time = left > 0 && poll(&waiting, 1, static_cast<int>(left)) > 0;
        char buffer[4096];
        const ssize_t got = in_time ? read(process.socket.get(), buffer, sizeof buffer) : 0;
        if (got <= 0 || output.size() > (1u << 20))
            break;
        output.append(buffer, static_cast<std::size_t>(got));
    }
    if (!in_time)
        process.kill();
    const int status = process.reap();
    if (!in_time)
        throw std::runtime_error(what.program + " did not end within " + std::to_string(seconds) + " s");
    if (status != 0)
        throw std::runtime_error(what.program + " ended with status " + std::to_string(status) +
                                 "; its own message stands above");
    return output;
}

} // namespace vgpu::node
