// SPDX-License-Identifier: BSD-3-Clause
// Allocations: charged to the lease before the driver is asked, given back when they are freed.
#include "ucx_forwarder/worker/executor.h"

#include <algorithm>
#include <limits>

namespace vgpu::worker {

namespace {

constexpr std::uint64_t too_large = std::numeric_limits<std::uint64_t>::max();

/// a * b, or too_large.
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? too_large : product;
}

std::uint64_t bytes_of(CUarray_format format) {
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0; // block-compressed and video formats
    }
}

} // namespace

template <>
CUresult Executor::special<Call::cuMemGetInfo_v2>(const Record& record,
                                                  Arguments<Call::cuMemGetInfo_v2>& arguments) {
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    auto& [free, total] = arguments;
    const int vgpu = record.context->vgpu;
    total.value = ledger_.limit(vgpu);
    free.value = total.value - std::min<std::uint64_t>(total.value, ledger_.used(vgpu));
    return CUDA_SUCCESS;
}

template <>
CUresult Executor::special<Call::cuMemAlloc_v2>(const Record& record,
                                                Arguments<Call::cuMemAlloc_v2>& arguments) {
    auto& [address, bytes] = arguments;
    return allocate(record, bytes.value, address.value,
                    [&] { return driver_->cuMemAlloc_v2(&address.value, bytes.value); });
}

