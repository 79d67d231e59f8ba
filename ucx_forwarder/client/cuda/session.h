// SPDX-License-Identifier: BSD-3-Clause
// The client's end of a session: one ordered stream of calls to the worker on one GPU node.
//
//     session.call<Call::cuMemAlloc_v2>(context, &pointer, bytes)     a call in a context
//     session.call<Call::cuDeviceCanAccessPeer>(no_context, &yes, 0, 1)  a call that needs none
//
// The arguments follow from calls.def (descriptors.h tells which argument a descriptor wants). A call that
// the table says is `sent` returns at once; its error, if any, is the status of the next awaited call in the
// same context. A call that is `awaited` returns with the worker's answer. To add a call, see calls.def;
// nothing is to be done here.
//
// Contexts, streams, events and so on go over the wire as ids that the client chooses (new_id). An id says
// nothing of the session it belongs to: whoever keeps the objects keeps both.
//
// Threads: everything may be called by any thread. Calls of all threads form one order, in which the worker
// runs them.
//
// Errors: a context that met a fatal error (illegal address, assert, ...) gives that error ever after, as
// CUDA does. When the worker is lost, one sentence says so on stderr, and every call gives
// CUDA_ERROR_DEVICE_UNAVAILABLE from then on: of the codes that programs know, the one that says that this
// device cannot be used, and not that the program is at fault. After shutdown() at exit, calls give
// CUDA_ERROR_DEINITIALIZED, as the driver does.
#pragma once

