// SPDX-License-Identifier: BSD-3-Clause
// The worker's side of the descriptors (protocol/descriptors.h): how a parameter is read from the record,
// what the driver gets for it, and what goes into the reply.
//
//   decode()  reads; false when the record is malformed. The status is set when an id or device is unknown.
//   driver()  the driver's arguments as a tuple
//   done()    after a successful call: remembers new handles, forgets old ones, writes Out values into the
//   reply
#pragma once

#include "ucx_forwarder/protocol/calls.h"
#include "ucx_forwarder/worker/tables.h"

#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace vgpu::worker {

using protocol::Bytes;
using protocol::Decoder;
using protocol::Encoder;

/// What decoding needs besides the record's parameters.
struct DecodeContext {
    Decoder& in;
    Tables& tables;
    const std::vector<CUdevice>& devices;
    CUresult status = CUDA_SUCCESS;

    void fail(CUresult why) {
        if (status == CUDA_SUCCESS) {
            status = why;
        }
    }
};

template <class D>
struct Argument;

struct NothingDone {
    void done(Tables&, Encoder&) const {}
};

template <class T>
requires(!protocol::is_handle<T>) struct Argument<protocol::In<T>> : NothingDone {
    T value{};
    bool decode(DecodeContext& context) {
        value = context.in.take<T>();
        return context.in.ok();
    }
    std::tuple<T> driver() const { return {value}; }
};

template <class H>
requires(protocol::is_handle<H>) struct Argument<protocol::In<H>> : NothingDone {
    WireId id;
    H value{};
    bool decode(DecodeContext& context) {
        id = context.in.take<WireId>();
        if (!context.tables.find(id, value)) {
            context.fail(std::is_same_v<H, CUcontext> ? CUDA_ERROR_INVALID_CONTEXT
                                                      : CUDA_ERROR_INVALID_HANDLE);
        }
        return context.in.ok();
    }
    std::tuple<H> driver() const { return {value}; }
};

template <class T>
struct Argument<protocol::InP<T>> : NothingDone {
    T value{};
    bool decode(DecodeContext& context) {
        value = context.in.take<T>();
        return context.in.ok();
    }
    std::tuple<T*> driver() { return {&value}; }
};

template <class T>
struct Argument<protocol::Out<T>> {
    T value{};
    bool decode(DecodeContext&) { return true; }
    std::tuple<T*> driver() { return {&value}; }
    void done(Tables&, Encoder& reply) const { reply.put(value); }
};

template <class H>
struct Argument<protocol::New<H>> {
    WireId id;
    H value{};
    bool decode(DecodeContext& context) {
        id = context.in.take<WireId>();
        if (!context.tables.template insertable<H>(id)) {
            context.fail(CUDA_ERROR_INVALID_HANDLE);
        }
        return context.in.ok();
    }
    std::tuple<H*> driver() { return {&value}; }
    void done(Tables& tables, Encoder&) const {
        // Contexts and modules carry more than a handle; their handlers remember them.
        if constexpr (!std::is_same_v<H, CUcontext> && !std::is_same_v<H, CUmodule>) {
            tables.insert(id, value);
        }
    }
};

template <class H>
struct Argument<protocol::Del<H>> {
    WireId id;
    H value{};
    bool decode(DecodeContext& context) {
        id = context.in.take<WireId>();
        // The default streams are found, but cannot be destroyed.
        if (!Tables::choosable(id) || !context.tables.find(id, value)) {
            context.fail(CUDA_ERROR_INVALID_HANDLE);
        }
        return context.in.ok();
    }
    std::tuple<H> driver() const { return {value}; }
    void done(Tables& tables, Encoder&) const { tables.template erase<H>(id); }
};

template <>
struct Argument<protocol::Device> : NothingDone {
    int index = 0;
    CUdevice value = 0;
    bool decode(DecodeContext& context) {
        index = context.in.take<std::int32_t>();
        if (index < 0 || static_cast<std::size_t>(index) >= context.devices.size()) {
            context.fail(CUDA_ERROR_INVALID_DEVICE);
        } else {
            value = context.devices[static_cast<std::size_t>(index)];
        }
        return context.in.ok();
    }
    std::tuple<CUdevice> driver() const { return {value}; }
};

template <>
struct Argument<protocol::Str> : NothingDone {
    std::string value;
    bool decode(DecodeContext& context) {
        value = context.in.take_text();
        return context.in.ok();
    }
    std::tuple<const char*> driver() const { return {value.c_str()}; }
};

template <>
struct Argument<protocol::Blob> : NothingDone {
    Bytes value; ///< in the record
    bool decode(DecodeContext& context) {
        value = context.in.take_blob();
        return context.in.ok();
    }
    std::tuple<const void*> driver() const { return {value.data()}; }
};

template <class T>
struct Argument<protocol::List<T>> : NothingDone {
    std::vector<T> value;
    bool decode(DecodeContext& context) {
        using Item = typename protocol::List<T>::Item;
        const auto count = context.in.take<std::uint32_t>();
        if (count > context.in.rest().size() / sizeof(Item)) {
            return false;
        }
        value.resize(count);
        for (T& item : value) {
            const auto taken = context.in.take<Item>();
            if constexpr (protocol::is_handle<T>) {
                if (!context.tables.find(taken, item)) {
                    context.fail(CUDA_ERROR_INVALID_HANDLE);
                }
            } else {
                item = taken;
            }
        }
        return context.in.ok();
    }
    std::tuple<const T*, std::size_t> driver() const { return {value.data(), value.size()}; }
};

template <>
struct Argument<protocol::BytesIn> : NothingDone {
    Bytes value; ///< in the record or its body; set when all parameters are read, because it may follow them
    bool decode(DecodeContext&) { return true; }
    std::tuple<const void*, std::size_t> driver() const { return {value.data(), value.size()}; }
};

template <>
struct Argument<protocol::BytesOut> : NothingDone {
    std::uint64_t size = 0; ///< untrusted: memory for it is taken in chunks
    bool decode(DecodeContext& context) {
        size = context.in.take<std::uint64_t>();
        return context.in.ok();
    }
};

template <>
struct Argument<protocol::BlobOut> : NothingDone {
    std::vector<std::byte> value; ///< filled by the handler
    bool decode(DecodeContext&) { return true; }
};

template <class P>
struct ArgumentsOf;
template <class... D>
struct ArgumentsOf<protocol::Parameters<D...>> {
    using type = std::tuple<Argument<D>...>;
};
/// The arguments of a call, as its handler gets them.
template <protocol::Call C>
using Arguments = typename ArgumentsOf<typename protocol::CallTraits<C>::parameters>::type;

} // namespace vgpu::worker
