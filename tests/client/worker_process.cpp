// SPDX-License-Identifier: BSD-3-Clause
#include "tests/client/worker_process.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

namespace vgpu::test {

using protocol::Call;

std::string cuda_library() {
    const char* given = std::getenv("VGPU_TEST_CUDA_LIBRARY");
    return given != nullptr ? given : "contrib/softgpu/.libs/libcuda.so.1";
}

WorkerProcess::WorkerProcess(const WorkerSettings& settings)
    : options_((std::fflush(stdout), settings.options)), // or the child would print what is buffered again
      memory_(worker::LeaseMemory::create(settings.memory)), slot_(memory_->open_slot()),
      server_(start_server(options_, [&](std::unique_ptr<transport::Connection> connection) {
          const auto memory = worker::LeaseMemory::attach(::dup(memory_->fd()), slot_);
          worker::Counters counters;
          worker::WorkerJob job;
          job.client = "test";
          job.cuda_library = settings.cuda_library;
          job.image_cache = settings.image_cache;
          for (std::size_t i = 0; i < settings.memory.size(); ++i) {
              job.vgpus.push_back({static_cast<int>(i), 0, "", 100, settings.memory[i]});
          }
          job.memory = memory.get();
          job.counters = &counters;
          return worker::run_session(*connection, job);
      })) {}

std::unique_ptr<transport::Connection> WorkerProcess::connect() {
    return connect_to(server_, options_);
}

Fixture::Fixture(const WorkerSettings& settings)
    : worker(settings), session(std::make_unique<client::Session>("testnode", worker.connect())) {
    context = session->new_id();
    if (session->call<Call::cuDevicePrimaryCtxRetain>(client::no_context, context, 0) != CUDA_SUCCESS) {
        throw std::runtime_error("no context");
    }
}

int Fixture::end() {
    session.reset();
    return worker.process().wait();
}

CUdeviceptr Fixture::allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    if (call<Call::cuMemAlloc_v2>(&pointer, bytes) != CUDA_SUCCESS) {
        throw std::runtime_error("no memory");
    }
    return pointer;
}

std::uint64_t Fixture::awaited() const {
    std::uint64_t sum = 0;
    for (const auto& count : session->counts()) {
        sum += count.awaited;
    }
    return sum;
}

} // namespace vgpu::test
