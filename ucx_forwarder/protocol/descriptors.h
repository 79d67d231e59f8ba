// SPDX-License-Identifier: BSD-3-Clause
// What a parameter of a wire call is. Each parameter in calls.def is one of these types; from it follow the
// argument that the client passes, the bytes on the wire in both directions, and what the worker gives to the
// driver (worker/argument.h).
//
//   descriptor     client passes               request carries      reply carries   driver gets
//   In<T>          T                           T                    -               T
//   In<Handle>     WireId                      u64                  -               the driver's handle
//   InP<T>         const T*                    T                    -               const T*
//   Out<T>         T* (null: not wanted)       -                    T               T*
//   New<Handle>    WireId the client chose     u64                  -               Handle*, remembered under
//   that id Del<Handle>    WireId                      u64                  -               the handle, then
//   forgotten Device         int, the session's device   i32                  -               CUdevice Str
//   const char*                 length, characters   -               const char* Blob           Bytes (Args
//   in a launch)    length, bytes        -               const void* List<T>        std::span<const T> count,
//   items         -               const T*, size_t List<Handle>   std::span<const WireId>     count, u64 each
//   -               const Handle*, size_t BytesIn        Bytes                       the message's body   -
//   const void*, size_t BytesOut       std::span<std::byte>        u64 size             the body (special
//   handlers only) BlobOut        std::vector<std::byte>*     -                    the body        (special
//   handlers only)
#pragma once

#include "ucx_forwarder/protocol/codec.h"

#include <cuda.h>

#include <cstdint>
#include <vector>

namespace vgpu::protocol {

/// Names an object of a session on both ends. 0 is the null handle. Streams: 1 is CU_STREAM_LEGACY, 2 is
/// reserved for CU_STREAM_PER_THREAD and never sent: the client keeps a stream of its own for each thread.
struct WireId {
    std::uint64_t value = 0;
    friend bool operator==(WireId, WireId) = default;
};

constexpr WireId null_id{0};
constexpr WireId legacy_stream{1};
/// The first id that a client may choose.
constexpr std::uint64_t first_id = 16;
/// Ids a client chooses lie below this, so that ids derived from them (kernel_id) fit.
constexpr std::uint64_t end_id = std::uint64_t{1} << 40;
constexpr std::uint32_t max_kernels = 1U << 20;

/// The id of the i-th kernel in the module's list; both ends compute it.
constexpr WireId kernel_id(WireId module, std::uint32_t i) {
    return {(module.value << 20) + i};
}

/// Types that are mapped: T is what a driver calls a handle.
template <class T>
constexpr bool is_handle = false;
template <>
inline constexpr bool is_handle<CUcontext> = true;
template <>
inline constexpr bool is_handle<CUstream> = true;
template <>
inline constexpr bool is_handle<CUevent> = true;
template <>
inline constexpr bool is_handle<CUmodule> = true;
template <>
inline constexpr bool is_handle<CUfunction> = true;
template <>
inline constexpr bool is_handle<CUarray> = true;
template <>
inline constexpr bool is_handle<CUmipmappedArray> = true;
template <>
inline constexpr bool is_handle<CUmemoryPool> = true;
template <>
inline constexpr bool is_handle<CUgraph> = true;
template <>
inline constexpr bool is_handle<CUgraphExec> = true;

/// What a descriptor is to the client: Argument, and how it is written and how its answer is read.
struct NoReply {
    template <class A>
    static bool take(Decoder&, const A&) {
        return true;
    }
};

template <class T>
struct In : NoReply {
    using Argument = std::conditional_t<is_handle<T>, WireId, T>;
    static void put(Encoder& out, Argument value) { out.put(value); }
};
template <class T>
struct InP : NoReply {
    using Argument = const T*;
    static void put(Encoder& out, const T* value) { out.put(*value); }
};
template <class T>
struct Out {
    using Argument = T*;
    static void put(Encoder&, T*) {}
    static bool take(Decoder& in, T* value) {
        const T taken = in.take<T>();
        if (value != nullptr && in.ok()) {
            *value = taken;
        }
        return in.ok();
    }
};
template <class H>
struct New : NoReply {
    static_assert(is_handle<H>);
    using Argument = WireId;
    static void put(Encoder& out, WireId id) { out.put(id); }
};
template <class H>
struct Del : NoReply {
    static_assert(is_handle<H>);
    using Argument = WireId;
    static void put(Encoder& out, WireId id) { out.put(id); }
};
struct Device : NoReply {
    using Argument = int;
    static void put(Encoder& out, int ordinal) { out.put(static_cast<std::int32_t>(ordinal)); }
};
struct Str : NoReply {
    using Argument = const char*;
    static void put(Encoder& out, const char* text) { out.put_text(text); }
};
struct Blob : NoReply {
    using Argument = Bytes;
    static void put(Encoder& out, Bytes bytes) { out.put_blob(bytes); }
};
template <class T>
struct List : NoReply {
    using Item = std::conditional_t<is_handle<T>, WireId, T>;
    using Argument = std::span<const Item>;
    static void put(Encoder& out, Argument items) {
        out.put(static_cast<std::uint32_t>(items.size()));
        out.put_bytes(items.data(), items.size_bytes());
    }
};
struct BytesIn : NoReply {
    using Argument = Bytes;
    static void put(Encoder&, Bytes) {}
};
struct BytesOut : NoReply {
    using Argument = std::span<std::byte>;
    static void put(Encoder& out, Argument buffer) { out.put(static_cast<std::uint64_t>(buffer.size())); }
};
struct BlobOut : NoReply {
    using Argument = std::vector<std::byte>*;
    static void put(Encoder&, Argument) {}
};

} // namespace vgpu::protocol