#include "ucx_forwarder/protocol/calls.h"
#include "ucx_forwarder/protocol/jit_options.h"
#include "ucx_forwarder/protocol/message.h"
#include "ucx_forwarder/protocol/snapshot.h"
#include "ucx_forwarder/transport/connection.h"

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::client {

using protocol::Bytes;
using protocol::Call;
using protocol::CallTraits;
using protocol::DeviceSnapshot;
using protocol::How;
using protocol::KernelSnapshot;
using protocol::ModuleSnapshot;
using protocol::WireId;

constexpr WireId no_context = protocol::null_id;

/// The worker does not speak to us as it should; the text says what is wrong and what to do.
struct SessionError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One cuLinkAddData.
struct LinkInput {
    CUjitInputType type = CU_JIT_INPUT_PTX;
    Bytes data;       ///< the caller's
    std::string name; ///< for the linker's messages
};

class Session {
public:
    /// Starts the connection and does `hello`. Throws SessionError or transport::TransportError.
    /// `node` is for messages to people. The session is used until the process ends (see shutdown).
    Session(std::string node, std::unique_ptr<transport::Connection> connection);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// The lease's vGPUs on this node, in the order of their Device numbers on the wire.
    const std::vector<DeviceSnapshot>& devices() const;
    const std::string& node() const;
    std::string transport_name() const;

    /// An id for a New<> parameter. Never given twice.
    WireId new_id() { return {next_id_.fetch_add(1, std::memory_order_relaxed)}; }

    /// The call that calls.def names, with `context` current on the worker.
    template <Call C, class... A>
    CUresult call(WireId context, A&&... arguments) {
        return invoke<C>(context, typename CallTraits<C>::parameters{}, std::forward<A>(arguments)...);
    }

    /// CUDA_SUCCESS, or the fatal error that this context gives from now on.
    CUresult sticky(WireId context) const;
    /// The context is gone, and its fatal error with it (its id may be used for a primary context again).
    void forget_context(WireId context);

    /// cuModuleLoadData(Ex): asks by the image's hash, sends the image only when the node does not have it.
    /// `module` is a new id of the caller's; kernel i of `out` is protocol::kernel_id(module, i). `image` is
    /// exactly the image. `options`: protocol::encode_jit_options; the logs they ask for are in `out`, also
    /// when the load fails.
    CUresult load_module(WireId context, WireId module, Bytes image, Bytes options, ModuleSnapshot& out);

    /// cuLinkCreate, cuLinkAddData... and cuLinkComplete in one round trip. Of `logs`, only the logs are
    /// filled.
    CUresult link(WireId context, std::span<const LinkInput> inputs, Bytes options,
                  std::vector<std::byte>& cubin, ModuleSnapshot& logs);

    /// Host to device; `async`: cuMemcpyHtoDAsync on `stream`, else cuMemcpyHtoD. Returns when `from` may be
    /// changed, which for pinned memory is earlier than CUDA promises. Large sources are read in place until
    /// they are sent.
    CUresult copy_to_device(WireId context, CUdeviceptr to, Bytes from, WireId stream, bool async);
    /// Device to host, straight into `to`. Returns when the data is there, also where `async`.
    CUresult copy_to_host(WireId context, std::span<std::byte> to, CUdeviceptr from, WireId stream,
                          bool async);
    /// cuMemcpy3D(Async), and cuMemcpy2D written as one. Memory types are host, device or array (resolve
    /// unified before); srcArray and dstArray hold the arrays' wire ids as numbers. Host to host is done
    /// here.
    CUresult copy_3d(WireId context, const CUDA_MEMCPY3D& copy, WireId stream, bool async);

    /// Runs `function` once the stream came to it, on a thread of the session that must not call CUDA; the
    /// stream waits until it returned. One at a time, in order.
    CUresult host_function(WireId context, WireId stream, std::function<void()> function);

    bool lost() const;
    /// Puts what was sent on the wire and ends the session. For the end of the process.
    void shutdown();

    /// Counters, for every call since the session began, hello excluded.
    struct Counts {
        std::uint64_t sent = 0;    ///< calls that went to the worker and were not awaited
        std::uint64_t awaited = 0; ///< calls that cost a round trip
    };
    std::vector<Counts> counts() const; ///< by Call

private:
    struct State;

    /// One call on its way: memory on the stack of the calling thread.
    struct Request {
        Call call{};
        WireId context;
        std::span<std::byte> head; ///< RecordHeader, parameters; large enough for a reply's head too
        std::size_t head_size = 0;
        Bytes body;                                   ///< BytesIn
        std::span<std::byte> reply_to;                ///< BytesOut
        std::vector<std::byte>* reply_blob = nullptr; ///< BlobOut
        bool has_body_out = false;
        bool parameters_in_body = false;
        std::size_t reply_size = 0; ///< out: bytes of Out parameters, at the begin of `head`
    };
    CUresult post(Request& request);     ///< sent
    CUresult exchange(Request& request); ///< awaited

    static void note(Request& request, protocol::BytesIn*, Bytes body) { request.body = body; }
    static void note(Request& request, protocol::BytesOut*, std::span<std::byte> to) {
        request.reply_to = to;
        request.has_body_out = true;
    }
    static void note(Request& request, protocol::BlobOut*, std::vector<std::byte>* blob) {
        request.reply_blob = blob;
    }
    template <class P, class A>
    static void note(Request&, P*, const A&) {}

    template <Call C, class... P>
    CUresult invoke(WireId context, protocol::Parameters<P...>, typename P::Argument... arguments) {
        std::byte buffer[protocol::max_head]; // not initialised on purpose
        constexpr std::size_t start = sizeof(protocol::RecordHeader);
        Request request;
        request.call = C;
        request.context = context;
        request.head = buffer;
        protocol::Encoder out{std::span<std::byte>(buffer).subspan(start)};
        (P::put(out, arguments), ...);
        (note(request, static_cast<P*>(nullptr), arguments), ...);
        request.head_size = start + out.size();
        std::vector<std::byte> large;
        if (out.overflow()) { // rare: parameters of more than 4 KiB travel as the body
            large.resize(out.size());
            protocol::Encoder again{std::span<std::byte>(large)};
            (P::put(again, arguments), ...);
            request.body = large;
            request.head_size = start;
            request.parameters_in_body = true;
        }
        if constexpr (CallTraits<C>::how == How::sent) {
            return post(request);
        } else {
            const CUresult status = exchange(request);
            if (status != CUDA_SUCCESS) {
                return status;
            }
            protocol::Decoder in(Bytes(request.head).first(request.reply_size));
            return (P::take(in, arguments) && ...) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
        }
    }

    const std::unique_ptr<State> state_;
    std::atomic<std::uint64_t> next_id_{protocol::first_id};
};

} // namespace vgpu::client
