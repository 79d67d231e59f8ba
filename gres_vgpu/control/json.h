// SPDX-License-Identifier: BSD-3-Clause
// messages.h to and from JSON (found by nlohmann through the namespace). from_json throws
// nlohmann::json::exception where a field has the wrong type.
#pragma once

#include <nlohmann/json.hpp>

#include "gres_vgpu/control/messages.h"

namespace vgpu::control {

void to_json(nlohmann::json& json, const Gpu& gpu);
void from_json(const nlohmann::json& json, Gpu& gpu);
void to_json(nlohmann::json& json, const Job& job);
void from_json(const nlohmann::json& json, Job& job);
void to_json(nlohmann::json& json, const Request& request);
void from_json(const nlohmann::json& json, Request& request);
void to_json(nlohmann::json& json, const Vgpu& vgpu);
void from_json(const nlohmann::json& json, Vgpu& vgpu);
void to_json(nlohmann::json& json, const Lease& lease);
void from_json(const nlohmann::json& json, Lease& lease);
void to_json(nlohmann::json& json, const Claim& claim); ///< an empty secret is left out
void from_json(const nlohmann::json& json, Claim& claim);
void to_json(nlohmann::json& json, const Session& session);
void from_json(const nlohmann::json& json, Session& session);
void to_json(nlohmann::json& json, const NodeStatus& status);
void from_json(const nlohmann::json& json, NodeStatus& status);
void to_json(nlohmann::json& json, const PoolStatus& status);
void from_json(const nlohmann::json& json, PoolStatus& status);

} // namespace vgpu::control
