// SPDX-License-Identifier: BSD-3-Clause
// Device memory. Allocations are asked of the worker, which holds the lease's limit; what they are is known
// here.
#include "ucx_forwarder/client/cuda/client.h"

namespace vgpu::client {

CUresult remember(const Context& context, Range range) {
    range.context = context.handle;
    range.device = context.device->ordinal;
    if (!context.memory().insert(range)) {
        // An address is given out twice only after a free that this process did not see: the driver is right.
        while (auto old = context.memory().find_overlap(range.base, range.size))
            context.memory().take(old->base, [](const Range&) { return true; });
        context.memory().insert(range);
    }
    client().reservation.cover(range.base, range.size);
    return CUDA_SUCCESS;
}

CUresult check_device_range(const Context& context, CUdeviceptr pointer, std::size_t size) {
    auto range = context.memory().find(pointer);
    if (!range) {
        if (pointer == 0)
            return CUDA_ERROR_INVALID_VALUE;
        // The address of a variable that the program got from a kernel, or nothing at all: the driver knows.
        CUdeviceptr base = 0;
        std::size_t length = 0;
        if (CUresult r = context.call<Call::cuMemGetAddressRange_v2>(&base, &length, pointer);
            r != CUDA_SUCCESS)
            return r == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE : r;
        range = Range{.base = base, .size = length, .origin = Range::Origin::symbol};
        VGPU_TRY(remember(context, *range));
    }
    return size <= range->size && pointer - range->base <= range->size - size ? CUDA_SUCCESS
                                                                              : CUDA_ERROR_INVALID_VALUE;
}

std::optional<Range> find_range(std::uint64_t address) {
    Context* context;
    Node* first = current(context) == CUDA_SUCCESS ? context->device->node : nullptr;
    if (first)
        if (auto range = first->memory.find(address))
            return range;
    if (auto range = client().host_memory.find(address))
        return range;
    for (Node& node : client().nodes())
        if (&node != first)
            if (auto range = node.memory.find(address))
                return range;
    return {};
}

namespace {

CUresult allocate_pitch(CUdeviceptr* result, std::size_t* pitch, std::size_t width, std::size_t height,
                        unsigned element) {
    Context* context;
    VGPU_TRY(current(context));
    if (!result || !pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr pointer = 0;
    std::size_t row = 0;
    VGPU_TRY(context->call<Call::cuMemAllocPitch_v2>(&pointer, &row, width, height, element));
    VGPU_TRY(remember(*context, {.base = pointer, .size = row * height}));
    *result = pointer;
    *pitch = row;
    return CUDA_SUCCESS;
}

/// The allocation that begins here, taken out of the map, and the context to free it in.
CUresult take_allocation(CUdeviceptr pointer, Range& range, Context*& context) {
    VGPU_TRY(current(context));
    auto is_allocation = [](const Range& r) {
        return r.origin == Range::Origin::device || r.origin == Range::Origin::pool;
    };
    std::optional<Range> taken = context->memory().take(pointer, is_allocation);
    for (Node& node : client().nodes())
        if (!taken && &node != context->device->node)
            taken = node.memory.take(pointer, is_allocation);
    if (!taken)
        return CUDA_ERROR_INVALID_VALUE;
    range = *taken;
    return range.context == context->handle ? CUDA_SUCCESS : context_of(range.context, context);
}

CUresult allocate_async(CUdeviceptr* result, std::size_t size, CUmemoryPool pool, CUstream stream,
                        NullStream null) {
    Context* context;
    WireId id;
    VGPU_TRY(current_stream(stream, null, context, id));
    if (!result || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr pointer = 0;
    if (pool) {
        MemoryPool* found = client().pools.find(pool);
        if (!found)
            return CUDA_ERROR_INVALID_VALUE;
        VGPU_TRY(context->call<Call::cuMemAllocFromPoolAsync>(&pointer, size, found->id, id));
    } else {
        VGPU_TRY(context->call<Call::cuMemAllocAsync>(&pointer, size, id));
    }
    VGPU_TRY(
        remember(*context, {.base = pointer, .size = size, .origin = Range::Origin::pool, .pool = pool}));
    *result = pointer;
    return CUDA_SUCCESS;
}

CUresult free_async(CUdeviceptr pointer, CUstream stream, NullStream null) {
    Context* context;
    WireId id;
    VGPU_TRY(current_stream(stream, null, context, id));
    Range range;
    Context* owner;
    VGPU_TRY(take_allocation(pointer, range, owner));
    return context->call<Call::cuMemFreeAsync>(pointer, id);
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuMemGetInfo_v2(size_t* free, size_t* total) {
    Context* context;
    VGPU_TRY(current(context));
    if (!free || !total)
        return CUDA_ERROR_INVALID_VALUE;
    return context->call<Call::cuMemGetInfo_v2>(free, total);
}

VGPU_API cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
    Context* context;
    VGPU_TRY(current(context));
    if (!dptr || bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr pointer = 0;
    VGPU_TRY(context->call<Call::cuMemAlloc_v2>(&pointer, bytesize));
    VGPU_TRY(remember(*context, {.base = pointer, .size = bytesize}));
    *dptr = pointer;
    return CUDA_SUCCESS;
}

VGPU_API cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
    return allocate_pitch(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
}

VGPU_API cuMemFree_v2(CUdeviceptr dptr) {
    Context* context;
    VGPU_TRY(current(context));
    if (dptr == 0)
        return CUDA_SUCCESS;
    Range range;
    VGPU_TRY(take_allocation(dptr, range, context));
    return context->call<Call::cuMemFree_v2>(dptr);
}

VGPU_API cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
    return allocate_async(dptr, bytesize, nullptr, hStream, NullStream::legacy);
}
VGPU_API cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
    return allocate_async(dptr, bytesize, nullptr, hStream, NullStream::per_thread);
}
VGPU_API cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    return pool ? allocate_async(dptr, bytesize, pool, hStream, NullStream::legacy)
                : CUDA_ERROR_INVALID_VALUE;
}
VGPU_API cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                      CUstream hStream) {
    return pool ? allocate_async(dptr, bytesize, pool, hStream, NullStream::per_thread)
                : CUDA_ERROR_INVALID_VALUE;
}
VGPU_API cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    return free_async(dptr, hStream, NullStream::legacy);
}
VGPU_API cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
    return free_async(dptr, hStream, NullStream::per_thread);
}

VGPU_API cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
    Context* context;
    VGPU_TRY(current(context));
    auto range = find_range(dptr);
    if (!range || range->on_host()) {
        CUresult result = check_device_range(*context, dptr, 1);
        if (result != CUDA_SUCCESS)
            return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_NOT_FOUND : result;
        range = find_range(dptr);
        if (!range)
            return CUDA_ERROR_NOT_FOUND;
    }
    if (pbase)
        *pbase = range->base;
    if (psize)
        *psize = range->size;
    return CUDA_SUCCESS;
}
