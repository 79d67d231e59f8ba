// SPDX-License-Identifier: BSD-3-Clause
// From the claim that Slurm gave this program (the file that VGPU_CLAIM names) to one authenticated
// connection for each GPU node in it.
#pragma once

#include "ucx_forwarder/client/cuda/session.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace vgpu::client {

/// No session can be had; the text is one sentence for the user: what is wrong and what to do.
struct OpenError : std::runtime_error {
    OpenError(CUresult status_, const std::string& text) : std::runtime_error(text), status(status_) {}
    /// What cuInit answers. CUDA_ERROR_NO_DEVICE: this program was given no vGPU (no VGPU_CLAIM).
    /// CUDA_ERROR_SYSTEM_NOT_READY: the vgpud or worker is not there or refuses. CUDA_ERROR_NOT_PERMITTED:
    /// the claim is not ours to read, or not valid any more.
    CUresult status;
};

struct OpenedNode {
    std::string node;                                  ///< its name, for messages
    std::unique_ptr<transport::Connection> connection; ///< authenticated, not started
    std::vector<int>
        devices; ///< the program's device numbers of this node's vGPUs, in the session's own order
};

/// Opens all nodes of the claim, or throws OpenError. Also reads what the claim says of the client's
/// settings.
std::vector<OpenedNode> open_claim();

} // namespace vgpu::client
