// SPDX-License-Identifier: BSD-3-Clause
// A worker on softgpu in a process of its own, and a client session with it over loopback: everything but
// vgpud.
#pragma once

#include "tests/transport/pair.h"
#include "ucx_forwarder/client/cuda/session.h"
#include "ucx_forwarder/worker/worker.h"

#include <memory>
#include <string>
#include <vector>

namespace vgpu::test {

/// softgpu's libcuda as it was just built, or $VGPU_TEST_CUDA_LIBRARY.
std::string cuda_library();

struct WorkerSettings {
    std::vector<std::uint64_t> memory{64U << 20}; ///< bytes of each vGPU; all on the driver's device 0
    std::string cuda_library = test::cuda_library();
    std::string image_cache;
    transport::Options options;
};

class WorkerProcess {
public:
    explicit WorkerProcess(const WorkerSettings& settings = {});
    /// Connects, without the client's session.
    std::unique_ptr<transport::Connection> connect();
    /// Bytes of the lease that are in use.
    std::uint64_t used(int vgpu = 0) const { return memory_->used(vgpu); }
    Child& process() { return server_.process; }

private:
    transport::Options options_;
    std::unique_ptr<worker::LeaseMemory> memory_;
    int slot_;
    Server server_;
};

/// A session with its worker, and a primary context of device 0.
struct Fixture {
    explicit Fixture(const WorkerSettings& settings = {});
    /// Ends the session and waits for the worker: its exit status.
    int end();

    WorkerProcess worker;
    std::unique_ptr<client::Session> session;
    protocol::WireId context;

    template <protocol::Call C, class... A>
    CUresult call(A&&... arguments) {
        return session->call<C>(context, std::forward<A>(arguments)...);
    }
    CUdeviceptr allocate(std::size_t bytes);
    std::uint64_t awaited() const;
};

} // namespace vgpu::test
