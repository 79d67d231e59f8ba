// SPDX-License-Identifier: BSD-3-Clause
// Page-locked host memory. It lies in this process only: a GPU on another machine reads and writes it by
// copies, never directly. What is gained by it stays: copies need no staging, and a pointer is known to be
// the host's.
#include "ucx_forwarder/client/cuda/client.h"

#include <sys/mman.h>
#include <unistd.h>

namespace vgpu::client {
namespace {

CUresult allocate(void** result, std::size_t size, unsigned flags) {
    Context* context;
    VGPU_TRY(current(context));
    constexpr unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!result || size == 0 || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    client().host_memory.insert({.base = reinterpret_cast<std::uint64_t>(memory),
                                 .size = size,
                                 .origin = Range::Origin::host_alloc,
                                 .device = context->device->ordinal,
                                 .flags = flags,
                                 .context = context->handle});
    *result = memory;
    return CUDA_SUCCESS;
}

CUresult register_memory(void* memory, std::size_t size, unsigned flags) {
    Context* context;
    VGPU_TRY(current(context));
    constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                               CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if (!memory || size == 0 || flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & (CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY))
        return CUDA_ERROR_NOT_SUPPORTED;
    // mincore fails where nothing is mapped; the ends stand for the whole.
    const auto page = std::uint64_t(sysconf(_SC_PAGESIZE));
    const auto base = reinterpret_cast<std::uint64_t>(memory);
    for (std::uint64_t address : {base, base + size - 1}) {
        unsigned char resident;
        if (mincore(reinterpret_cast<void*>(address & ~(page - 1)), 1, &resident) != 0)
            return CUDA_ERROR_INVALID_VALUE;
    }
    bool fresh = client().host_memory.insert({.base = base,
                                              .size = size,
                                              .origin = Range::Origin::host_registered,
                                              .device = context->device->ordinal,
                                              .flags = flags,
                                              .context = context->handle});
    return fresh ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

void unmap(const Range& range) {
    if (range.origin == Range::Origin::host_alloc)
        munmap(reinterpret_cast<void*>(range.base), range.size);
}

} // namespace

void free_host_memory(CUcontext context) {
    for (const Range& range : client().host_memory.take_context(context))
        unmap(range);
}

} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuMemAllocHost_v2(void** pp, size_t bytesize) {
    return allocate(pp, bytesize, 0);
}
VGPU_API cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
    return allocate(pp, bytesize, Flags);
}

VGPU_API cuMemFreeHost(void* p) {
    VGPU_TRY(client().ready());
    auto range = client().host_memory.take(reinterpret_cast<std::uint64_t>(p), [](const Range& r) {
        return r.origin == Range::Origin::host_alloc;
    });
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    unmap(*range);
    return CUDA_SUCCESS;
}

VGPU_API cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) {
    return register_memory(p, bytesize, Flags);
}
VGPU_API cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
    return register_memory(p, bytesize, Flags);
}

VGPU_API cuMemHostUnregister(void* p) {
    VGPU_TRY(client().ready());
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    auto range = client().host_memory.take(reinterpret_cast<std::uint64_t>(p), [](const Range& r) {
        return r.origin == Range::Origin::host_registered;
    });
    return range ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

VGPU_API cuMemHostGetFlags(unsigned int* pFlags, void* p) {
    VGPU_TRY(client().ready());
    if (!pFlags)
        return CUDA_ERROR_INVALID_VALUE;
    auto range = client().host_memory.find(reinterpret_cast<std::uint64_t>(p));
    if (!range)
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = range->flags;
    return CUDA_SUCCESS;
}

// There is no address under which a GPU of another machine sees this memory.
VGPU_API cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
    Context* context;
    VGPU_TRY(current(context));
    if (!pdptr || Flags != 0 || !client().host_memory.find(reinterpret_cast<std::uint64_t>(p)))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED;
}
