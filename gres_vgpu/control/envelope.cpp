// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/control/envelope.h"

#include <cerrno>
#include <cstdlib>

#include <sys/random.h>

#include "gres_vgpu/control/munge.h"

namespace vgpu::control {
namespace {

using nlohmann::json;

/// Text with bytes that are no UTF-8 (a user's name, say) must not make dump() throw.
std::string dump(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace

std::string question_to(const std::string& server, const std::string& method, const std::string& path) {
    return server + " " + method + " " + path;
}

std::string random_hex(std::size_t bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string raw(bytes, '\0');
    for (std::size_t have = 0; have < bytes;) {
        ssize_t got = getrandom(raw.data() + have, bytes - have, 0);
        if (got > 0)
            have += static_cast<std::size_t>(got);
        else if (errno != EINTR)
            std::abort(); // a kernel without random numbers: nothing can be kept secret
    }
    std::string out;
    for (unsigned char byte : raw) {
        out += digits[byte >> 4];
        out += digits[byte & 15];
    }
    return out;
}

Result<std::string> seal_question(const Question& question, const std::string& socket,
                                  std::optional<uid_t> restrict_to) {
    return munge_encode(dump({{"to", question.to}, {"nonce", question.nonce}, {"body", question.body}}),
                        socket, restrict_to);
}

Result<Question> open_question(const std::string& credential, const std::string& socket) {
    auto opened = munge_decode(credential, socket);
    if (!opened)
        return opened.error();
    auto parsed = json::parse(opened->payload, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("to") || !parsed["to"].is_string() ||
        !parsed.contains("nonce") || !parsed["nonce"].is_string())
        return Error{ErrorKind::refused, "the credential does not hold a question of the control plane"};
    Question question{parsed["to"].get<std::string>(), parsed["nonce"].get<std::string>(),
                      parsed.contains("body") ? std::move(parsed["body"]) : json(), opened->uid, opened->gid};
    return question;
}

Result<std::string> seal_answer(const Answer& answer, const std::string& socket, uid_t asker) {
    return munge_encode(dump({{"nonce", answer.nonce}, {"status", answer.status}, {"body", answer.body}}),
                        socket, asker);
}

Result<Answer> open_answer(const std::string& credential, const std::string& socket) {
    auto opened = munge_decode(credential, socket);
    if (!opened)
        return opened.error();
    auto parsed = json::parse(opened->payload, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("nonce") || !parsed["nonce"].is_string() ||
        !parsed.contains("status") || !parsed["status"].is_number_integer())
        return Error{ErrorKind::internal, "the credential does not hold an answer of the control plane"};
    Answer answer{parsed["nonce"].get<std::string>(), parsed["status"].get<int>(),
                  parsed.contains("body") ? std::move(parsed["body"]) : json(), opened->uid};
    return answer;
}

} // namespace vgpu::control
