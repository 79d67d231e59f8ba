// SPDX-License-Identifier: BSD-3-Clause
// Going to the background, and being the only one.
#pragma once

#include <string>
#include <sys/types.h>

namespace vgpu::node {

/// Makes the directory and what is missing above it. Throws std::runtime_error.
void make_directory(const std::string& path, mode_t mode);

/// Without `foreground`, the constructor returns in a background process only; the process that was started
/// ends when ready() is called (status 0) or the background process ends before (status 1), so that a start
/// that fails is seen. To be made while there is only one thread.
class Daemon {
public:
    explicit Daemon(bool foreground);
    ~Daemon();
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;
    /// Standard input, output and error become /dev/null.
    void ready();

private:
    int ready_fd_ = -1;
};

/// A file with our process id, locked as long as we live. Throws std::runtime_error when another process
/// holds it.
class PidFile {
public:
    explicit PidFile(const std::string& path);
    ~PidFile();
    PidFile(const PidFile&) = delete;
    PidFile& operator=(const PidFile&) = delete;

private:
    std::string path_;
    int fd_ = -1;
};

} // namespace vgpu::node
