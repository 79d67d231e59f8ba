// SPDX-License-Identifier: BSD-3-Clause
// vgpu-worker with an executor that knows no CUDA: it holds 1 MiB of the first vGPU and sends every message
// back.
#include "tests/transport/echo.h"
#include "ucx_forwarder/worker/worker.h"

#include <unistd.h>

namespace vgpu::worker {

int run_session(transport::Connection& connection, const WorkerJob& job) {
    if (!job.memory->take(job.vgpus.at(0).slot, 1 << 20))
        return 9;
    job.counters->calls_sent = 7;
    job.counters->calls_awaited = 3;
    test::Echo receiver(connection);
    connection.start(receiver);
    const std::uint64_t hello[2] = {getuid(), job.vgpus.at(0).memory};
    connection.send(std::as_bytes(std::span(hello)));
    return connection.wait_until([&] { return receiver.is_lost(); }) ? 0 : 1;
}

} // namespace vgpu::worker
