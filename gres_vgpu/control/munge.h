// SPDX-License-Identifier: BSD-3-Clause
// Munge credentials: who a message is from, kept from other eyes and from being used twice.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "gres_vgpu/control/result.h"

namespace vgpu::control {

/// A decoded credential.
struct Credential {
    std::string payload;
    uid_t uid = static_cast<uid_t>(-1); ///< of the process that encoded it
    gid_t gid = static_cast<gid_t>(-1);
};

/// Encrypts `payload` for munged's cluster. It can be decoded once on each machine, within 60 seconds, and if
/// `restrict_to` is set by that uid only. `socket` empty: munge's default. Blocks for the local munged.
Result<std::string> munge_encode(const std::string& payload, const std::string& socket,
                                 std::optional<uid_t> restrict_to);

/// Refused: forged, replayed, expired, or meant for another uid.
Result<Credential> munge_decode(const std::string& credential, const std::string& socket);

} // namespace vgpu::control
