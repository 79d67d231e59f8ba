// SPDX-License-Identifier: BSD-3-Clause
// Copies in one dimension.
#include "ucx_forwarder/client/cuda/copy.h"

#include "ucx_forwarder/client/cuda/host_function.h"

#include <algorithm>
#include <cstring>

namespace vgpu::client {

CUresult copy_path(const CopyMode& mode, CopyPath& path) {
    VGPU_TRY(current_stream(mode.stream, mode.null, path.context, path.stream));
    path.async = mode.async || mode.null == NullStream::per_thread;
    return CUDA_SUCCESS;
}

CUresult classify(CUdeviceptr pointer, CUmemorytype& type, Node*& node) {
    Context* context;
    node = nullptr;
    type = CU_MEMORYTYPE_DEVICE;
    if (current(context) == CUDA_SUCCESS && context->memory().find(pointer)) {
        node = context->device->node;
        return CUDA_SUCCESS;
    }
    if (!client().host_memory.find(pointer)) {
        for (Node& other : client().nodes())
            if (other.memory.find(pointer)) {
                node = &other;
                return CUDA_SUCCESS;
            }
        if (client().reservation.covers(pointer)) {
            VGPU_TRY(current(context));
            VGPU_TRY(check_device_range(*context, pointer, 1));
            node = context->device->node;
            return CUDA_SUCCESS;
        }
    }
    type = CU_MEMORYTYPE_HOST;
    return CUDA_SUCCESS;
}

CUresult wait_for_host_functions(const CopyPath& path, const void* from) {
    if (!host_functions_pending() || !client().host_memory.find(reinterpret_cast<std::uint64_t>(from)))
        return CUDA_SUCCESS;
    return path.context->call<Call::cuStreamSynchronize>(path.stream);
}

CUresult to_device(const CopyPath& path, CUdeviceptr to, const void* from, std::size_t size) {
    if (size == 0)
        return CUDA_SUCCESS;
    if (!from)
        return CUDA_ERROR_INVALID_VALUE;
    VGPU_TRY(check_device_range(*path.context, to, size));
    VGPU_TRY(wait_for_host_functions(path, from));
    return path.context->session().copy_to_device(
        path.context->id, to, {static_cast<const std::byte*>(from), size}, path.stream, path.async);
}

CUresult to_host(const CopyPath& path, void* to, CUdeviceptr from, std::size_t size) {
    if (size == 0)
        return CUDA_SUCCESS;
    if (!to)
        return CUDA_ERROR_INVALID_VALUE;
    VGPU_TRY(check_device_range(*path.context, from, size));
    return path.context->session().copy_to_host(path.context->id, {static_cast<std::byte*>(to), size}, from,
                                                path.stream, path.async);
}

namespace {

/// From one node to another, through this process.
CUresult across_nodes(const CopyPath& path, CUdeviceptr to, Node& to_node, CUdeviceptr from, Node& from_node,
                      std::size_t size) {
    // A context on either side: the one in which the memory was allocated.
    Context *source, *target;
    auto from_range = from_node.memory.find(from);
    auto to_range = to_node.memory.find(to);
    if (!from_range || !to_range)
        return CUDA_ERROR_INVALID_VALUE;
    VGPU_TRY(context_of(from_range->context, source));
    VGPU_TRY(context_of(to_range->context, target));
    VGPU_TRY(check_device_range(*source, from, size));
    VGPU_TRY(check_device_range(*target, to, size));
    // In the order of the stream that was named, and of the default streams of both.
    VGPU_TRY(path.context->call<Call::cuStreamSynchronize>(path.stream));
    constexpr std::size_t piece = 8 << 20;
    std::vector<std::byte> buffer(std::min(size, piece));
    for (std::size_t done = 0; done < size; done += piece) {
        std::span<std::byte> part(buffer.data(), std::min(piece, size - done));
        VGPU_TRY(source->session().copy_to_host(source->id, part, from + done, protocol::null_id, false));
        VGPU_TRY(target->session().copy_to_device(target->id, to + done, part, protocol::null_id, false));
    }
    return target->call<Call::cuStreamSynchronize>(protocol::null_id);
}

} // namespace

CUresult between_devices(const CopyPath& path, CUdeviceptr to, Node& to_node, CUdeviceptr from,
                         Node& from_node, std::size_t size) {
    if (size == 0)
        return CUDA_SUCCESS;
    Node* here = path.context->device->node;
    if (&to_node != here || &from_node != here)
        return across_nodes(path, to, to_node, from, from_node, size);
    VGPU_TRY(check_device_range(*path.context, to, size));
    VGPU_TRY(check_device_range(*path.context, from, size));
    return path.async ? path.context->call<Call::cuMemcpyDtoDAsync_v2>(to, from, size, path.stream)
                      : path.context->call<Call::cuMemcpyDtoD_v2>(to, from, size);
}

namespace {

CUresult host_to_device(CUdeviceptr to, const void* from, std::size_t size, CopyMode mode) {
    CopyPath path;
    VGPU_TRY(copy_path(mode, path));
    return to_device(path, to, from, size);
}

CUresult device_to_host(void* to, CUdeviceptr from, std::size_t size, CopyMode mode) {
    CopyPath path;
    VGPU_TRY(copy_path(mode, path));
    return to_host(path, to, from, size);
}

CUresult device_to_device(CUdeviceptr to, CUdeviceptr from, std::size_t size, CopyMode mode) {
    CopyPath path;
    VGPU_TRY(copy_path(mode, path));
    Node& node = *path.context->device->node;
    return between_devices(path, to, node, from, node, size);
}

CUresult unified(CUdeviceptr to, CUdeviceptr from, std::size_t size, CopyMode mode) {
    CopyPath path;
    VGPU_TRY(copy_path(mode, path));
    if (size == 0)
        return CUDA_SUCCESS;
    if (to == 0 || from == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemorytype to_type, from_type;
    Node *to_node, *from_node;
    VGPU_TRY(classify(to, to_type, to_node));
    VGPU_TRY(classify(from, from_type, from_node));
    if (to_type == CU_MEMORYTYPE_DEVICE && from_type == CU_MEMORYTYPE_DEVICE)
        return between_devices(path, to, *to_node, from, *from_node, size);
    // The memory may belong to another node than the current context.
    for (Node* node : {to_node, from_node})
        if (node && node != path.context->device->node) {
            VGPU_TRY(path.context->call<Call::cuStreamSynchronize>(path.stream));
            auto range = node->memory.find(node == to_node ? to : from);
            VGPU_TRY(range ? context_of(range->context, path.context) : CUDA_ERROR_INVALID_VALUE);
            path = {.context = path.context, .stream = protocol::null_id, .async = false};
        }
    if (to_type == CU_MEMORYTYPE_DEVICE)
        return to_device(path, to, reinterpret_cast<const void*>(from), size);
    if (from_type == CU_MEMORYTYPE_DEVICE)
        return to_host(path, reinterpret_cast<void*>(to), from, size);
    VGPU_TRY(wait_for_host_functions(path, reinterpret_cast<const void*>(from)));
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
    return CUDA_SUCCESS;
}

CUresult peer(CUdeviceptr to, CUcontext to_handle, CUdeviceptr from, CUcontext from_handle, std::size_t size,
              CopyMode mode) {
    CopyPath path;
    VGPU_TRY(copy_path(mode, path));
    Context *to_context, *from_context;
    VGPU_TRY(context_of(to_handle, to_context));
    VGPU_TRY(context_of(from_handle, from_context));
    if (size == 0)
        return CUDA_SUCCESS;
    Node& to_node = *to_context->device->node;
    Node& from_node = *from_context->device->node;
    if (&to_node != path.context->device->node || &from_node != path.context->device->node)
        return between_devices(path, to, to_node, from, from_node, size);
    VGPU_TRY(check_device_range(*to_context, to, size));
    VGPU_TRY(check_device_range(*from_context, from, size));
    return path.async
               ? path.context->call<Call::cuMemcpyPeerAsync>(to, to_context->id, from, from_context->id, size,
                                                             path.stream)
               : path.context->call<Call::cuMemcpyPeer>(to, to_context->id, from, from_context->id, size);
}

constexpr CopyMode plain{};
constexpr CopyMode plain_per_thread{.null = NullStream::per_thread};
CopyMode on(CUstream stream) {
    return {.stream = stream, .async = true};
}
CopyMode on_per_thread(CUstream stream) {
    return {.stream = stream, .null = NullStream::per_thread, .async = true};
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t n) {
    return host_to_device(to, from, n, plain);
}
VGPU_API cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t n) {
    return host_to_device(to, from, n, plain_per_thread);
}
VGPU_API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t n, CUstream s) {
    return host_to_device(to, from, n, on(s));
}
VGPU_API cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t n, CUstream s) {
    return host_to_device(to, from, n, on_per_thread(s));
}

