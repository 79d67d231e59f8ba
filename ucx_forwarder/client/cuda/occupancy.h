// SPDX-License-Identifier: BSD-3-Clause
// How many blocks of a kernel fit on a multiprocessor: the worker's driver knows, and is asked once for each
// shape.
#pragma once

#include "ucx_forwarder/client/cuda/client.h"

namespace vgpu::client {

CUresult active_blocks(Function& function, int block_size, std::size_t shared_bytes, unsigned flags,
                       int& blocks);

} // namespace vgpu::client
