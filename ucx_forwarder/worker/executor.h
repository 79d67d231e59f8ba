// SPDX-License-Identifier: BSD-3-Clause
// Executes a session's calls on the driver, in the order in which they came.
//
// Threads: the connection's threads put records into a queue (message()); one thread, in run(), takes them
// out and calls the driver. Calls that may block long are handed to waiter threads, which reply on their own.
// Handlers (special<>) run on the executing thread.
//
// The client is not trusted: every length and every id in a record is checked. A record that no honest client
// sends ends the session (ProtocolError); a wrong id or argument is the call's error.
#pragma once

#include "ucx_forwarder/protocol/message.h"
#include "ucx_forwarder/transport/connection.h"
#include "ucx_forwarder/worker/argument.h"
#include "ucx_forwarder/worker/driver.h"
#include "ucx_forwarder/worker/host_functions.h"
#include "ucx_forwarder/worker/image_cache.h"
#include "ucx_forwarder/worker/incoming.h"
#include "ucx_forwarder/worker/ledger.h"
#include "ucx_forwarder/worker/output_capture.h"
#include "ucx_forwarder/worker/waiters.h"
#include "ucx_forwarder/worker/worker.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::worker {

using protocol::Call;

/// The client does not keep to the protocol.
struct ProtocolError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A handler's result when the reply comes later, from a waiter thread.
constexpr auto replies_later = static_cast<CUresult>(-1);

/// Whom to answer, and in which context errors are kept.
struct Caller {
    std::uint32_t slot = 0; ///< 0: nobody waits
    WireId context;
};

/// One call being executed.
struct Record {
    Call call{};
    Caller caller;
    ContextState* context = nullptr; ///< null: the call names none
};

class Executor final : public transport::Receiver {
public:
    Executor(transport::Connection& connection, const WorkerJob& job);
    ~Executor() override;

    /// Until the connection ends. Throws ProtocolError.
    void run();

    std::span<std::byte> body_buffer(std::span<const std::byte> head, std::size_t size) override;
    void message(std::span<const std::byte> head, std::span<std::byte> body) override;
    void lost(const std::string& why) override;

private:
    using Handler = void (Executor::*)(const protocol::RecordHeader&, Decoder&, const Incoming&);
    static const std::array<Handler, protocol::call_count> handlers_;

    void execute(const Incoming& incoming);

    /// Decodes, executes, replies.
    template <Call C>
    void handle(const protocol::RecordHeader& header, Decoder& in, const Incoming& incoming);
    /// The driver's function of that name with the decoded arguments.
    template <Call C>
    CUresult call_driver(Arguments<C>& arguments);
    /// Hand-written handlers, in special_*.cpp; declared below for each VGPU_SPECIAL line.
    template <Call C>
    CUresult special(const Record& record, Arguments<C>& arguments);

    /// Makes the record's context current; an error when the client's id is none.
    CUresult enter(Record& record);
    /// The thread's current context is not known any more.
    void forget_current() { current_ = no_context; }

    // --- replies; any thread
    /// `outs`: the packed Out parameters. `body` is copied.
    void reply(Caller to, CUresult status, Bytes outs = {}, Bytes body = {});
    /// Ships what kernels printed, then replies with the status or an earlier, deferred error.
    void reply_synchronised(Caller to, CUresult status);
    void send_output();
    void defer(WireId context, CUresult status);
    CUresult take_deferred(WireId context);
    void tell_consumed();

