// SPDX-License-Identifier: BSD-3-Clause
// A munged of the tests' own: own key, own socket, as the current user. One for the whole test program.
#pragma once

#include <string>

#include <sys/types.h>

namespace vgpu::test {

/// A fresh directory under /tmp, removed with all in it at the end of the scope.
class TempDir {
public:
    TempDir();
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

class Munged {
public:
    /// Starts it and waits until its socket answers. Throws std::runtime_error with munged's log if it does
    /// not run.
    Munged();
    ~Munged();
    Munged(const Munged&) = delete;
    Munged& operator=(const Munged&) = delete;
    const std::string& socket() const { return socket_; }

private:
    TempDir directory_;
    std::string socket_;
    pid_t pid_ = -1;
};

/// The shared one, started at first use.
const std::string& munge_socket();

} // namespace vgpu::test
