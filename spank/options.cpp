// SPDX-License-Identifier: BSD-3-Clause
#include "spank/options.h"

#include "topology/parse.h"
#include "ucx_forwarder/worker/lease_memory.h"

namespace vgpu::spank {

std::uint64_t check_memory(const std::string& name, const std::string& text) {
    try {
        return parse_mib(text);
    } catch (const ParseError& error) {
        throw OptionError(name + ": " + error.what());
    }
}

unsigned check_devices(const std::string& name, const std::string& text) {
    try {
        return static_cast<unsigned>(parse_number(text, 1, worker::LeaseMemory::max_vgpus));
    } catch (const ParseError& error) {
        throw OptionError(name + ": " + error.what());
    }
}

} // namespace vgpu::spank