template <>
CUresult Executor::special<Call::cuMemAllocPitch_v2>(const Record& record,
                                                     Arguments<Call::cuMemAllocPitch_v2>& arguments) {
    auto& [address, pitch, width, height, element] = arguments;
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    // The driver chooses the pitch, so what it will take is known only afterwards: ask for the packed size
    // first, then for the rest.
    const int vgpu = record.context->vgpu;
    const std::uint64_t packed = times(width.value, height.value);
    if (packed == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (packed == too_large || !ledger_.take(vgpu, packed)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const CUresult status =
        driver_->cuMemAllocPitch_v2(&address.value, &pitch.value, width.value, height.value, element.value);
    if (status != CUDA_SUCCESS) {
        ledger_.give(vgpu, packed);
        return status;
    }
    const std::uint64_t bytes = times(pitch.value, height.value);
    if (bytes > packed && !ledger_.take(vgpu, bytes - packed)) {
        (void)driver_->cuMemFree_v2(address.value);
        ledger_.give(vgpu, packed);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ledger_.remember({Ledger::Key::Kind::pointer, address.value}, record.caller.context.value, vgpu, bytes);
    return CUDA_SUCCESS;
}

template <>
CUresult Executor::special<Call::cuMemFree_v2>(const Record&, Arguments<Call::cuMemFree_v2>& arguments) {
    const CUdeviceptr address = std::get<0>(arguments).value;
    const CUresult status = driver_->cuMemFree_v2(address);
    if (status == CUDA_SUCCESS) {
        ledger_.forget({Ledger::Key::Kind::pointer, address});
    }
    return status;
}

template <>
CUresult Executor::special<Call::cuMemAllocAsync>(const Record& record,
                                                  Arguments<Call::cuMemAllocAsync>& arguments) {
    auto& [address, bytes, stream] = arguments;
    return allocate(record, bytes.value, address.value,
                    [&] { return driver_->cuMemAllocAsync(&address.value, bytes.value, stream.value); });
}

template <>
CUresult
Executor::special<Call::cuMemAllocFromPoolAsync>(const Record& record,
                                                 Arguments<Call::cuMemAllocFromPoolAsync>& arguments) {
    auto& [address, bytes, pool, stream] = arguments;
    return allocate(record, bytes.value, address.value, [&] {
        return driver_->cuMemAllocFromPoolAsync(&address.value, bytes.value, pool.value, stream.value);
    });
}

template <>
CUresult Executor::special<Call::cuMemFreeAsync>(const Record&, Arguments<Call::cuMemFreeAsync>& arguments) {
    auto& [address, stream] = arguments;
    const CUresult status = driver_->cuMemFreeAsync(address.value, stream.value);
    if (status == CUDA_SUCCESS) {
        // The program may count on the bytes in stream order, before the stream has come here.
        ledger_.forget({Ledger::Key::Kind::pointer, address.value});
    }
    return status;
}

template <>
CUresult Executor::special<Call::cuMemPoolCreate>(const Record&,
                                                  Arguments<Call::cuMemPoolCreate>& arguments) {
    auto& [pool, properties] = arguments;
    CUmemPoolProps wanted = properties.value;
    const int device = wanted.location.id;
    if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        wanted.handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    wanted.location.id = devices_[static_cast<std::size_t>(device)];
    wanted.win32SecurityAttributes = nullptr;
    return driver_->cuMemPoolCreate(&pool.value, &wanted);
}

template <>
CUresult Executor::special<Call::cuMemPoolSetAttribute>(const Record&,
                                                        Arguments<Call::cuMemPoolSetAttribute>& arguments) {
    auto& [pool, attribute, value] = arguments;
    // The value is an int or a 64-bit number, depending on the attribute; little-endian, one buffer serves
    // both.
    return driver_->cuMemPoolSetAttribute(pool.value, attribute.value, &value.value);
}

template <>
CUresult Executor::special<Call::cuMemPoolGetAttribute>(const Record&,
                                                        Arguments<Call::cuMemPoolGetAttribute>& arguments) {
    auto& [pool, attribute, value] = arguments;
    return driver_->cuMemPoolGetAttribute(pool.value, attribute.value, &value.value);
}

template <class H, class F>
CUresult Executor::create_array(const Record& record, std::uint64_t bytes, Argument<protocol::New<H>>& array,
                                F&& create) {
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (bytes == 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const int vgpu = record.context->vgpu;
    if (bytes == too_large || !ledger_.take(vgpu, bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const CUresult status = create();
    if (status != CUDA_SUCCESS) {
        ledger_.give(vgpu, bytes);
        return status;
    }
    ledger_.remember({Ledger::Key::Kind::array, array.id.value}, record.caller.context.value, vgpu, bytes);
    return CUDA_SUCCESS;
}

template <>
CUresult Executor::special<Call::cuArrayCreate_v2>(const Record& record,
                                                   Arguments<Call::cuArrayCreate_v2>& arguments) {
    auto& [array, descriptor] = arguments;
    const CUDA_ARRAY_DESCRIPTOR& d = descriptor.value;
    const std::uint64_t texels = times(d.Width, std::max<std::uint64_t>(d.Height, 1));
    const std::uint64_t bytes = times(texels, bytes_of(d.Format) * d.NumChannels);
    return create_array(record, bytes, array, [&] { return driver_->cuArrayCreate_v2(&array.value, &d); });
}

template <>
CUresult Executor::special<Call::cuArray3DCreate_v2>(const Record& record,
                                                     Arguments<Call::cuArray3DCreate_v2>& arguments) {
    auto& [array, descriptor] = arguments;
    const CUDA_ARRAY3D_DESCRIPTOR& d = descriptor.value;
    const std::uint64_t texels =
        times(times(d.Width, std::max<std::uint64_t>(d.Height, 1)), std::max<std::uint64_t>(d.Depth, 1));
    const std::uint64_t bytes = times(texels, bytes_of(d.Format) * d.NumChannels);
    return create_array(record, bytes, array, [&] { return driver_->cuArray3DCreate_v2(&array.value, &d); });
}

template <>
CUresult Executor::special<Call::cuArrayDestroy>(const Record&, Arguments<Call::cuArrayDestroy>& arguments) {
    auto& [array] = arguments;
    const CUresult status = driver_->cuArrayDestroy(array.value);
    if (status == CUDA_SUCCESS) {
        ledger_.forget({Ledger::Key::Kind::array, array.id.value});
    }
    return status;
}

} // namespace vgpu::worker
