// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/node/daemon.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vgpu::node {

void make_directory(const std::string& path, mode_t mode) {
    std::error_code error;
    const bool made = std::filesystem::create_directories(path, error);
    if (error)
        throw std::runtime_error(path + ": " + error.message());
    if (made)
        chmod(path.c_str(), mode);
}

Daemon::Daemon(bool foreground) {
    if (foreground)
        return;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw std::runtime_error(std::string("pipe: ") + strerror(errno));
    const pid_t pid = fork();
    if (pid < 0)
        throw std::runtime_error(std::string("fork: ") + strerror(errno));
    if (pid > 0) {
        ::close(ends[1]);
        char byte;
        const bool good = read(ends[0], &byte, 1) == 1;
        _exit(good ? 0 : 1);
    }
    ::close(ends[0]);
    ready_fd_ = ends[1];
    setsid();
    if (chdir("/") != 0)
        throw std::runtime_error(std::string("chdir /: ") + strerror(errno));
}

Daemon::~Daemon() {
    if (ready_fd_ >= 0)
        ::close(ready_fd_);
}

void Daemon::ready() {
    if (ready_fd_ < 0)
        return;
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; ++fd)
        dup2(null, fd);
    if (null >= 0)
        ::close(null);
    [[maybe_unused]] const auto written = write(ready_fd_, "1", 1);
    ::close(ready_fd_);
    ready_fd_ = -1;
}

PidFile::PidFile(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (fd_ < 0)
        throw std::runtime_error(path + ": " + strerror(errno));
    if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        ::close(fd_);
        throw std::runtime_error(path + " is locked: a vgpud of this node runs already");
    }
    const std::string text = std::to_string(getpid()) + "\n";
    if (ftruncate(fd_, 0) != 0 || write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        ::close(fd_);
        throw std::runtime_error(path + ": " + strerror(errno));
    }
}

PidFile::~PidFile() {
    unlink(path_.c_str()); // while it is still locked
    ::close(fd_);
}

} // namespace vgpu::node
