// SPDX-License-Identifier: BSD-3-Clause
// Contexts: what a program has made on a device, the order of its work, and its sticky error.
#pragma once

#include "contrib/softgpu/cuda_api.h"
#include "contrib/softgpu/ptx/engine.h"
#include "contrib/softgpu/stream.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace softgpu {

class Device;

// Thread-safe.
class Context : public std::enable_shared_from_this<Context> {
public:
    Context(Device& device, unsigned flags, bool primary);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    [[nodiscard]] Device& device() const { return device_; }
    [[nodiscard]] std::uint64_t id() const { return id_; }
    [[nodiscard]] bool primary() const { return primary_; }
    [[nodiscard]] unsigned flags() const { return flags_; }
    void set_flags(unsigned flags) { flags_ = flags; }
    [[nodiscard]] CUcontext handle() { return reinterpret_cast<CUcontext>(this); }

    // After a kernel has failed every call returns its error.
    [[nodiscard]] CUresult error() const { return error_; }
    void fail(CUresult error);

    // Takes a stream handle of any kind; 0 is `null_stream`, CU_STREAM_LEGACY or CU_STREAM_PER_THREAD. Throws
    // Error.
    [[nodiscard]] std::shared_ptr<Stream> stream(CUstream handle, CUstream null_stream);
    [[nodiscard]] CUstream create_stream(unsigned flags, int priority);
    void destroy_stream(CUstream handle);
    // For the end of a thread that had a per-thread stream.
    void forget_stream(const std::shared_ptr<Stream>& stream);

    // Work that is done later, and work that is done before run() returns; both in the stream's order, which
    // heeds the rules of the legacy default stream.
    Moment submit(Stream& stream, Stream::Work work, std::vector<Moment> after = {});
    CUresult run(Stream& stream, const Stream::Work& work);
    // Waits for all work so far.
    CUresult synchronize();

    // Notes whether the peer's memory was asked for; false if that is so already. (Kernels reach it either
    // way.)
    [[nodiscard]] bool enable_peer(std::uint64_t context, bool enabled);

    [[nodiscard]] std::size_t limit(CUlimit limit);
    void set_limit(CUlimit limit, std::size_t value);
    // For the malloc of kernels. nullptr where the device has no memory for it.
    [[nodiscard]] ptx::DeviceHeap* heap();

    // Zeroed device memory for the barrier of a cooperative launch, kept for all launches: a barrier that all
    // blocks have passed is ready for the next launch. 0 when there is no memory for it.
    [[nodiscard]] std::uint64_t grid_workspace();

    // Frees all that was made in the context: it is then as new. Waits for its work first.
    void clear();

private:
    [[nodiscard]] std::vector<Moment> order(Stream& stream, std::vector<Moment> after);
    [[nodiscard]] std::shared_ptr<Stream> per_thread_stream();
    [[nodiscard]] std::vector<Moment> pending();

    Device& device_;
    const std::uint64_t id_;
    const bool primary_;
    std::atomic<unsigned> flags_;
    std::atomic<CUresult> error_{CUDA_SUCCESS};

    std::mutex order_;                             // of tickets across streams
    std::shared_ptr<Stream> legacy_;               // made at first use
    std::vector<std::shared_ptr<Stream>> streams_; // all others
    std::vector<Moment> destroyed_;                // the last work of streams that were destroyed

    std::mutex state_;
    std::map<CUlimit, std::size_t> limits_;
    std::unique_ptr<ptx::DeviceHeap> heap_;
    std::uint64_t grid_workspace_ = 0;
    std::set<std::uint64_t> peers_;
};

// The calling thread's stack of contexts; the last is the current one.
[[nodiscard]] std::vector<std::shared_ptr<Context>>& context_stack();

} // namespace softgpu
