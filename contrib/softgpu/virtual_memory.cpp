// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management: cuMemAddress*, cuMemCreate, cuMemMap, ...
#include "contrib/softgpu/virtual_memory.h"

#include "contrib/softgpu/call.h"

#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace softgpu {
namespace {

void* as_pointer(std::uint64_t address) {
    return reinterpret_cast<void*>(address);
}

void require_granular(std::uint64_t value) {
    require(value != 0 && value % vmm_granularity == 0);
}

void cover(std::uint64_t base, std::uint64_t size) {
    void* range = ::mmap(as_pointer(base), size, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    require(range != MAP_FAILED, CUDA_ERROR_UNMAP_FAILED);
}

} // namespace

PhysicalMemory::PhysicalMemory(SharedState& shared, std::uint64_t size, const CUmemAllocationProp& properties)
    : shared_(shared), size_(size), properties_(properties) {
    require(shared_.take(size_), CUDA_ERROR_OUT_OF_MEMORY);
    file_ = ::memfd_create("softgpu", MFD_CLOEXEC);
    if (file_ < 0 || ::ftruncate(file_, static_cast<off_t>(size_)) != 0) {
        if (file_ >= 0)
            ::close(file_);
        shared_.give(size_);
        throw Error(CUDA_ERROR_OUT_OF_MEMORY);
    }
}

PhysicalMemory::~PhysicalMemory() {
    ::close(file_);
    try {
        shared_.give(size_);
    } catch (const std::exception& error) {
        complain(std::string("memory that was released may still count: ") + error.what());
    }
}

std::uint64_t VirtualMemory::reserve(std::uint64_t size, std::uint64_t alignment, std::uint64_t hint) {
    require_granular(size);
    require((alignment & (alignment - 1)) == 0);
    alignment = std::max(alignment, vmm_granularity);
    require(size < std::uint64_t{1} << 46 && alignment < std::uint64_t{1} << 46, CUDA_ERROR_OUT_OF_MEMORY);
    void* range = MAP_FAILED;
    if (hint != 0 && hint % alignment == 0)
        range = ::mmap(as_pointer(hint), size, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    auto base = reinterpret_cast<std::uint64_t>(range);
    if (range == MAP_FAILED) {
        range =
            ::mmap(nullptr, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        require(range != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY);
        const auto got = reinterpret_cast<std::uint64_t>(range);
        base = (got + alignment - 1) / alignment * alignment;
        if (base > got)
            ::munmap(range, base - got);
        ::munmap(as_pointer(base + size), got + alignment - base);
    }
    const std::lock_guard guard(mutex_);
    ranges_[base] = size;
    return base;
}

void VirtualMemory::unreserve(std::uint64_t base, std::uint64_t size) {
    const std::lock_guard guard(mutex_);
    const auto found = ranges_.find(base);
    require(found != ranges_.end() && found->second == size);
    const auto mapped = mappings_.lower_bound(base);
    require(mapped == mappings_.end() || mapped->first >= base + size);
    ::munmap(as_pointer(base), size);
    ranges_.erase(found);
}

void VirtualMemory::map(std::uint64_t base, std::uint64_t size, std::shared_ptr<PhysicalMemory> physical) {
    require(physical != nullptr && size == physical->size());
    require_granular(base);
    const std::lock_guard guard(mutex_);
    const auto range = ranges_.upper_bound(base);
    require(range != ranges_.begin());
    const auto& [range_base, range_size] = *std::prev(range);
    require(base - range_base < range_size && size <= range_size - (base - range_base));
    const auto next = mappings_.lower_bound(base);
    require(next == mappings_.end() || next->first >= base + size);
    require(next == mappings_.begin() || std::prev(next)->first + std::prev(next)->second.size <= base);
    void* mapped = ::mmap(as_pointer(base), size, PROT_NONE, MAP_SHARED | MAP_FIXED, physical->file(), 0);
    require(mapped != MAP_FAILED, CUDA_ERROR_MAP_FAILED);
    mappings_[base] = {size, std::move(physical), CU_MEM_ACCESS_FLAGS_PROT_NONE};
}

std::pair<VirtualMemory::Mappings::iterator, VirtualMemory::Mappings::iterator>
VirtualMemory::exactly(std::uint64_t base, std::uint64_t size) {
    const auto first = mappings_.find(base);
    require(size != 0 && first != mappings_.end());
    auto last = first;
    auto end = base;
    while (end < base + size) {
        require(last != mappings_.end() && last->first == end);
        end += last->second.size;
        ++last;
    }
    require(end == base + size);
    return {first, last};
}

VirtualMemory::Mappings::iterator VirtualMemory::at(std::uint64_t address) {
    auto found = mappings_.upper_bound(address);
    require(found != mappings_.begin());
    --found;
    require(address - found->first < found->second.size);
    return found;
}

void VirtualMemory::forget_access(std::uint64_t base, Mapping& mapping) {
    if (mapping.access != CU_MEM_ACCESS_FLAGS_PROT_NONE)
        (void)memory_.remove(base, [](const Allocation& other) { return other.kind == MemoryKind::mapped; });
    mapping.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

void VirtualMemory::unmap(std::uint64_t base, std::uint64_t size) {
    const std::lock_guard guard(mutex_);
    const auto [first, last] = exactly(base, size);
    for (auto i = first; i != last; ++i)
        forget_access(i->first, i->second);
    cover(base, size);
    mappings_.erase(first, last);
}

void VirtualMemory::set_access(std::uint64_t base, std::uint64_t size, CUmemAccess_flags access) {
    const std::lock_guard guard(mutex_);
    const auto [first, last] = exactly(base, size);
    for (auto i = first; i != last; ++i) {
        forget_access(i->first, i->second);
        // Host code fills it through the driver, also where kernels may only read.
        const auto protection = access == CU_MEM_ACCESS_FLAGS_PROT_NONE ? PROT_NONE : PROT_READ | PROT_WRITE;
        require(::mprotect(as_pointer(i->first), i->second.size, protection) == 0,
                CUDA_ERROR_OPERATING_SYSTEM);
        if (access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            continue;
        Allocation range;
        range.base = i->first;
        range.size = i->second.size;
        range.kind = MemoryKind::mapped;
        range.device = i->second.physical->properties().location.id;
        memory_.add(range,
                    access == CU_MEM_ACCESS_FLAGS_PROT_READ ? ptx::kPageReadOnly : ptx::kPageReadWrite);
        i->second.access = access;
    }
}

CUmemAccess_flags VirtualMemory::access(std::uint64_t address) {
    const std::lock_guard guard(mutex_);
    return at(address)->second.access;
}

CUmemGenericAllocationHandle VirtualMemory::retain(std::uint64_t address) {
    const std::lock_guard guard(mutex_);
    const auto& physical = at(address)->second.physical;
    if (physical->references++ == 0)
        Driver::get().physical.add<CUmemGenericAllocationHandle>(physical);
    return physical->handle();
}

void VirtualMemory::release(CUmemGenericAllocationHandle handle) {
    const std::lock_guard guard(mutex_);
    const auto physical = Driver::get().physical.find(as_pointer(handle));
    require(physical != nullptr);
    // Mappings keep it alive.
    if (--physical->references == 0)
        Driver::get().physical.remove(physical.get());
}

} // namespace softgpu

using namespace softgpu;

SOFTGPU_API CUresult cuMemGetAllocationGranularity(std::size_t* granularity,
                                                   const CUmemAllocationProp* properties,
                                                   CUmemAllocationGranularity_flags) {
    return call([&] {
        require(granularity != nullptr && properties != nullptr);
        *granularity = vmm_granularity;
    });
}

SOFTGPU_API CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t size, std::size_t alignment,
                                         CUdeviceptr hint, unsigned long long flags) {
    return call([&] {
        require(pointer != nullptr && flags == 0);
        *pointer = Driver::get().virtual_memory().reserve(size, alignment, hint);
    });
}

SOFTGPU_API CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t size) {
    return call([&] { Driver::get().virtual_memory().unreserve(pointer, size); });
}

SOFTGPU_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                                 const CUmemAllocationProp* properties, unsigned long long flags) {
    return call([&] {
        require(handle != nullptr && properties != nullptr && flags == 0);
        require(properties->type == CU_MEM_ALLOCATION_TYPE_PINNED);
        require(properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                    properties->requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE,
                CUDA_ERROR_NOT_SUPPORTED);
        require_granular(size);
        auto& device = Driver::get().device(properties->location.id);
        auto physical = std::make_shared<PhysicalMemory>(device.shared(), size, *properties);
        *handle = Driver::get().physical.add<CUmemGenericAllocationHandle>(std::move(physical));
    });
}

SOFTGPU_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    return call([&] { Driver::get().virtual_memory().release(handle); });
}

