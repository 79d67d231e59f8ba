// SPDX-License-Identifier: BSD-3-Clause
// Copies between the program's memory and the device's.
#include "ucx_forwarder/client/cuda/session.h"

#include <algorithm>
#include <cstring>

namespace vgpu::client {

using protocol::chunk_bytes;
using protocol::CopyShape;

namespace {

/// One side of a CUDA_MEMCPY3D that is host memory: rows of it.
struct HostRows {
    std::byte* base = nullptr; ///< of the copied box
    std::size_t pitch = 0;
    std::size_t slice = 0;

    std::byte* row(std::size_t y, std::size_t z) const { return base + z * slice + y * pitch; }
};

HostRows host_rows(const void* host, std::size_t x, std::size_t y, std::size_t z, std::size_t pitch,
                   std::size_t height, const CUDA_MEMCPY3D& copy) {
    HostRows rows;
    rows.pitch = pitch != 0 ? pitch : copy.WidthInBytes;
    rows.slice = rows.pitch * (height != 0 ? height : copy.Height);
    rows.base = static_cast<std::byte*>(const_cast<void*>(host)) + z * rows.slice + y * rows.pitch + x;
    return rows;
}

/// A part of a copy that fits one record: whole slices, or some rows of one, or a piece of one row.
struct Box {
    std::size_t x = 0, y = 0, z = 0;
    std::size_t width = 0, height = 0, depth = 0;
    std::size_t bytes() const { return width * height * depth; }
};

template <class F>
CUresult for_each_box(std::size_t width, std::size_t height, std::size_t depth, F&& f) {
    const std::size_t columns = std::min(width, chunk_bytes);
    const std::size_t rows = std::clamp<std::size_t>(chunk_bytes / columns, 1, height);
    const std::size_t slices = rows == height && columns == width
                                   ? std::clamp<std::size_t>(chunk_bytes / (columns * rows), 1, depth)
                                   : 1;
    for (std::size_t z = 0; z < depth; z += slices) {
        for (std::size_t y = 0; y < height; y += rows) {
            for (std::size_t x = 0; x < width; x += columns) {
                const CUresult status = f(Box{x, y, z, std::min(columns, width - x),
                                              std::min(rows, height - y), std::min(slices, depth - z)});
                if (status != CUDA_SUCCESS) {
                    return status;
                }
            }
        }
    }
    return CUDA_SUCCESS;
}

/// The rows of the box lie in host memory exactly as they travel.
bool packed(const HostRows& rows, const Box& box) {
    const bool rows_touch = box.height == 1 || rows.pitch == box.width;
    return rows_touch && (box.depth == 1 || rows.slice == box.width * box.height);
}

void pack(const HostRows& from, const Box& box, std::byte* to) {
    for (std::size_t z = 0; z < box.depth; ++z) {
        for (std::size_t y = 0; y < box.height; ++y, to += box.width) {
            std::memcpy(to, from.row(box.y + y, box.z + z) + box.x, box.width);
        }
    }
}

void unpack(const std::byte* from, const Box& box, const HostRows& to) {
    for (std::size_t z = 0; z < box.depth; ++z) {
        for (std::size_t y = 0; y < box.height; ++y, from += box.width) {
            std::memcpy(to.row(box.y + y, box.z + z) + box.x, from, box.width);
        }
    }
}

CopyShape::Memory memory_of(CUmemorytype type) {
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        return CopyShape::Memory::host;
    case CU_MEMORYTYPE_ARRAY:
        return CopyShape::Memory::array;
    default:
        return CopyShape::Memory::device;
    }
}

CopyShape shape_of(const CUDA_MEMCPY3D& copy) {
    CopyShape shape;
    shape.from = {memory_of(copy.srcMemoryType),
                  static_cast<std::uint32_t>(copy.srcLOD),
                  copy.srcXInBytes,
                  copy.srcY,
                  copy.srcZ,
                  copy.srcDevice,
                  {reinterpret_cast<std::uint64_t>(copy.srcArray)},
                  copy.srcPitch,
                  copy.srcHeight};
    shape.to = {memory_of(copy.dstMemoryType),
                static_cast<std::uint32_t>(copy.dstLOD),
                copy.dstXInBytes,
                copy.dstY,
                copy.dstZ,
                copy.dstDevice,
                {reinterpret_cast<std::uint64_t>(copy.dstArray)},
                copy.dstPitch,
                copy.dstHeight};
    for (CopyShape::Side* side : {&shape.from, &shape.to}) {
        // Zero means packed; after the copy is cut into boxes, packed would mean something else.
        if (side->pitch == 0) {
            side->pitch = copy.WidthInBytes;
        }
        if (side->height == 0) {
            side->height = copy.Height;
        }
    }
    return shape;
}

CopyShape cut(const CopyShape& whole, const Box& box) {
    CopyShape part = whole;
    for (CopyShape::Side* side : {&part.from, &part.to}) {
        side->x_bytes += box.x;
        side->y += box.y;
        side->z += box.z;
    }
    part.width_bytes = box.width;
    part.height = box.height;
    part.depth = box.depth;
    return part;
}

} // namespace

