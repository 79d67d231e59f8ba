// SPDX-License-Identifier: BSD-3-Clause
// Allocation: cuMemAlloc*, cuMemFree*, cuMemHost*, cuMemGetInfo, cuMemGetAddressRange.
#include "contrib/softgpu/call.h"
#include "contrib/softgpu/memory_pool.h"

#include <limits>

using namespace softgpu;

namespace {

constexpr std::size_t pitch_alignment = 512;

Allocation wanted_by(const Context& context, std::size_t bytes, MemoryKind kind, unsigned flags = 0) {
    Allocation wanted;
    wanted.size = bytes;
    wanted.kind = kind;
    wanted.device = context.device().index();
    wanted.context = context.id();
    wanted.flags = flags;
    return wanted;
}

CUresult allocate_host(void** pointer, std::size_t bytes, unsigned flags) {
    return context_call([&](Context& context) {
        constexpr unsigned known =
            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
        require(pointer != nullptr && (flags & ~known) == 0);
        const auto wanted = wanted_by(context, bytes, MemoryKind::host, flags);
        *pointer = reinterpret_cast<void*>(Driver::get().memory().allocate_host(wanted));
    });
}

CUresult register_host(void* pointer, std::size_t bytes, unsigned flags) {
    return context_call([&](Context& context) {
        constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                   CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
        require(pointer != nullptr && bytes != 0 && (flags & ~known) == 0);
        auto range = wanted_by(context, bytes, MemoryKind::registered, flags);
        range.base = reinterpret_cast<std::uint64_t>(pointer);
        require(range.end() > range.base);
        require(is_mapped(range.base, range.size));
        Driver::get().memory().add(range);
    });
}

CUresult device_pointer(CUdeviceptr* pointer, void* host, unsigned flags) {
    return context_call([&](Context&) {
        require(pointer != nullptr && host != nullptr && flags == 0);
        const auto address = reinterpret_cast<std::uint64_t>(host);
        const auto found = Driver::get().memory().find(address);
        require(found.has_value() && found->on_host());
        *pointer = address;
    });
}

} // namespace

SOFTGPU_API CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
    return context_call([&](Context& context) {
        require(free != nullptr && total != nullptr);
        *free = context.device().shared().free();
        *total = context.device().shared().total();
    });
}

SOFTGPU_API CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
    return context_call([&](Context& context) {
        require(pointer != nullptr);
        *pointer = Driver::get().memory().allocate(wanted_by(context, bytes, MemoryKind::device));
    });
}

SOFTGPU_API CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width,
                                        std::size_t height, unsigned int element_size) {
    return context_call([&](Context& context) {
        require(pointer != nullptr && pitch != nullptr && width != 0 && height != 0);
        require(element_size == 4 || element_size == 8 || element_size == 16);
        require(width < std::size_t{1} << 31);
        const auto row = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
        require(height <= std::numeric_limits<std::size_t>::max() / row);
        *pointer = Driver::get().memory().allocate(wanted_by(context, row * height, MemoryKind::device));
        *pitch = row;
    });
}

SOFTGPU_API CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned int flags) {
    return context_call([&](Context& context) {
        require(pointer != nullptr && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
        *pointer = Driver::get().memory().allocate(wanted_by(context, bytes, MemoryKind::managed, flags));
    });
}

SOFTGPU_API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    return context_call([&](Context&) {
        if (pointer == 0)
            return;
        auto& driver = Driver::get();
        const auto found = driver.memory().find(pointer);
        const auto freeable = [](const Allocation& allocation) {
            return allocation.kind == MemoryKind::device || allocation.kind == MemoryKind::managed;
        };
        require(found.has_value() && found->base == pointer && freeable(*found));
        // Kernels may still use it: the driver waits for them here.
        driver.synchronize_all();
        require(driver.memory().remove(pointer, freeable));
        if (found->pool != nullptr)
            if (const auto pool = driver.pools.find(found->pool))
                pool->gave(page_ceil(found->size));
    });
}

SOFTGPU_API CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size, CUdeviceptr pointer) {
    return context_call([&](Context&) {
        const auto found = Driver::get().memory().find(pointer);
        require(found.has_value(), CUDA_ERROR_NOT_FOUND);
        if (base != nullptr)
            *base = found->base;
        if (size != nullptr)
            *size = found->size;
    });
}

// ---- host memory ----

SOFTGPU_API CUresult cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned int flags) {
    return allocate_host(pointer, bytes, flags);
}
SOFTGPU_API CUresult cuMemAllocHost(void** pointer, unsigned int bytes) {
    return allocate_host(pointer, bytes, 0);
}
SOFTGPU_API CUresult cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
    return allocate_host(pointer, bytes, 0);
}

SOFTGPU_API CUresult cuMemFreeHost(void* pointer) {
    return context_call([&](Context&) {
        if (pointer == nullptr)
            return;
        auto& driver = Driver::get();
        const auto address = reinterpret_cast<std::uint64_t>(pointer);
        const auto pinned = [](const Allocation& allocation) { return allocation.kind == MemoryKind::host; };
        const auto found = driver.memory().find(address);
        require(found.has_value() && found->base == address && pinned(*found));
        driver.synchronize_all();
        require(driver.memory().remove(address, pinned));
    });
}

SOFTGPU_API CUresult cuMemHostRegister(void* pointer, std::size_t bytes, unsigned int flags) {
    return register_host(pointer, bytes, flags);
}
SOFTGPU_API CUresult cuMemHostRegister_v2(void* pointer, std::size_t bytes, unsigned int flags) {
    return register_host(pointer, bytes, flags);
}

SOFTGPU_API CUresult cuMemHostUnregister(void* pointer) {
    return context_call([&](Context&) {
        require(pointer != nullptr);
        auto& driver = Driver::get();
        driver.synchronize_all();
        require(driver.memory().remove(
                    reinterpret_cast<std::uint64_t>(pointer),
                    [](const Allocation& allocation) { return allocation.kind == MemoryKind::registered; }),
                CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    });
}

SOFTGPU_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pointer, void* host, unsigned int flags) {
    return device_pointer(pointer, host, flags);
}

SOFTGPU_API CUresult cuMemHostGetFlags(unsigned int* flags, void* pointer) {
    return context_call([&](Context&) {
        require(flags != nullptr);
        const auto found = Driver::get().memory().find(reinterpret_cast<std::uint64_t>(pointer));
        require(found.has_value() && found->kind == MemoryKind::host);
        *flags = found->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    });
}