SOFTGPU_API CUresult cuMemMap(CUdeviceptr pointer, std::size_t size, std::size_t offset,
                              CUmemGenericAllocationHandle handle, unsigned long long flags) {
    return call([&] {
        require(offset == 0 && flags == 0);
        auto& driver = Driver::get();
        driver.virtual_memory().map(pointer, size, driver.physical.find(reinterpret_cast<void*>(handle)));
    });
}

SOFTGPU_API CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t size) {
    return call([&] {
        Driver::get().synchronize_all();
        Driver::get().virtual_memory().unmap(pointer, size);
    });
}

SOFTGPU_API CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t size, const CUmemAccessDesc* access,
                                    std::size_t count) {
    return call([&] {
        require(access != nullptr && count != 0);
        // What one device may do, all may.
        auto most = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        for (std::size_t i = 0; i < count; ++i) {
            require(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
            (void)Driver::get().device(access[i].location.id);
            if (access[i].flags > most)
                most = access[i].flags;
        }
        Driver::get().synchronize_all();
        Driver::get().virtual_memory().set_access(pointer, size, most);
    });
}

SOFTGPU_API CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                    CUdeviceptr pointer) {
    return call([&] {
        require(flags != nullptr && location != nullptr && location->type == CU_MEM_LOCATION_TYPE_DEVICE);
        *flags = Driver::get().virtual_memory().access(pointer);
    });
}

SOFTGPU_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    return call([&] {
        require(handle != nullptr);
        *handle = Driver::get().virtual_memory().retain(reinterpret_cast<std::uint64_t>(address));
    });
}

SOFTGPU_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                            CUmemGenericAllocationHandle handle) {
    return call([&] {
        const auto physical = Driver::get().physical.find(reinterpret_cast<void*>(handle));
        require(properties != nullptr && physical != nullptr);
        *properties = physical->properties();
    });
}
