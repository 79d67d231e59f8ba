// SPDX-License-Identifier: BSD-3-Clause
// Linear copies, copies between devices, and copies to and from the program's variables.
#include "ucx_forwarder/client/cudart/copy.h"

#include <cstring>

#include "ucx_forwarder/client/cudart/registry.h"
#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

bool valid_kind(cudaMemcpyKind kind) noexcept {
    return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

CUresult copy_async(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                    CUstream stream) noexcept {
    const Driver& d = driver();
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return d.cuMemcpyHtoDAsync(device_pointer(destination), source, bytes, stream);
    case cudaMemcpyDeviceToHost:
        return d.cuMemcpyDtoHAsync(destination, device_pointer(source), bytes, stream);
    case cudaMemcpyDeviceToDevice:
        return d.cuMemcpyDtoDAsync(device_pointer(destination), device_pointer(source), bytes, stream);
    default:
        return d.cuMemcpyAsync(device_pointer(destination), device_pointer(source), bytes, stream);
    }
}

CUresult copy_blocking(void* destination, const void* source, std::size_t bytes,
                       cudaMemcpyKind kind) noexcept {
    const Driver& d = driver();
    switch (kind) {
    case cudaMemcpyHostToHost:
        std::memmove(destination, source, bytes);
        return CUDA_SUCCESS;
    case cudaMemcpyHostToDevice:
        return d.cuMemcpyHtoD(device_pointer(destination), source, bytes);
    case cudaMemcpyDeviceToHost:
        return d.cuMemcpyDtoH(destination, device_pointer(source), bytes);
    case cudaMemcpyDeviceToDevice:
        return d.cuMemcpyDtoD(device_pointer(destination), device_pointer(source), bytes);
    default:
        return d.cuMemcpy(device_pointer(destination), device_pointer(source), bytes);
    }
}

/// The part [offset, offset + bytes) of a variable on the current device.
cudaError_t symbol_range(const void* symbol, std::size_t offset, std::size_t bytes, void*& address) {
    Variable::Place place;
    if (const cudaError_t error = Registry::instance().find_variable(symbol, place); error != cudaSuccess)
        return error;
    if (offset > place.size || bytes > place.size - offset)
        return cudaErrorInvalidValue;
    address = reinterpret_cast<void*>(place.address + offset);
    return cudaSuccess;
}

cudaError_t copy_to_symbol(const void* symbol, const void* source, std::size_t bytes, std::size_t offset,
                           cudaMemcpyKind kind, CopyOrder order) {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost)
        return cudaErrorInvalidMemcpyDirection;
    void* address = nullptr;
    if (const cudaError_t error = symbol_range(symbol, offset, bytes, address); error != cudaSuccess)
        return error;
    return copy_linear(address, source, bytes, kind, order);
}

cudaError_t copy_from_symbol(void* destination, const void* symbol, std::size_t bytes, std::size_t offset,
                             cudaMemcpyKind kind, CopyOrder order) {
    if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice)
        return cudaErrorInvalidMemcpyDirection;
    void* address = nullptr;
    if (const cudaError_t error = symbol_range(symbol, offset, bytes, address); error != cudaSuccess)
        return error;
    return copy_linear(destination, address, bytes, kind, order);
}

} // namespace

cudaError_t copy_linear(void* destination, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                        CopyOrder order) noexcept {
    if (!valid_kind(kind))
        return cudaErrorInvalidMemcpyDirection;
    if (bytes == 0)
        return cudaSuccess;
    if (!destination || !source)
        return cudaErrorInvalidValue;
    if (order.blocking && !order.stream)
        return to_error(copy_blocking(destination, source, bytes, kind));
    CUresult result = copy_async(destination, source, bytes, kind, order.stream);
    if (result == CUDA_SUCCESS && order.blocking)
        result = driver().cuStreamSynchronize(order.stream);
    return to_error(result);
}

} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT_BOTH(_ptds, cudaMemcpy,
                 (void* destination, const void* source, size_t bytes, cudaMemcpyKind kind), {
                     return in_context([&](const Driver&) {
                         return copy_linear(destination, source, bytes, kind, blocking(per_thread));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpyAsync,
                 (void* destination, const void* source, size_t bytes, cudaMemcpyKind kind,
                  cudaStream_t stream),
                 {
                     return in_context([&](const Driver&) {
                         return copy_linear(destination, source, bytes, kind, ordered(on(stream)));
                     });
                 })

VGPU_EXPORT_BOTH(_ptds, cudaMemcpyToSymbol,
                 (const void* symbol, const void* source, size_t bytes, size_t offset, cudaMemcpyKind kind), {
                     return in_context([&](const Driver&) {
                         return copy_to_symbol(symbol, source, bytes, offset, kind, blocking(per_thread));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpyToSymbolAsync,
                 (const void* symbol, const void* source, size_t bytes, size_t offset, cudaMemcpyKind kind,
                  cudaStream_t stream),
                 {
                     return in_context([&](const Driver&) {
                         return copy_to_symbol(symbol, source, bytes, offset, kind, ordered(on(stream)));
                     });
                 })

VGPU_EXPORT_BOTH(_ptds, cudaMemcpyFromSymbol,
                 (void* destination, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind), {
                     return in_context([&](const Driver&) {
                         return copy_from_symbol(destination, symbol, bytes, offset, kind,
                                                 blocking(per_thread));
                     });
                 })

VGPU_EXPORT_BOTH(_ptsz, cudaMemcpyFromSymbolAsync,
                 (void* destination, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                  cudaStream_t stream),
                 {
                     return in_context([&](const Driver&) {
                         return copy_from_symbol(destination, symbol, bytes, offset, kind,
                                                 ordered(on(stream)));
                     });
                 })

VGPU_EXPORT cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
    if (!address)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver&) { return symbol_range(symbol, 0, 0, *address); });
}

VGPU_EXPORT cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
    if (!size)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver&) {
        Variable::Place place;
        const cudaError_t error = Registry::instance().find_variable(symbol, place);
        if (error == cudaSuccess)
            *size = place.size;
        return error;
    });
}

VGPU_EXPORT cudaError_t cudaMemcpyPeer(void* destination, int to, const void* source, int from,
                                       size_t bytes) {
    return in_context([&](const Driver& d) {
        CUcontext to_context = nullptr;
        CUcontext from_context = nullptr;
        if (const cudaError_t error = primary_context(to, to_context); error != cudaSuccess)
            return error;
        if (const cudaError_t error = primary_context(from, from_context); error != cudaSuccess)
            return error;
        if (bytes == 0)
            return cudaSuccess;
        return to_error(d.cuMemcpyPeer(device_pointer(destination), to_context, device_pointer(source),
                                       from_context, bytes));
    });
}

VGPU_EXPORT cudaError_t cudaMemcpyPeerAsync(void* destination, int to, const void* source, int from,
                                            size_t bytes, cudaStream_t stream) {
    return in_context([&](const Driver& d) {
        CUcontext to_context = nullptr;
        CUcontext from_context = nullptr;
        if (const cudaError_t error = primary_context(to, to_context); error != cudaSuccess)
            return error;
        if (const cudaError_t error = primary_context(from, from_context); error != cudaSuccess)
            return error;
        if (bytes == 0)
            return cudaSuccess;
        return to_error(d.cuMemcpyPeerAsync(device_pointer(destination), to_context, device_pointer(source),
                                            from_context, bytes, stream));
    });
}
