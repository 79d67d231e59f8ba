// SPDX-License-Identifier: BSD-3-Clause
// How values lie in a message: packed, in the byte order of the machines (both ends are little-endian), no
// padding. Encoder writes into memory of its caller and never allocates; Decoder trusts nothing that it
// reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace vgpu::protocol {

using Bytes = std::span<const std::byte>;

/// Appends to a buffer. What does not fit is not written but counted: size() is what would have been needed.
class Encoder {
public:
    explicit Encoder(std::span<std::byte> buffer) : buffer_(buffer) {}

    void put_bytes(const void* data, std::size_t size) {
        if (size != 0 && size_ <= buffer_.size() && size <= buffer_.size() - size_) {
            std::memcpy(buffer_.data() + size_, data, size);
        }
        size_ += size;
    }
    template <class T>
    void put(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        put_bytes(&value, sizeof value);
    }
    /// A length (u32) and so many bytes.
    void put_blob(Bytes blob) {
        put(static_cast<std::uint32_t>(blob.size()));
        put_bytes(blob.data(), blob.size());
    }
    void put_text(std::string_view text) { put_blob(std::as_bytes(std::span(text.data(), text.size()))); }

    std::size_t size() const { return size_; }
    bool overflow() const { return size_ > buffer_.size(); }
    Bytes written() const { return buffer_.first(overflow() ? 0 : size_); }

private:
    std::span<std::byte> buffer_;
    std::size_t size_ = 0;
};

/// Reads what an Encoder wrote. After the first read that goes beyond the end, ok() is false and every value
/// is zero.
class Decoder {
public:
    explicit Decoder(Bytes data) : rest_(data) {}

    Bytes take_bytes(std::size_t size) {
        if (size > rest_.size()) {
            ok_ = false;
            rest_ = {};
            return {};
        }
        const Bytes taken = rest_.first(size);
        rest_ = rest_.subspan(size);
        return taken;
    }
    template <class T>
    T take() {
        static_assert(std::is_trivially_copyable_v<T>);
        T value{};
        const Bytes bytes = take_bytes(sizeof value);
        if (!bytes.empty()) {
            std::memcpy(&value, bytes.data(), sizeof value);
        }
        return value;
    }
    Bytes take_blob() { return take_bytes(take<std::uint32_t>()); }
    std::string_view take_text() {
        const Bytes bytes = take_blob();
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }

    bool ok() const { return ok_; }
    /// All was there, and nothing is left over.
    bool complete() const { return ok_ && rest_.empty(); }
    Bytes rest() const { return rest_; }

private:
    Bytes rest_;
    bool ok_ = true;
};

} // namespace vgpu::protocol
