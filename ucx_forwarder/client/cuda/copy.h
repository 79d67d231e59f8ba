// SPDX-License-Identifier: BSD-3-Clause
// What the functions of copy.cpp and copy_3d.cpp share.
#pragma once

#include "ucx_forwarder/client/cuda/client.h"

namespace vgpu::client {

/// How a copy was asked for.
struct CopyMode {
    CUstream stream = nullptr;
    NullStream null = NullStream::legacy;
    bool async = false;
};

/// A copy under way: the context and stream it runs in. The per-thread form of a synchronous copy is an
/// asynchronous one on the thread's own stream.
struct CopyPath {
    Context* context = nullptr;
    WireId stream;
    bool async = false;
};
CUresult copy_path(const CopyMode& mode, CopyPath& path);

/// What a unified address means. CUDA_ERROR_INVALID_VALUE: an address that was a device's and is none any
/// more.
CUresult classify(CUdeviceptr pointer, CUmemorytype& type, Node*& node);

/// Before page-locked host memory is read: a host function that may fill it could still be waiting in the
/// stream.
CUresult wait_for_host_functions(const CopyPath& path, const void* from);

CUresult to_device(const CopyPath& path, CUdeviceptr to, const void* from, std::size_t size);
CUresult to_host(const CopyPath& path, void* to, CUdeviceptr from, std::size_t size);
/// Both addresses are devices' of any node.
CUresult between_devices(const CopyPath& path, CUdeviceptr to, Node& to_node, CUdeviceptr from,
                         Node& from_node, std::size_t size);

} // namespace vgpu::client