VGPU_API cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t n) {
    return device_to_host(to, from, n, plain);
}
VGPU_API cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t n) {
    return device_to_host(to, from, n, plain_per_thread);
}
VGPU_API cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t n, CUstream s) {
    return device_to_host(to, from, n, on(s));
}
VGPU_API cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t n, CUstream s) {
    return device_to_host(to, from, n, on_per_thread(s));
}

VGPU_API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
    return device_to_device(to, from, n, plain);
}
VGPU_API cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t n) {
    return device_to_device(to, from, n, plain_per_thread);
}
VGPU_API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
    return device_to_device(to, from, n, on(s));
}
VGPU_API cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
    return device_to_device(to, from, n, on_per_thread(s));
}

VGPU_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) {
    return unified(to, from, n, plain);
}
VGPU_API cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t n) {
    return unified(to, from, n, plain_per_thread);
}
VGPU_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
    return unified(to, from, n, on(s));
}
VGPU_API cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s) {
    return unified(to, from, n, on_per_thread(s));
}

VGPU_API cuMemcpyPeer(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n) {
    return peer(to, to_ctx, from, from_ctx, n, plain);
}
VGPU_API cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n) {
    return peer(to, to_ctx, from, from_ctx, n, plain_per_thread);
}
VGPU_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n,
                           CUstream s) {
    return peer(to, to_ctx, from, from_ctx, n, on(s));
}
VGPU_API cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx,
                                size_t n, CUstream s) {
    return peer(to, to_ctx, from, from_ctx, n, on_per_thread(s));
}
