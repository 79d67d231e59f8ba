// SPDX-License-Identifier: BSD-3-Clause
// Copies between the client's memory and the device's.
#include "ucx_forwarder/worker/executor.h"

#include <algorithm>
#include <condition_variable>

namespace vgpu::worker {

using protocol::chunk_bytes;
using protocol::CopyShape;
using protocol::ReplyHeader;

namespace {

/// Copies up to this are done by the executing thread when the device is idle.
constexpr std::uint64_t short_copy = 1U << 20;
/// Buffers of one copy to the host that are on their way to the client at the same time.
constexpr int buffers_in_flight = 3;

/// Counts a copy's buffers that the transport still reads. Shared with it: it may let go after us.
struct InFlight {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
};

/// width * height * depth; false: more than a chunk, or nothing.
bool chunk_size(const CopyShape& shape, std::uint64_t& size) {
    std::uint64_t area = 0;
    return !__builtin_mul_overflow(shape.width_bytes, shape.height, &area) &&
           !__builtin_mul_overflow(area, shape.depth, &size) && size > 0 && size <= chunk_bytes;
}

} // namespace

CUresult Executor::copy_to_host(const Record& record, std::uint64_t size, std::function<CUresult()> ready,
                                std::function<CUresult(std::byte*, std::uint64_t, std::size_t)> copy) {
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const Caller caller = record.caller;
    if (size <= chunk_bytes) {
        // One piece: the data are the body of the reply.
        const auto whole = [this, caller, size, copy = std::move(copy)] {
            const std::shared_ptr<std::byte[]> buffer(new std::byte[size]);
            CUresult status = copy(buffer.get(), 0, size);
            const bool copied = status == CUDA_SUCCESS;
            send_output();
            if (!copied) {
                reply(caller, status);
                return;
            }
            ReplyHeader header;
            header.slot = caller.slot;
            header.status = take_deferred(caller.context);
            header.consumed = consumed_.load();
            connection_.send(std::as_bytes(std::span(&header, 1)), Bytes(buffer.get(), size),
                             transport::Body::borrow, [buffer] {});
        };
        if (size <= short_copy && soon(ready)) {
            whole();
            return replies_later;
        }
        waiters_.run([this, whole, context = record.context->handle, caller] {
            if (const CUresult status = driver_->cuCtxSetCurrent(context); status != CUDA_SUCCESS) {
                reply(caller, status);
            } else {
                whole();
            }
        });
        return replies_later;
    }
    return wait_elsewhere(record, [this, caller, size, copy = std::move(copy)] {
        const auto flight = std::make_shared<InFlight>();
        for (std::uint64_t offset = 0; offset < size; offset += chunk_bytes) {
            const std::size_t part = std::min<std::uint64_t>(chunk_bytes, size - offset);
            {
                std::unique_lock lock(flight->mutex);
                flight->changed.wait(lock, [&] { return flight->count < buffers_in_flight; });
                ++flight->count;
            }
            std::shared_ptr<std::byte[]> buffer(new std::byte[part]);
            if (const CUresult status = copy(buffer.get(), offset, part); status != CUDA_SUCCESS) {
                return status;
            }
            ReplyHeader header;
            header.kind = ReplyHeader::Kind::data;
            header.slot = caller.slot;
            header.value = offset;
            header.consumed = consumed_.load();
            const Bytes bytes(buffer.get(), part);
            connection_.send(std::as_bytes(std::span(&header, 1)), bytes, transport::Body::borrow,
                             [flight, buffer] {
                                 const std::lock_guard lock(flight->mutex);
                                 --flight->count;
                                 flight->changed.notify_all();
                             });
        }
        return CUDA_SUCCESS;
    });
}

template <>
CUresult Executor::special<Call::cuMemcpyHtoD_v2>(const Record&,
                                                  Arguments<Call::cuMemcpyHtoD_v2>& arguments) {
    auto& [to, from] = arguments;
    return driver_->cuMemcpyHtoD_v2(to.value, from.value.data(), from.value.size());
}

template <>
CUresult Executor::special<Call::cuMemcpyHtoDAsync_v2>(const Record&,
                                                       Arguments<Call::cuMemcpyHtoDAsync_v2>& arguments) {
    auto& [to, from, stream] = arguments;
    if (kept_by_capture(stream.value)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    // The source is ordinary memory: the driver has read it when the call returns.
    return driver_->cuMemcpyHtoDAsync_v2(to.value, from.value.data(), from.value.size(), stream.value);
}

template <>
CUresult Executor::special<Call::cuMemcpyDtoH_v2>(const Record& record,
                                                  Arguments<Call::cuMemcpyDtoH_v2>& arguments) {
    auto& [to, from] = arguments;
    return copy_to_host(
        record, to.size, [this] { return driver_->cuStreamQuery(nullptr); },
        [this, source = from.value](std::byte* buffer, std::uint64_t offset, std::size_t size) {
            return driver_->cuMemcpyDtoH_v2(buffer, source + offset, size);
        });
}

template <>
CUresult Executor::special<Call::cuMemcpyDtoHAsync_v2>(const Record& record,
                                                       Arguments<Call::cuMemcpyDtoHAsync_v2>& arguments) {
    auto& [to, from, stream] = arguments;
    if (kept_by_capture(stream.value)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return copy_to_host(
        record, to.size, [this, handle = stream.value] { return driver_->cuStreamQuery(handle); },
        [this, source = from.value, handle = stream.value](std::byte* buffer, std::uint64_t offset,
                                                           std::size_t size) {
            const CUresult status = driver_->cuMemcpyDtoHAsync_v2(buffer, source + offset, size, handle);
            return status == CUDA_SUCCESS ? driver_->cuStreamSynchronize(handle) : status;
        });
}

CUresult Executor::driver_copy(const CopyShape& shape, CUDA_MEMCPY3D& copy) const {
    copy = {};
    copy.WidthInBytes = shape.width_bytes;
    copy.Height = shape.height;
    copy.Depth = shape.depth;
    const auto side = [this](const CopyShape::Side& from, CUmemorytype& type, CUdeviceptr& pointer,
                             CUarray& array, std::size_t& pitch, std::size_t& height) {
        switch (from.memory) {
        case CopyShape::Memory::host:
            type = CU_MEMORYTYPE_HOST;
            return CUDA_SUCCESS;
        case CopyShape::Memory::device:
            type = CU_MEMORYTYPE_DEVICE;
            pointer = from.pointer;
            pitch = from.pitch;
            height = from.height;
            return CUDA_SUCCESS;
        case CopyShape::Memory::array:
            type = CU_MEMORYTYPE_ARRAY;
            return tables_.find(from.array, array) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        }
        return CUDA_ERROR_INVALID_VALUE;
    };
    CUresult status =
        side(shape.from, copy.srcMemoryType, copy.srcDevice, copy.srcArray, copy.srcPitch, copy.srcHeight);
    if (status == CUDA_SUCCESS) {
        status =
            side(shape.to, copy.dstMemoryType, copy.dstDevice, copy.dstArray, copy.dstPitch, copy.dstHeight);
    }
    if (copy.srcMemoryType == CU_MEMORYTYPE_HOST) {
        copy.srcPitch = shape.width_bytes; // rows travel packed, from the box's own begin
        copy.srcHeight = shape.height;
    } else {
        copy.srcXInBytes = shape.from.x_bytes;
        copy.srcY = shape.from.y;
        copy.srcZ = shape.from.z;
        copy.srcLOD = shape.from.level;
    }
    if (copy.dstMemoryType == CU_MEMORYTYPE_HOST) {
        copy.dstPitch = shape.width_bytes;
        copy.dstHeight = shape.height;
    } else {
        copy.dstXInBytes = shape.to.x_bytes;
        copy.dstY = shape.to.y;
        copy.dstZ = shape.to.z;
        copy.dstLOD = shape.to.level;
    }
    return status;
}

CUresult Executor::memory_copy(const CopyShape& shape, const CUDA_MEMCPY3D& copy, CUstream stream) {
    return shape.async != 0 ? driver_->cuMemcpy3DAsync_v2(&copy, stream) : driver_->cuMemcpy3D_v2(&copy);
}

template <>
CUresult Executor::special<Call::copy_3d_to_device>(const Record&,
                                                    Arguments<Call::copy_3d_to_device>& arguments) {
    auto& [shape, stream, from] = arguments;
    std::uint64_t size = 0;
    if (shape.value.from.memory != CopyShape::Memory::host ||
        shape.value.to.memory == CopyShape::Memory::host || !chunk_size(shape.value, size) ||
        size != from.value.size()) {
        throw ProtocolError("a copy to the device does not have the size that its shape says");
    }
    if (shape.value.async != 0 && kept_by_capture(stream.value)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUDA_MEMCPY3D copy;
    if (const CUresult status = driver_copy(shape.value, copy); status != CUDA_SUCCESS) {
        return status;
    }
    copy.srcHost = from.value.data();
    return memory_copy(shape.value, copy, stream.value);
}

template <>
CUresult Executor::special<Call::copy_3d_to_host>(const Record& record,
                                                  Arguments<Call::copy_3d_to_host>& arguments) {
    auto& [shape, stream, to] = arguments;
    std::uint64_t size = 0;
    if (shape.value.from.memory == CopyShape::Memory::host ||
        shape.value.to.memory != CopyShape::Memory::host || !chunk_size(shape.value, size) ||
        size != to.size) {
        throw ProtocolError("a copy to the host does not have the size that its shape says");
    }
    if (shape.value.async != 0 && kept_by_capture(stream.value)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    CUDA_MEMCPY3D copy;
    if (const CUresult status = driver_copy(shape.value, copy); status != CUDA_SUCCESS) {
        return status;
    }
    const bool async = shape.value.async != 0;
    return copy_to_host(
        record, size,
        [this, handle = async ? stream.value : nullptr] { return driver_->cuStreamQuery(handle); },
        [this, copy, shape = shape.value, handle = stream.value](std::byte* buffer, std::uint64_t,
                                                                 std::size_t) {
            CUDA_MEMCPY3D whole = copy;
            whole.dstHost = buffer;
            const CUresult status = memory_copy(shape, whole, handle);
            return status == CUDA_SUCCESS && shape.async != 0 ? driver_->cuStreamSynchronize(handle) : status;
        });
}

template <>
CUresult Executor::special<Call::copy_3d_on_device>(const Record&,
                                                    Arguments<Call::copy_3d_on_device>& arguments) {
    auto& [shape, stream] = arguments;
    if (shape.value.from.memory == CopyShape::Memory::host ||
        shape.value.to.memory == CopyShape::Memory::host) {
        throw ProtocolError("a copy on the device names the host");
    }
    CUDA_MEMCPY3D copy;
    if (const CUresult status = driver_copy(shape.value, copy); status != CUDA_SUCCESS) {
        return status;
    }
    return memory_copy(shape.value, copy, stream.value);
}

} // namespace vgpu::worker
