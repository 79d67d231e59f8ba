// SPDX-License-Identifier: BSD-3-Clause
#include "spank/submit.h"

#include <array>

namespace vgpu::spank {
namespace {

int set_memory(int, const char* text, int) {
    try {
        check_memory("--vgpu-mem", text ? text : "");
        context().memory = text;
        return 0;
    } catch (const std::exception& error) {
        slurm_error("vgpu: %s", error.what());
        return -1;
    }
}

int set_devices(int, const char* text, int) {
    try {
        check_devices("--vgpu-devices", text ? text : "");
        context().devices = text;
        return 0;
    } catch (const std::exception& error) {
        slurm_error("vgpu: %s", error.what());
        return -1;
    }
}

spank_option make_option(const OptionName& name, const char* argument, const char* usage,
                         spank_opt_cb_f callback) {
    spank_option option{}; // Slurm's structure takes char*, and does not write to what it points to
    option.name = const_cast<char*>(name.option);
    option.arginfo = const_cast<char*>(argument);
    option.usage = const_cast<char*>(usage);
    option.has_arg = 1;
    option.cb = callback;
    return option;
}

} // namespace

int register_options(spank_t sp) {
    static std::array options{
        make_option(memory_option, "SIZE",
                    "[vgpu] memory of each vGPU, as in 512M or 2G (default: in proportion to its shares)",
                    set_memory),
        make_option(devices_option, "COUNT", "[vgpu] number of vGPUs that the shares are divided over",
                    set_devices),
    };
    for (auto& option : options) {
        if (spank_err_t rc = spank_option_register(sp, &option); rc != ESPANK_SUCCESS) {
            slurm_error("vgpu: option --%s could not be registered: %s", option.name, spank_strerror(rc));
            return -1;
        }
    }
    return 0;
}

int submit_options(spank_t sp) {
    effective_options(sp); // throws where one is wrong
    // PrologSlurmctld finds these as SPANK_VGPU_MEM and SPANK_VGPU_DEVICES.
    auto pass_on = [&](const OptionName& name, const std::optional<std::string>& given) {
        auto text = given ? given : get_variable(sp, name.variable);
        if (text && !text->empty())
            spank_job_control_setenv(sp, name.variable, text->c_str(), 1);
    };
    pass_on(memory_option, context().memory);
    pass_on(devices_option, context().devices);
    return 0;
}

} // namespace vgpu::spank
