// SPDX-License-Identifier: BSD-3-Clause
// The heads of the messages in both directions. A head starts with one of these structs; the parameters
// follow packed.
#pragma once

#include "ucx_forwarder/protocol/calls.h"

#include <cstdint>

namespace vgpu::protocol {

/// As transport::max_head; the protocol's own constant because protocol/ knows no transport.
constexpr std::size_t max_head = 4096;

/// Client to worker: one call.
struct RecordHeader {
    static constexpr std::uint16_t parameters_in_body = 1; ///< too many for the head: they are the whole body
    static constexpr std::uint16_t body_in_head = 2;       ///< BytesIn follows the parameters in the head
    Call call = Call::hello;
    std::uint16_t flags = 0;
    std::uint32_t slot = 0; ///< who waits for the reply; 0: nobody
    WireId context;         ///< the context that is current for the call; null: none
};
static_assert(sizeof(RecordHeader) == 16);

/// Worker to client.
struct ReplyHeader {
    enum class Kind : std::uint16_t {
        reply = 1,         ///< the answer to `slot`; Out parameters follow; the body is BlobOut, or BytesOut in one piece
        data = 2,          ///< a part of BytesOut of `slot`: `value` is its offset, the body are its bytes
        output = 3,        ///< what kernels printed: the body is for the client's stdout
        host_function = 4, ///< run host function `value`, then send host_function_done
        context_error = 5, ///< `value` is a context that from now on gives `status`
        consumed = 6,      ///< only tells `consumed`
    };
    Kind kind = Kind::reply;
    std::uint16_t reserved = 0;
    std::uint32_t slot = 0;
    std::int32_t status = 0; ///< CUresult
    std::uint32_t reserved2 = 0;
    std::uint64_t value = 0;
    std::uint64_t consumed =
        0; ///< cost() of all records that the worker has done with, since the session began
};
static_assert(sizeof(ReplyHeader) == 32);

/// What a record counts against the window: the client may have this much unconsumed at the worker. A single
/// message may exceed it when nothing else is outstanding. The worker ends a session that overdraws it
/// twofold.
constexpr std::uint64_t window_bytes = 64U << 20;
constexpr std::uint64_t record_cost(std::size_t head, std::size_t body) {
    return head + body + 128;
}

/// Bulk data goes in records of at most this size, so that one copy does not stop others for long.
constexpr std::size_t chunk_bytes = 8U << 20;

} // namespace vgpu::protocol
