// SPDX-License-Identifier: BSD-3-Clause
#include "tests/control/munged.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gres_vgpu/control/envelope.h"
#include "gres_vgpu/control/munge.h"

namespace vgpu::test {
namespace {

void write_key(const std::string& path) {
    std::ofstream(path) << control::random_hex(64);
    if (chmod(path.c_str(), 0600) != 0)
        throw std::runtime_error("chmod " + path);
}

} // namespace

TempDir::TempDir() : path_("/tmp/vgpu-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr)
        throw std::runtime_error("mkdtemp " + path_);
    chmod(path_.c_str(), 0755);
}

TempDir::~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

Munged::Munged() : socket_(directory_.path() + "/munge.socket") {
    const auto& dir = directory_.path();
    write_key(dir + "/key");
    pid_ = fork();
    if (pid_ < 0)
        throw std::runtime_error("fork");
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        const std::string log = dir + "/log";
        if (freopen(log.c_str(), "w", stderr) == nullptr)
            _exit(126);
        setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
        execlp("munged", "munged", "--force", "--foreground", ("--key-file=" + dir + "/key").c_str(),
               ("--socket=" + socket_).c_str(), ("--pid-file=" + dir + "/pid").c_str(),
               ("--seed-file=" + dir + "/seed").c_str(), nullptr);
        _exit(127);
    }
    std::string why;
    for (int i = 0; i < 500; ++i) {
        auto credential = control::munge_encode("hello", socket_, std::nullopt);
        if (credential.ok())
            return;
        why = credential.error().message;
        if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
            pid_ = -1;
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::ostringstream log;
    log << std::ifstream(dir + "/log").rdbuf();
    throw std::runtime_error("munged does not run (is the package munge installed?): " + why + "\n" +
                             log.str());
}

Munged::~Munged() {
    if (pid_ > 0) {
        kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
    }
}

const std::string& munge_socket() {
    static Munged munged;
    return munged.socket();
}

} // namespace vgpu::test
