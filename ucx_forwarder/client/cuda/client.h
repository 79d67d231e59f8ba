// SPDX-License-Identifier: BSD-3-Clause
// The state of this process as a CUDA client, and the questions with which most functions of the API begin.
#pragma once

#include "ucx_forwarder/client/cuda/handle_table.h"
#include "ucx_forwarder/client/cuda/objects.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

// Declared by cuda.h with this visibility, but not all of them by the cuda.h of an older toolkit.
#define VGPU_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

/// Returns from the calling function if `expression` is an error.
#define VGPU_TRY(expression)                                                                                 \
    do {                                                                                                     \
        if (CUresult vgpu_result = (expression); vgpu_result != CUDA_SUCCESS)                                \
            return vgpu_result;                                                                              \
    } while (0)

namespace vgpu::client {

/// This thread is running a host function of the program (cuLaunchHostFunc), which must not call the driver.
inline thread_local constinit bool inside_host_function = false;

/// The one instance is made on first use and never destroyed: programs call the driver from their own
/// destructors.
class Client {
public:
    static Client& instance();

    /// cuInit: connects once. Any thread; later callers wait for the first and get its result.
    CUresult initialize();
    /// At exit: an orderly end of the sessions. Later calls get
    /// CUDA_ERROR_DEINITIALIZED.
    void shut_down();

    /// CUDA_SUCCESS, or why no call but cuInit and a few can be answered.
    CUresult ready() const {
        switch (state_.load(std::memory_order_acquire)) {
        case State::ready:
            return inside_host_function ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
        case State::ended:
            return CUDA_ERROR_DEINITIALIZED;
        default:
            return CUDA_ERROR_NOT_INITIALIZED;
        }
    }

    std::deque<Device>& devices() { return devices_; }
    std::deque<Node>& nodes() { return nodes_; }
    Device* device(CUdevice ordinal) {
        return ordinal >= 0 && std::size_t(ordinal) < devices_.size() ? &devices_[std::size_t(ordinal)]
                                                                      : nullptr;
    }

    HandleTable<Context> contexts{Kind::context};
    HandleTable<Stream> streams{Kind::stream};
    HandleTable<Event> events{Kind::event};
    HandleTable<Module> modules{Kind::module};
    HandleTable<Function> functions{Kind::function};
    HandleTable<Library> libraries{Kind::library};
    HandleTable<Kernel> kernels{Kind::kernel};
    HandleTable<MemoryPool> pools{Kind::pool};
    HandleTable<Array> arrays{Kind::array};
    AddressMap host_memory;
    Reservation reservation;

private:
    enum class State : int { fresh, ready, forked, ended };

    Client() = default;
    CUresult connect();

    std::atomic<State> state_{State::fresh};
    std::mutex mutex_;
    std::deque<Node> nodes_;
    std::deque<Device> devices_;
    std::vector<std::vector<int>> node_devices_; ///< by node: the program's numbers of its devices
};

inline Client& client() {
    return Client::instance();
}

/// Numbers for what programs ask an id of: contexts, streams.
std::uint64_t new_number();

/// Ready, and a valid context is current for this thread.
CUresult current(Context*& context);
/// The object of a context handle: CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED. Needs
/// ready().
CUresult context_of(CUcontext handle, Context*& context);
/// Ready, and the device exists: else CUDA_ERROR_INVALID_DEVICE.
CUresult device_of(CUdevice ordinal, Device*& device);

/// CU_CTX_SCHED_*, at most one of them, and the other CU_CTX_* flags.
bool valid_context_flags(unsigned flags);
/// A context ends, and with it all that it holds: those handles become invalid. The worker does the same on
/// its own.
void forget_context(Context& context);
/// cuMemHostAlloc's memory that belongs to a context.
void free_host_memory(CUcontext context);

/// The device's primary context, made active, as one more user of it.
CUresult retain_primary(Device& device, Context*& context);
CUresult release_primary(Device& device);

/// An allocation of this context is known from now on.
CUresult remember(const Context& context, Range range);
/// CUDA_ERROR_INVALID_VALUE: these bytes are not all in one allocation that this context can use.
CUresult check_device_range(const Context& context, CUdeviceptr pointer, std::size_t size);
/// Device memory, of the current context's node first, or page-locked host memory.
std::optional<Range> find_range(std::uint64_t address);

/// How a NULL stream handle is meant.
enum class NullStream { legacy, per_thread };
/// The wire's id of a stream, which may be a default one; `context` is the current one on entry and the
/// stream's own on return. CUDA_ERROR_INVALID_HANDLE: no such stream.
CUresult stream_of(CUstream handle, NullStream null, Context*& context, WireId& stream);
/// For calls that need a current context and a stream: both.
CUresult current_stream(CUstream handle, NullStream null, Context*& context, WireId& stream);

/// A function, or the current context's function of a library's kernel (the API takes both as CUfunction).
/// CUDA_ERROR_INVALID_HANDLE: neither.
CUresult function_of(CUfunction handle, Function*& function);

} // namespace vgpu::client
