// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/control/munge.h"

#include <cstdlib>
#include <memory>

#include <munge.h>
#include <unistd.h>

namespace vgpu::control {
namespace {

constexpr int time_to_live = 60; // seconds; clocks of a Slurm cluster are closer than that

struct ContextEnd {
    void operator()(munge_ctx_t context) const { munge_ctx_destroy(context); }
};
using Context = std::unique_ptr<std::remove_pointer_t<munge_ctx_t>, ContextEnd>;

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};

Context make_context(const std::string& socket) {
    Context context(munge_ctx_create());
    if (context && !socket.empty() &&
        munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, socket.c_str()) != EMUNGE_SUCCESS)
        context.reset();
    return context;
}

std::string cause(const Context& context, munge_err_t error) {
    const char* text = context ? munge_ctx_strerror(context.get()) : nullptr;
    return text != nullptr ? text : munge_strerror(error);
}

Error no_munged(const Context& context, munge_err_t error, const std::string& socket) {
    return {ErrorKind::unreachable, "munge: " + cause(context, error) +
                                        "; is munged running on this machine" +
                                        (socket.empty() ? "" : " with the socket " + socket) + "?"};
}

} // namespace

Result<std::string> munge_encode(const std::string& payload, const std::string& socket,
                                 std::optional<uid_t> restrict_to) {
    auto context = make_context(socket);
    if (!context)
        return Error{ErrorKind::internal, "munge: no memory for a context"};
    munge_err_t error = munge_ctx_set(context.get(), MUNGE_OPT_TTL, time_to_live);
    if (error == EMUNGE_SUCCESS && restrict_to)
        error = munge_ctx_set(context.get(), MUNGE_OPT_UID_RESTRICTION, *restrict_to);
    // Munge's default cipher may be none at the admin's wish; secrets travel here.
    if (error == EMUNGE_SUCCESS)
        error = munge_ctx_set(context.get(), MUNGE_OPT_CIPHER_TYPE, MUNGE_CIPHER_AES128);
    char* raw = nullptr;
    if (error == EMUNGE_SUCCESS)
        error = munge_encode(&raw, context.get(), payload.data(), static_cast<int>(payload.size()));
    std::unique_ptr<char, Free> credential(raw);
    if (error == EMUNGE_BAD_LENGTH)
        return Error{ErrorKind::internal, "munge: a message of " + std::to_string(payload.size()) +
                                              " bytes is longer than munge takes (1 MiB)"};
    if (error != EMUNGE_SUCCESS)
        return no_munged(context, error, socket);
    return std::string(credential.get());
}

Result<Credential> munge_decode(const std::string& text, const std::string& socket) {
    auto context = make_context(socket);
    if (!context)
        return Error{ErrorKind::internal, "munge: no memory for a context"};
    void* raw = nullptr;
    int length = 0;
    Credential credential;
    munge_err_t error =
        munge_decode(text.c_str(), context.get(), &raw, &length, &credential.uid, &credential.gid);
    std::unique_ptr<void, Free> payload(raw);
    switch (error) {
    case EMUNGE_SUCCESS:
        credential.payload.assign(static_cast<const char*>(payload.get()), static_cast<std::size_t>(length));
        return credential;
    case EMUNGE_CRED_REPLAYED:
        return Error{ErrorKind::refused, "munge: this credential was used before (replayed)"};
    case EMUNGE_CRED_EXPIRED:
    case EMUNGE_CRED_REWOUND:
        return Error{ErrorKind::refused,
                     "munge: " + cause(context, error) +
                         "; do the clocks of the two machines differ by more than a minute?"};
    case EMUNGE_CRED_UNAUTHORIZED:
        return Error{ErrorKind::refused, "munge: this credential is meant for another user than uid " +
                                             std::to_string(geteuid())};
    case EMUNGE_CRED_INVALID:
        return Error{ErrorKind::refused,
                     "munge: " + cause(context, error) + "; have the two machines the same munge key?"};
    case EMUNGE_BAD_CRED:
    case EMUNGE_BAD_VERSION:
        return Error{ErrorKind::refused, "munge: " + cause(context, error)};
    default:
        return no_munged(context, error, socket);
    }
}

} // namespace vgpu::control