    // --- for handlers
    CUresult require_context(const Record& record) const {
        return record.context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    /// Charges the lease, allocates, and remembers; `allocate` is the driver call. Address: what it gave.
    template <class F>
    CUresult allocate(const Record& record, std::uint64_t bytes, CUdeviceptr& address, F&& allocate);
    /// A copy or function that would be kept in a graph: what it refers to is the client's, or gone by then.
    bool kept_by_capture(CUstream stream) const;
    /// Runs a blocking driver call on a waiter thread with the record's context current, then replies.
    CUresult wait_elsewhere(const Record& record, std::function<CUresult()> blocking);
    /// Spins for a moment while no other call waits: true when `ready` says so.
    bool soon(const std::function<CUresult()>& ready);
    CUresult
    copy_to_host(const Record& record, std::uint64_t size, std::function<CUresult()> ready,
                 std::function<CUresult(std::byte* to, std::uint64_t offset, std::size_t size)> copy);
    CUresult driver_copy(const protocol::CopyShape& shape, CUDA_MEMCPY3D& copy) const;
    CUresult memory_copy(const protocol::CopyShape& shape, const CUDA_MEMCPY3D& copy, CUstream stream);
    CUresult launch(const Record& record, WireId function, const protocol::LaunchShape& shape,
                    CUstream stream, Bytes packed, bool cooperative, std::span<CUlaunchAttribute> attributes);
    CUresult module_snapshot(CUmodule handle, ModuleState& module, protocol::ModuleSnapshot& out);
    std::vector<protocol::DeviceSnapshot> device_snapshots();
    void forget_context(std::uint64_t context);
    void forget_primary(int vgpu);
    template <class H, class F>
    CUresult create_array(const Record& record, std::uint64_t bytes, Argument<protocol::New<H>>& array,
                          F&& create);
    std::vector<std::byte> scratch_; ///< a launch's parameters, aligned
    std::vector<void*> pointers_;    ///< into it

    transport::Connection& connection_;
    const WorkerJob& job_;
    std::string failure_; ///< why there is no driver; the answer to hello
    std::unique_ptr<Driver> driver_;
    std::vector<CUdevice> devices_; ///< by index in job_.vgpus
    std::vector<int> retains_;      ///< of the primary contexts
    Tables tables_;
    Ledger ledger_;
    ImageCache images_;
    OutputCapture output_;
    IncomingQueue queue_;
    bool greeted_ = false;
    bool captures_ = false; ///< the client has begun a capture at some time

    static constexpr std::uint64_t no_context = ~std::uint64_t{0};
    std::uint64_t current_ = no_context; ///< id of the executing thread's current context

    std::atomic<std::uint64_t> consumed_{0};
    std::atomic<std::uint64_t> told_consumed_{0};
    std::atomic<bool> has_deferred_{false};
    std::mutex deferred_mutex_;
    std::map<std::uint64_t, CUresult> deferred_;

    std::shared_ptr<std::atomic<bool>> finished_ = std::make_shared<std::atomic<bool>>(false);
    HostFunctions host_functions_;
    Waiters waiters_; ///< last: its threads use what stands above
};

#define VGPU_CALL(name, ...)
#define VGPU_SPECIAL(name, ...)                                                                              \
    template <>                                                                                              \
    CUresult Executor::special<Call::name>(const Record& record, Arguments<Call::name>& arguments);
#include "ucx_forwarder/protocol/calls.def"
#undef VGPU_CALL
#undef VGPU_SPECIAL

/// The type of a driver function that takes these arguments.
template <class P>
struct Signature;
template <class... A>
struct Signature<std::tuple<A...>> {
    using Function = CUresult(CUDAAPI*)(A...);
};

template <Call C>
CUresult Executor::call_driver(Arguments<C>& arguments) {
    void* symbol = driver_->call(C);
    if (symbol == nullptr) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    auto values =
        std::apply([](auto&... argument) { return std::tuple_cat(argument.driver()...); }, arguments);
    const auto function = reinterpret_cast<typename Signature<decltype(values)>::Function>(symbol);
    return std::apply(function, values);
}

template <class F>
CUresult Executor::allocate(const Record& record, std::uint64_t bytes, CUdeviceptr& address, F&& allocate) {
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const int vgpu = record.context->vgpu;
    if (bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!ledger_.take(vgpu, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const CUresult status = allocate();
    if (status != CUDA_SUCCESS) {
        ledger_.give(vgpu, bytes);
        return status;
    }
    ledger_.remember({Ledger::Key::Kind::pointer, address}, record.caller.context.value, vgpu, bytes);
    return CUDA_SUCCESS;
}

} // namespace vgpu::worker
