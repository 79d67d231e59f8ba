// SPDX-License-Identifier: BSD-3-Clause
// Where vgpu-worker's process (main.cpp: authentication, connection, reports to vgpud) hands over to the
// executor of CUDA calls (dispatch).
#pragma once

#include "ucx_forwarder/transport/connection.h"
#include "ucx_forwarder/worker/lease_memory.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace vgpu::worker {

/// One CUDA device as the client sees it; its place in WorkerJob::vgpus is the device number that the client
/// uses on this node.
struct WorkerVgpu {
    int slot = 0;     ///< the vGPU's number in LeaseMemory
    int gpu = 0;      ///< the driver's device ordinal
    std::string uuid; ///< of the GPU; the ordinal must have it, else the driver's order has changed
    unsigned shares = 0;
    std::uint64_t memory =
        0; ///< bytes; what cuDeviceTotalMem shows. The limit itself is LeaseMemory::limit(slot)
};

/// Counted by the executor, read by the reporter a second or so.
struct Counters {
    std::atomic<std::uint64_t> calls_sent{0};    ///< all calls that came
    std::atomic<std::uint64_t> calls_awaited{0}; ///< of these, those whose client waits for the reply
};

/// What vgpud told this worker to do.
struct WorkerJob {
    std::uint64_t session = 0;
    std::string claim;
    std::string client;                          ///< "c1:4711 saxpy"
    std::string cuda_library;                    ///< opened by dlopen
    std::map<std::string, std::string> cuda_env; ///< already in the environment when run_session begins
    std::string
        image_cache; ///< directory of this user's module images, mode 0700 and owned by the user; "": none
    std::vector<WorkerVgpu> vgpus;
    LeaseMemory* memory = nullptr; ///< never null in run_session; outlives it
    Counters* counters = nullptr;  ///< likewise
};

/// Opens the driver, calls connection.start(), executes the session's calls and returns when the connection
/// is lost or closed by the client. The result is the process's exit status; 0: an orderly end. What cannot
/// even begin (no driver, the GPU is not there) is sent to the client as the answer to its first call, and
/// logged.
int run_session(transport::Connection& connection, const WorkerJob& job);

} // namespace vgpu::worker
