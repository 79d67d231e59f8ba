// SPDX-License-Identifier: BSD-3-Clause
// The only file with SPANK symbols: decides by context, and lets no exception out.
#include "spank/context.h"
#include "spank/stepd.h"
#include "spank/submit.h"

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include <unistd.h>

extern "C" {

#define VGPU_EXPORT __attribute__((visibility("default")))

// Declared before SPANK_PLUGIN defines them: a const object has internal linkage otherwise.
extern VGPU_EXPORT const char plugin_name[];
extern VGPU_EXPORT const char plugin_type[];
extern VGPU_EXPORT const unsigned int plugin_version;
extern VGPU_EXPORT const unsigned int spank_plugin_version;
SPANK_PLUGIN(vgpu, 1)

} // extern "C"

using namespace vgpu::spank;

namespace {

template <class Function>
int guarded(Function function) noexcept {
    try {
        return function();
    } catch (const std::exception& error) {
        slurm_error("vgpu: %s", error.what());
    } catch (...) {
        slurm_error("vgpu: unknown failure");
    }
    return -1;
}

bool submitting() {
    auto where = spank_context();
    return where == S_CTX_LOCAL || where == S_CTX_ALLOCATOR;
}

void read_arguments(int argc, char** argv) {
    for (int i = 0; i < argc; ++i) {
        if (std::strncmp(argv[i], "conf=", 5) == 0)
            context().config_path = argv[i] + 5;
        else if (submitting()) // not in slurmstepd: a failure in its init drains the node
            throw std::runtime_error(std::string("plugstack.conf: unknown argument '") + argv[i] +
                                     "' of spank_vgpu.so; it takes conf=/path/of/vgpu.conf");
    }
}

} // namespace

extern "C" {

VGPU_EXPORT int slurm_spank_init(spank_t sp, int argc, char** argv) {
    return guarded([&] {
        read_arguments(argc, argv);
        if (spank_context() == S_CTX_REMOTE)
            context().stepd = getpid();
        if (!submitting() && spank_context() != S_CTX_REMOTE)
            return 0;
        return register_options(sp);
    });
}

VGPU_EXPORT int slurm_spank_init_post_opt(spank_t sp, int, char**) {
    if (!submitting())
        return 0;
    return guarded([&] { return submit_options(sp); });
}

// Here, as root and with the step's shares known, a failure ends the step and leaves the node alone.
VGPU_EXPORT int slurm_spank_task_init_privileged(spank_t sp, int, char**) {
    return guarded([&] { return prepare_task(sp); });
}

VGPU_EXPORT int slurm_spank_exit(spank_t sp, int, char**) {
    if (spank_context() == S_CTX_REMOTE)
        guarded([&] { return end_step(sp), 0; });
    return 0;
}

// A failure here would drain the node.
VGPU_EXPORT int slurm_spank_job_epilog(spank_t sp, int argc, char** argv) {
    guarded([&] {
        read_arguments(argc, argv); // a process of its own, in which init is not called
        end_job(sp);
        return 0;
    });
    return 0;
}

} // extern "C"
