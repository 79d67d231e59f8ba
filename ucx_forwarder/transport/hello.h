// SPDX-License-Identifier: BSD-3-Clause
// Hello messages over UCX, for connect() and the listener.
#pragma once

#include "ucx_forwarder/transport/handshake.h"
#include "ucx_forwarder/transport/wire.h"

#include <chrono>
#include <ucp/api/ucp.h>

namespace vgpu::transport {

/// Posts a hello; its memory is freed when UCX is done with it. Not from inside a UCX callback.
void post_hello(ucp_ep_h endpoint, const Hello& hello);

void set_hello_handler(ucp_worker_h worker, ucp_am_recv_callback_t callback, void* arg);

/// Progresses the worker, or sleeps until it has something to do, at most 10 ms.
void progress_or_sleep(ucp_worker_h worker, int event_fd);

} // namespace vgpu::transport
