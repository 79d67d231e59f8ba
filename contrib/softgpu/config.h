// SPDX-License-Identifier: BSD-3-Clause
// What the devices look like: read once, at cuInit, from the environment and from the file that SOFTGPU_CONF
// names (README.md lists the keys). The environment wins.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace softgpu {

// One sentence: which setting is wrong, and what would be right.
class ConfigError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Config {
    int devices = 1;
    std::uint64_t memory = std::uint64_t{4} << 30; // bytes of each device
    std::string name = "Software GPU";
    int sms = 0;     // streaming multiprocessors of each device; load() replaces 0 by the number of CPUs
    int threads = 0; // CPU threads that run the blocks of a kernel; load() replaces 0 by the number of CPUs
    int capability_major = 9;
    int capability_minor = 0;
    std::string directory = "/dev/shm/softgpu"; // the state that processes share

    // Throws ConfigError.
    [[nodiscard]] static Config load();
};

} // namespace softgpu
