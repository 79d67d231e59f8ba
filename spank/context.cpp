// SPDX-License-Identifier: BSD-3-Clause
#include "spank/context.h"

#include <cstdlib>
#include <vector>

namespace vgpu::spank {

Context& context() {
    static Context the_context;
    return the_context;
}

std::optional<std::string> get_variable(spank_t sp, const char* name) {
    if (spank_remote(sp) != 1) {
        const char* value = std::getenv(name);
        return value ? std::optional<std::string>(value) : std::nullopt;
    }
    std::vector<char> buffer(4096);
    for (;;) {
        spank_err_t rc = spank_getenv(sp, name, buffer.data(), static_cast<int>(buffer.size()));
        if (rc == ESPANK_SUCCESS)
            return std::string(buffer.data());
        if (rc != ESPANK_NOSPACE || buffer.size() > (1u << 20))
            return std::nullopt;
        buffer.resize(buffer.size() * 2);
    }
}

Options effective_options(spank_t sp) {
    Options options;
    const auto& given = context();
    if (given.memory)
        options.memory_mib = check_memory("--vgpu-mem", *given.memory);
    else if (auto text = get_variable(sp, memory_option.variable); text && !text->empty())
        options.memory_mib = check_memory(memory_option.variable, *text);
    if (given.devices)
        options.devices = check_devices("--vgpu-devices", *given.devices);
    else if (auto text = get_variable(sp, devices_option.variable); text && !text->empty())
        options.devices = check_devices(devices_option.variable, *text);
    return options;
}

} // namespace vgpu::spank
