// SPDX-License-Identifier: BSD-3-Clause
// RunDir/claims on a node: one file with the claim for the user's programs, and one file, root's, by which
// the tasks of a step agree on one claim. Tasks are prepared in processes of their own, so the file system is
// what they share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "gres_vgpu/control/messages.h"
#include "topology/config.h"

namespace vgpu::spank {

struct StepId {
    std::uint32_t job = 0;
    std::uint32_t step = 0;
    std::string node;
    pid_t stepd = 0; ///< the slurmstepd of this run: job and step ids can be used again
};

/// The step's state, locked against the other tasks of the step as long as the object lives. Throws
/// std::system_error, whose text names the file.
class StepFile {
public:
    StepFile(const Config& config, const StepId& step);
    static bool exists(const Config& config, const StepId& step);
    ~StepFile();
    StepFile(const StepFile&) = delete;
    StepFile& operator=(const StepFile&) = delete;

    enum class State {
        none,    ///< nobody has asked for this step yet
        claimed, ///< claim_id() holds its claim
        refused, ///< asked and refused, and the user was told so
    };
    State state() const { return state_; }
    const std::string& claim_id() const { return claim_id_; }
    void set_claimed(const std::string& claim_id);
    void set_refused();
    void remove(); ///< the step is over

private:
    void write(const std::string& text);

    std::string path_;
    std::string owner_; ///< pid and start time of slurmstepd
    State state_ = State::none;
    std::string claim_id_;
    int fd_ = -1;
};

/// Where the user's programs find the claim.
std::string claim_path(const Config& config, const std::string& claim_id);

/// Writes the file that the client runtime reads: readable by the claim's user alone, whole or not at all.
/// Throws std::system_error.
void write_claim(const Config& config, const control::Claim& claim);

/// Removes a claim's file; one that is not there is fine.
void remove_claim(const Config& config, const std::string& claim_id) noexcept;

/// Removes all files of a job on this node (empty node: whatever node), whatever step.
void remove_job(const Config& config, std::uint32_t job, const std::string& node);

} // namespace vgpu::spank
