// SPDX-License-Identifier: BSD-3-Clause
#include "spank/stepd.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <dlfcn.h>
#include <pwd.h>
#include <slurm/slurm.h>
#include <unistd.h>

#include "gres_vgpu/control/client.h"
#include "gres_vgpu/plugin/step_environment.h"
#include "spank/claim_files.h"
#include "spank/environment.h"
#include "topology/config.h"

namespace vgpu::spank {
namespace {

using namespace std::chrono_literals;

/// How long a step waits for shares that an ended job is just giving back, or for vgpuctld to learn of its
/// nodes.
constexpr auto wait_for_room = 15s;

template <class T>
T item(spank_t sp, spank_item_t which, const char* what) {
    T value{};
    if (spank_err_t rc = spank_get_item(sp, which, &value); rc != ESPANK_SUCCESS)
        throw std::runtime_error(std::string("Slurm does not tell the step's ") + what + ": " +
                                 spank_strerror(rc));
    return value;
}

std::string node_name(spank_t sp) {
    if (auto name = get_variable(sp, "SLURMD_NODENAME"); name && !name->empty())
        return *name;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (char* dot = std::strchr(host, '.'))
        *dot = 0;
    return host;
}

StepId step_id(spank_t sp) {
    return {.job = item<std::uint32_t>(sp, S_JOB_ID, "job id"),
            .step = item<std::uint32_t>(sp, S_JOB_STEPID, "step id"),
            .node = node_name(sp),
            .stepd = context().stepd};
}

std::string user_name(uid_t uid) {
    char buffer[4096];
    passwd entry{}, *found = nullptr;
    if (getpwuid_r(uid, &entry, buffer, sizeof buffer, &found) == 0 && found)
        return found->pw_name;
    return std::to_string(uid);
}

/// Where gres_vgpu.so is missing in this slurmstepd, Slurm counts the shares all the same and starts the step
/// without a word. Only slurmctld then knows whether the job has any.
bool job_asks_for_vgpu(std::uint32_t job) {
    auto load = reinterpret_cast<decltype(&slurm_load_job)>(dlsym(RTLD_DEFAULT, "slurm_load_job"));
    auto free =
        reinterpret_cast<decltype(&slurm_free_job_info_msg)>(dlsym(RTLD_DEFAULT, "slurm_free_job_info_msg"));
    job_info_msg_t* info = nullptr;
    if (!load || !free || load(&info, job, SHOW_DETAIL) != SLURM_SUCCESS || !info)
        return false;
    bool asks = false;
    for (std::uint32_t i = 0; i < info->record_count; ++i) {
        const auto& record = info->job_array[i];
        for (const char* text : {record.tres_per_job, record.tres_per_node, record.tres_per_socket,
                                 record.tres_per_task, record.tres_alloc_str})
            asks = asks || (text && std::strstr(text, "vgpu"));
    }
    free(info);
    return asks;
}

/// Shares that Slurm gave this step on this node. Throws where it gave some and nobody here can know how
/// many.
unsigned granted_shares(spank_t sp) {
    // slurmstepd's own environment: the user's cannot reach it.
    if (!std::getenv(plugin::loaded_variable)) {
        if (job_asks_for_vgpu(item<std::uint32_t>(sp, S_JOB_ID, "job id")))
            throw std::runtime_error(
                "gres/vgpu is not loaded on node " + node_name(sp) +
                ": gres_vgpu.so is missing in PluginDir there or was built for another Slurm "
                "version; ask the administrator");
        return 0;
    }
    const char* text = std::getenv(plugin::granted_variable);
    return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
}

control::Result<control::Claim> claim(const Config& config, const control::Request& request) {
    const auto controller = control::Client::to_controller(config);
    const auto deadline = std::chrono::steady_clock::now() + wait_for_room;
    for (auto pause = 100ms;; pause = std::min(2 * pause, 1000ms)) {
        auto answer = controller.claim(request);
        if (answer.ok())
            return answer;
        const auto kind = answer.error().kind;
        const bool may_help = kind == control::ErrorKind::no_room || kind == control::ErrorKind::not_ready;
        if (!may_help || std::chrono::steady_clock::now() + pause > deadline)
            return answer;
        std::this_thread::sleep_for(pause);
    }
}

control::Request make_request(spank_t sp, const StepId& step, unsigned shares) {
    const Options options = effective_options(sp);
    control::Request request;
    request.job.id = step.job;
    request.uid = item<uid_t>(sp, S_JOB_UID, "user");
    request.gid = item<gid_t>(sp, S_JOB_GID, "group");
    request.user = user_name(request.uid);
    request.node = step.node;
    request.step = step.step;
    request.shares = shares;
    request.devices = options.devices;
    request.memory_mib = options.memory_mib;
    return request;
}

void set(spank_t sp, const char* name, const std::string& value) {
    if (spank_err_t rc = spank_setenv(sp, name, value.c_str(), 1); rc != ESPANK_SUCCESS)
        throw std::runtime_error(std::string(name) + " could not be set for the task: " + spank_strerror(rc));
}

/// A step without shares can have inherited the variables of a batch script that has some.
void remove_environment(spank_t sp) {
    if (!get_variable(sp, claim_variable) && !get_variable(sp, plugin::shares_variable))
        return;
    for (const char* name : {claim_variable, redirect_variable, plugin::shares_variable})
        spank_unsetenv(sp, name);
    if (auto audit = get_variable(sp, audit_variable)) {
        const std::string theirs = without_ours(*audit);
        if (theirs.empty())
            spank_unsetenv(sp, audit_variable);
        else
            set(sp, audit_variable, theirs);
    }
}

void set_environment(spank_t sp, const Config& config, unsigned shares, const std::string& claim_id) {
    set(sp, claim_variable, claim_path(config, claim_id));
    set(sp, plugin::shares_variable, std::to_string(shares));
    set(sp, audit_variable, with_ours(get_variable(sp, audit_variable).value_or(""), config.client_dir));
    if (config.static_redirect)
        spank_unsetenv(sp, redirect_variable);
    else
        set(sp, redirect_variable, "no");
}

} // namespace

int prepare_task(spank_t sp) {
    const unsigned shares = granted_shares(sp);
    if (shares == 0) {
        remove_environment(sp);
        return 0;
    }
    const StepId step = step_id(sp);
    const Config config = load_config(context().config_path);
    StepFile file(config, step);
    if (file.state() == StepFile::State::refused)
        return -1;
    if (file.state() == StepFile::State::none) {
        try {
            auto answer = claim(config, make_request(sp, step, shares));
            if (!answer.ok())
                throw std::runtime_error(answer.error().message);
            file.set_claimed(answer->id);
            write_claim(config, *answer);
        } catch (...) {
            if (file.state() == StepFile::State::none)
                file.set_refused(); // the other tasks need not ask and say it again
            throw;
        }
    }
    set_environment(sp, config, shares, file.claim_id());
    return 0;
}

void end_step(spank_t sp) {
    if (getpid() != context().stepd || !std::getenv(plugin::loaded_variable))
        return;
    const Config config = load_config(context().config_path);
    const StepId step = step_id(sp);
    if (!StepFile::exists(config, step))
        return; // a step without shares
    StepFile file(config, step);
    if (file.state() == StepFile::State::claimed) {
        remove_claim(config, file.claim_id());
        auto answer = control::Client::to_controller(config).release_claim(file.claim_id());
        if (!answer.ok()) // the job's lease takes the claim with it
            slurm_info("vgpu: claim %s was not given back: %s", file.claim_id().c_str(),
                       answer.error().message.c_str());
    }
    file.remove();
}

void end_job(spank_t sp) {
    const auto job = item<std::uint32_t>(sp, S_JOB_ID, "job id");
    const char* node = std::getenv("SLURMD_NODENAME");
    remove_job(load_config(context().config_path), job, node ? node : "");
}

} // namespace vgpu::spank
