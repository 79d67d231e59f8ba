// SPDX-License-Identifier: BSD-3-Clause
// Catches what kernels print: a driver writes it to the process's stdout. From construction on, descriptor 1
// is a file in memory, so a worker must log elsewhere.
#pragma once

#include <mutex>
#include <string>

namespace vgpu::worker {

class OutputCapture {
public:
    /// Throws std::system_error.
    OutputCapture();
    /// Puts the old stdout back.
    ~OutputCapture();
    OutputCapture(const OutputCapture&) = delete;
    OutputCapture& operator=(const OutputCapture&) = delete;

    /// What was written since the last call, at most max_part bytes. Any thread.
    std::string take();
    static constexpr std::size_t max_part = 1U << 20;

private:
    int file_ = -1;
    int old_ = -1;
    std::mutex mutex_;
    long long read_ = 0; ///< offset up to which the file was taken
};

} // namespace vgpu::worker
