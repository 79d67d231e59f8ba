// SPDX-License-Identifier: BSD-3-Clause
// What is inside the credentials of a protected call:
//   question  {"to": "SERVER METHOD /path", "nonce": 32 hex digits, "body": {...}}
//   answer    {"nonce": the question's, "status": HTTP status, "body": {...}}, restricted to the asker's uid
// Munge takes 1 MiB at most. The body of a longer answer is cut into several credentials, one a line:
//             {"nonce", "status", "part": from 0 on, "parts": how many, "text": a piece of the body's JSON}
// "to" keeps a credential from being played to another server or route; the nonce binds the answer to its
// question.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "gres_vgpu/control/result.h"

namespace vgpu::control {

struct Question {
    std::string to;
    std::string nonce;
    nlohmann::json body;
    uid_t uid = static_cast<uid_t>(-1); ///< set by open_question
    gid_t gid = static_cast<gid_t>(-1);
};

struct Answer {
    std::string nonce;
    int status = 200;
    nlohmann::json body;                ///< {"error": sentence} unless status is 200
    uid_t uid = static_cast<uid_t>(-1); ///< set by open_answer
};

/// "vgpuctld POST /v1/claim"
std::string question_to(const std::string& server, const std::string& method, const std::string& path);
/// A number that nobody can foresee, in hex.
std::string random_hex(std::size_t bytes);

Result<std::string> seal_question(const Question& question, const std::string& socket,
                                  std::optional<uid_t> restrict_to);
Result<Question> open_question(const std::string& credential, const std::string& socket);
Result<std::string> seal_answer(const Answer& answer, const std::string& socket, uid_t asker);
Result<Answer> open_answer(const std::string& credential, const std::string& socket);

} // namespace vgpu::control