CUresult Session::copy_to_device(WireId context, CUdeviceptr to, Bytes from, WireId stream, bool async) {
    CUresult status = CUDA_SUCCESS;
    while (!from.empty() && status == CUDA_SUCCESS) {
        const Bytes part = from.first(std::min(from.size(), chunk_bytes));
        status = async ? call<Call::cuMemcpyHtoDAsync_v2>(context, to, part, stream)
                       : call<Call::cuMemcpyHtoD_v2>(context, to, part);
        from = from.subspan(part.size());
        to += part.size();
    }
    return status;
}

CUresult Session::copy_to_host(WireId context, std::span<std::byte> to, CUdeviceptr from, WireId stream,
                               bool async) {
    if (to.empty()) {
        return CUDA_SUCCESS;
    }
    return async ? call<Call::cuMemcpyDtoHAsync_v2>(context, to, from, stream)
                 : call<Call::cuMemcpyDtoH_v2>(context, to, from);
}

CUresult Session::copy_3d(WireId context, const CUDA_MEMCPY3D& copy, WireId stream, bool async) {
    if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) {
        return CUDA_SUCCESS;
    }
    CopyShape shape = shape_of(copy);
    shape.width_bytes = copy.WidthInBytes;
    shape.height = copy.Height;
    shape.depth = copy.Depth;
    shape.async = async;
    const bool from_host = shape.from.memory == CopyShape::Memory::host;
    const bool to_host = shape.to.memory == CopyShape::Memory::host;
    const HostRows source =
        host_rows(copy.srcHost, copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight, copy);
    const HostRows target =
        host_rows(copy.dstHost, copy.dstXInBytes, copy.dstY, copy.dstZ, copy.dstPitch, copy.dstHeight, copy);
    if (from_host && to_host) {
        for (std::size_t z = 0; z < copy.Depth; ++z) {
            for (std::size_t y = 0; y < copy.Height; ++y) {
                std::memmove(target.row(y, z), source.row(y, z), copy.WidthInBytes);
            }
        }
        return CUDA_SUCCESS;
    }
    if (!from_host && !to_host) {
        return call<Call::copy_3d_on_device>(context, &shape, stream);
    }
    std::vector<std::byte> rows;
    return for_each_box(copy.WidthInBytes, copy.Height, copy.Depth, [&](const Box& box) {
        const CopyShape part = cut(shape, box);
        const HostRows& host = from_host ? source : target;
        std::span<std::byte> bytes(host.row(box.y, box.z) + box.x, box.bytes());
        const bool in_place = packed(host, box);
        if (!in_place) {
            rows.resize(box.bytes());
            bytes = rows;
        }
        if (from_host) {
            if (!in_place) {
                pack(host, box, rows.data());
            }
            return call<Call::copy_3d_to_device>(context, &part, stream, Bytes(bytes));
        }
        const CUresult status = call<Call::copy_3d_to_host>(context, &part, stream, bytes);
        if (status == CUDA_SUCCESS && !in_place) {
            unpack(rows.data(), box, host);
        }
        return status;
    });
}

} // namespace vgpu::client
