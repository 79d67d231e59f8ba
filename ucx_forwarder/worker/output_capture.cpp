// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/output_capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace vgpu::worker {

// A file, not a pipe: a printing kernel never waits for us, and the length says at once whether anything
// came.
OutputCapture::OutputCapture() {
    std::fflush(stdout);
    file_ = ::memfd_create("vgpu-output", MFD_CLOEXEC);
    if (file_ < 0 || ::fcntl(file_, F_SETFL, O_APPEND) != 0) {
        throw std::system_error(errno, std::generic_category(),
                                "the file for kernels' output cannot be made");
    }
    old_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (::dup2(file_, STDOUT_FILENO) < 0) {
        throw std::system_error(errno, std::generic_category(), "stdout cannot be redirected");
    }
}

OutputCapture::~OutputCapture() {
    std::fflush(stdout);
    if (old_ >= 0) {
        ::dup2(old_, STDOUT_FILENO);
        ::close(old_);
    }
    ::close(file_);
}

std::string OutputCapture::take() {
    std::fflush(stdout); // drivers print through stdio
    const std::lock_guard lock(mutex_);
    struct stat status {};
    if (::fstat(file_, &status) != 0 || status.st_size <= read_) {
        return {};
    }
    std::string text(static_cast<std::size_t>(std::min<long long>(status.st_size - read_, max_part)), '\0');
    const ssize_t got = ::pread(file_, text.data(), text.size(), read_);
    if (got <= 0) {
        return {};
    }
    text.resize(static_cast<std::size_t>(got));
    read_ += got;
    // Gives the pages back; the offsets stay, so a write at the same time is not lost.
    (void)::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, read_);
    return text;
}

} // namespace vgpu::worker
