// SPDX-License-Identifier: BSD-3-Clause
// Starting vgpu-worker: as the job's user, with nothing of vgpud's but what it shall have.
#pragma once

#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace vgpu::node {

/// A descriptor that is closed once.
class OwnedFd {
public:
    OwnedFd() = default;
    explicit OwnedFd(int fd) : fd_(fd) {}
    OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
    OwnedFd& operator=(OwnedFd&& other) noexcept;
    ~OwnedFd();
    int get() const { return fd_; }
    int release();

private:
    int fd_ = -1;
};

/// A child of this process. The pid stays the child's until reap(), so signals never hit a stranger.
struct Process {
    pid_t pid = -1;
    OwnedFd pidfd;  ///< readable when the process has ended
    OwnedFd socket; ///< our end of the socket pair
    void kill() const;
    /// After its end; the exit status, or 128 + the signal.
    int reap();
};

struct Spawn {
    std::string program;
    std::vector<std::string> arguments;
    std::map<std::string, std::string> environment;
    bool change_user = false;
    uid_t uid = 0;
    gid_t gid = 0;
    int memory_fd = -1;       ///< becomes descriptor 4; -1: none
    bool keep_stdout = false; ///< the socket pair is the child's output instead of descriptor 3
};

/// Throws std::runtime_error with a sentence. The child dies with the calling *thread*, which must therefore
/// be one that lives as long as the daemon.
Process spawn(const Spawn& what);

/// What every such process gets, and the node's CudaEnv.
std::map<std::string, std::string> worker_environment(const std::map<std::string, std::string>& cuda_env);

/// Output of a short-lived child, or std::runtime_error with a sentence.
std::string run_for_output(Spawn what, int seconds);

} // namespace vgpu::node
