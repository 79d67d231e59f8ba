// SPDX-License-Identifier: BSD-3-Clause
// From the call table to the driver: how every record is decoded, executed and answered.
#include "ucx_forwarder/worker/executor.h"

namespace vgpu::worker {

using protocol::How;
using protocol::RecordHeader;

namespace {

/// Where a record's BytesIn are: known only when all parameters are read.
template <class A>
void settle(A&, Bytes) {}
void settle(Argument<protocol::BytesIn>& argument, Bytes body) {
    argument.value = body;
}

template <class A>
constexpr bool is_deletion = false;
template <class H>
constexpr bool is_deletion<Argument<protocol::Del<H>>> = true;

/// Calls that take effect even when an earlier call's error has to be told: they end something, or they
/// synchronise and say the error afterwards.
template <Call C>
constexpr bool runs_despite_deferred = [] {
    switch (C) {
    case Call::cuCtxSynchronize:
    case Call::cuStreamSynchronize:
    case Call::cuEventSynchronize:
    case Call::cuDevicePrimaryCtxReset_v2:
    case Call::cuStreamEndCapture:
        return true;
    default:
        return []<class... A>(std::tuple<A...>*) {
            return (is_deletion<A> || ...);
        }(static_cast<Arguments<C>*>(nullptr));
    }
}();

/// A new context that could not be made: its calls must tell why, and not that they do not know it.
template <class A>
void defer_for_new(A&, std::optional<WireId>&) {}
void defer_for_new(Argument<protocol::New<CUcontext>>& argument, std::optional<WireId>& context) {
    context = argument.id;
}

/// Whose BlobOut becomes the reply's body.
template <class A>
void blob_of(A&, Bytes&) {}
void blob_of(Argument<protocol::BlobOut>& argument, Bytes& body) {
    body = argument.value;
}

} // namespace

template <Call C>
void Executor::handle(const RecordHeader& header, Decoder& in, const Incoming& incoming) {
    using Traits = protocol::CallTraits<C>;
    const Caller caller{header.slot, header.context};
    if ((header.slot != 0) != (Traits::how == How::awaited)) {
        throw ProtocolError(std::string(protocol::info(C).name) + " came with the wrong way of reply");
    }
    Arguments<C> arguments;
    DecodeContext context{in, tables_, devices_};
    const bool read =
        std::apply([&context](auto&... argument) { return (argument.decode(context) && ...); }, arguments);
    const bool body_in_head = (header.flags & RecordHeader::body_in_head) != 0;
    if (!read || (!body_in_head && !in.complete())) {
        throw ProtocolError("the parameters of " + std::string(protocol::info(C).name) + " cannot be read");
    }
    const bool parameters_in_body = (header.flags & RecordHeader::parameters_in_body) != 0;
    const Bytes body = body_in_head ? in.rest() : parameters_in_body ? Bytes{} : incoming.body_bytes();
    std::apply([body](auto&... argument) { (settle(argument, body), ...); }, arguments);

    Record record{C, caller, nullptr};
    CUresult status = CUDA_SUCCESS;
    if constexpr (Traits::how == How::awaited && !runs_despite_deferred<C>) {
        status = take_deferred(caller.context);
    }
    if (status == CUDA_SUCCESS) {
        // Without a driver there is only hello, which says so, and the client has no call that could follow.
        status = driver_ != nullptr || C == Call::hello ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    }
    if (status == CUDA_SUCCESS) {
        status = enter(record);
        if (status == CUDA_ERROR_INVALID_CONTEXT) {
            // Perhaps it could not be made: then that is the answer.
            const CUresult earlier = take_deferred(caller.context);
            status = earlier != CUDA_SUCCESS ? earlier : status;
        }
    }
    if (status == CUDA_SUCCESS) {
        status = context.status;
    }
    if (status == CUDA_SUCCESS) {
        if constexpr (Traits::special) {
            status = special<C>(record, arguments);
        } else {
            status = call_driver<C>(arguments);
        }
    }
    if (status == replies_later) {
        return;
    }
    std::byte outs[protocol::max_head - sizeof(protocol::ReplyHeader)];
    Encoder out{std::span<std::byte>(outs)};
    if (status == CUDA_SUCCESS) {
        std::apply([this, &out](auto&... argument) { (argument.done(tables_, out), ...); }, arguments);
    }
    if constexpr (Traits::how == How::sent) {
        std::optional<WireId> fresh;
        std::apply([&fresh](auto&... argument) { (defer_for_new(argument, fresh), ...); }, arguments);
        if (status != CUDA_SUCCESS) {
            defer(fresh.value_or(caller.context), status);
        }
    } else {
        Bytes blob;
        std::apply([&blob](auto&... argument) { (blob_of(argument, blob), ...); }, arguments);
        reply(caller, status, out.written(), blob);
    }
}

const std::array<Executor::Handler, protocol::call_count> Executor::handlers_ = {
#define VGPU_CALL(name, ...) &Executor::handle<Call::name>,
#define VGPU_SPECIAL(name, ...) &Executor::handle<Call::name>,
#include "ucx_forwarder/protocol/calls.def"
#undef VGPU_CALL
#undef VGPU_SPECIAL
};

} // namespace vgpu::worker
