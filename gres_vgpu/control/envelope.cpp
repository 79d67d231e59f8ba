// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/control/envelope.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <sys/random.h>

#include "gres_vgpu/control/munge.h"

namespace vgpu::control {
namespace {

using nlohmann::json;

/// Of an answer's body in one credential; inside it, every quote takes two bytes.
constexpr std::size_t piece_size = 256 << 10;

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
    const json head{{"nonce", answer.nonce}, {"status", answer.status}};
    // In ASCII, so that a cut does not go through a character.
    const auto body = answer.body.dump(-1, ' ', true, json::error_handler_t::replace);
    if (body.size() <= piece_size) {
        auto whole = head;
        whole["body"] = answer.body;
        return munge_encode(dump(whole), socket, asker);
    }
    std::string out;
    const auto parts = (body.size() + piece_size - 1) / piece_size;
    for (std::size_t part = 0; part < parts; ++part) {
        auto piece = head;
        piece["part"] = part;
        piece["parts"] = parts;
        piece["text"] = body.substr(part * piece_size, piece_size);
        auto sealed = munge_encode(dump(piece), socket, asker);
        if (!sealed)
            return sealed.error();
        out += (part == 0 ? "" : "\n") + *sealed;
    }
    return out;
}

Result<Answer> open_answer(const std::string& credentials, const std::string& socket) {
    Answer answer;
    std::string text;
    std::size_t part = 0, parts = 1;
    const Error strange{ErrorKind::internal, "the credential does not hold an answer of the control plane"};
    for (std::size_t begin = 0; part < parts; ++part) {
        const auto end = std::min(credentials.find('\n', begin), credentials.size());
        auto opened = munge_decode(credentials.substr(begin, end - begin), socket);
        if (!opened)
            return opened.error();
        begin = std::min(end + 1, credentials.size());
        auto parsed = json::parse(opened->payload, nullptr, false);
        if (!parsed.is_object() || !parsed.contains("nonce") || !parsed["nonce"].is_string() ||
            !parsed.contains("status") || !parsed["status"].is_number_integer())
            return strange;
        const auto nonce = parsed["nonce"].get<std::string>();
        if (part != 0 && (opened->uid != answer.uid || nonce != answer.nonce))
            return strange;
        answer.uid = opened->uid;
        answer.nonce = nonce;
        answer.status = parsed["status"].get<int>();
        if (!parsed.contains("parts")) {
            if (part != 0)
                return strange;
            if (parsed.contains("body"))
                answer.body = std::move(parsed["body"]);
            return answer;
        }
        if (!parsed["parts"].is_number_unsigned() || !parsed.contains("part") || parsed["part"] != part ||
            !parsed.contains("text") || !parsed["text"].is_string())
            return strange;
        parts = parsed["parts"].get<std::size_t>();
        text += parsed["text"].get<std::string>();
    }
    answer.body = json::parse(text, nullptr, false);
    if (answer.body.is_discarded())
        return strange;
    return answer;
}

} // namespace vgpu::control
