// SPDX-License-Identifier: BSD-3-Clause
// CUDA arrays: cudaArray_t is the driver's CUarray.
#include "ucx_forwarder/client/cudart/array.h"

#include "ucx_forwarder/client/cudart/runtime.h"

namespace vgpu::cudart {
namespace {

struct Format {
    CUarray_format format;
    cudaChannelFormatKind kind;
    int bits;
};
constexpr Format kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, cudaChannelFormatKindUnsigned, 8},
    {CU_AD_FORMAT_UNSIGNED_INT16, cudaChannelFormatKindUnsigned, 16},
    {CU_AD_FORMAT_UNSIGNED_INT32, cudaChannelFormatKindUnsigned, 32},
    {CU_AD_FORMAT_SIGNED_INT8, cudaChannelFormatKindSigned, 8},
    {CU_AD_FORMAT_SIGNED_INT16, cudaChannelFormatKindSigned, 16},
    {CU_AD_FORMAT_SIGNED_INT32, cudaChannelFormatKindSigned, 32},
    {CU_AD_FORMAT_HALF, cudaChannelFormatKindFloat, 16},
    {CU_AD_FORMAT_FLOAT, cudaChannelFormatKindFloat, 32},
};

cudaChannelFormatDesc to_channels(CUarray_format format, unsigned count) noexcept {
    for (const Format& known : kFormats)
        if (known.format == format)
            return {known.bits, count > 1 ? known.bits : 0, count > 2 ? known.bits : 0,
                    count > 3 ? known.bits : 0, known.kind};
    return {0, 0, 0, 0, cudaChannelFormatKindNone};
}

cudaError_t describe(const cudaChannelFormatDesc& channels, const cudaExtent& extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR& out) noexcept {
    out = {};
    if (!to_array_format(channels, out.Format, out.NumChannels))
        return cudaErrorInvalidChannelDescriptor;
    out.Width = extent.width;
    out.Height = extent.height;
    out.Depth = extent.depth;
    // cudaArrayLayered, SurfaceLoadStore, Cubemap, TextureGather are the driver's bits.
    out.Flags = flags;
    return cudaSuccess;
}

cudaError_t read(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR& out) noexcept {
    if (!array)
        return cudaErrorInvalidResourceHandle;
    return to_error(
        driver().cuArray3DGetDescriptor(&out, reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array))));
}

} // namespace

bool to_array_format(const cudaChannelFormatDesc& channels, CUarray_format& format,
                     unsigned& count) noexcept {
    const int bits[] = {channels.x, channels.y, channels.z, channels.w};
    count = 0;
    while (count < 4 && bits[count] != 0)
        ++count;
    if (count == 0 || count == 3)
        return false;
    for (unsigned i = 0; i < 4; ++i)
        if (bits[i] != (i < count ? channels.x : 0))
            return false;
    for (const Format& known : kFormats)
        if (known.kind == channels.f && known.bits == channels.x) {
            format = known.format;
            return true;
        }
    return false;
}

cudaError_t array_element_size(cudaArray_const_t array, std::size_t& bytes) noexcept {
    CUDA_ARRAY3D_DESCRIPTOR found{};
    if (const cudaError_t error = read(array, found); error != cudaSuccess)
        return error;
    bytes = static_cast<std::size_t>(to_channels(found.Format, 1).x) / 8 * found.NumChannels;
    return bytes ? cudaSuccess : cudaErrorNotSupported;
}

} // namespace vgpu::cudart

using namespace vgpu::cudart;

VGPU_EXPORT cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                        cudaChannelFormatKind kind) {
    return {x, y, z, w, kind};
}

VGPU_EXPORT cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channels,
                                          cudaExtent extent, unsigned int flags) {
    if (!array || !channels)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUDA_ARRAY3D_DESCRIPTOR wanted;
        if (const cudaError_t error = describe(*channels, extent, flags, wanted); error != cudaSuccess)
            return error;
        return to_error(d.cuArray3DCreate(reinterpret_cast<CUarray*>(array), &wanted));
    });
}

VGPU_EXPORT cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channels,
                                        size_t width, size_t height, unsigned int flags) {
    return cudaMalloc3DArray(array, channels, {width, height, 0}, flags);
}

VGPU_EXPORT cudaError_t cudaFreeArray(cudaArray_t array) {
    return in_context([&](const Driver& d) {
        return array ? d.cuArrayDestroy(reinterpret_cast<CUarray>(array)) : CUDA_SUCCESS;
    });
}

VGPU_EXPORT cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* channels, cudaExtent* extent,
                                         unsigned int* flags, cudaArray_t array) {
    return in_context([&](const Driver&) {
        CUDA_ARRAY3D_DESCRIPTOR found{};
        if (const cudaError_t error = read(array, found); error != cudaSuccess)
            return error;
        if (channels)
            *channels = to_channels(found.Format, found.NumChannels);
        if (extent)
            *extent = {found.Width, found.Height, found.Depth};
        if (flags)
            *flags = found.Flags;
        return cudaSuccess;
    });
}

VGPU_EXPORT cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* channels, cudaArray_const_t array) {
    if (!channels)
        return record(cudaErrorInvalidValue);
    return cudaArrayGetInfo(channels, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

VGPU_EXPORT cudaError_t cudaArrayGetPlane(cudaArray_t* plane, cudaArray_t array, unsigned int index) {
    if (!plane)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return d.cuArrayGetPlane(reinterpret_cast<CUarray*>(plane), reinterpret_cast<CUarray>(array), index);
    });
}

VGPU_EXPORT cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                                 const cudaChannelFormatDesc* channels, cudaExtent extent,
                                                 unsigned int levels, unsigned int flags) {
    if (!array || !channels)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        CUDA_ARRAY3D_DESCRIPTOR wanted;
        if (const cudaError_t error = describe(*channels, extent, flags, wanted); error != cudaSuccess)
            return error;
        return to_error(
            d.cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(array), &wanted, levels));
    });
}

VGPU_EXPORT cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
    return in_context([&](const Driver& d) {
        return array ? d.cuMipmappedArrayDestroy(reinterpret_cast<CUmipmappedArray>(array)) : CUDA_SUCCESS;
    });
}

VGPU_EXPORT cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level, cudaMipmappedArray_const_t array,
                                                   unsigned int index) {
    if (!level)
        return record(cudaErrorInvalidValue);
    return in_context([&](const Driver& d) {
        return d.cuMipmappedArrayGetLevel(
            reinterpret_cast<CUarray*>(level),
            reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array)), index);
    });
}
