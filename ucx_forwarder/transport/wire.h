// SPDX-License-Identifier: BSD-3-Clause
// What the two ends of a connection exchange. Integers are in the byte order of the machines, which must be
// little endian on both ends (x86-64, aarch64).
//
// Four kinds of UCX active messages: hello (authentication), batch (records, in the order of `sequence`),
// fragment (a part of a body that is too large for a batch) and control (acknowledgement and heartbeat in
// one). Every message after the hello carries a 64-bit token that only the two ends know, as UCX hands over
// messages of whoever found the port.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace vgpu::transport {

enum AmId : unsigned { am_hello = 1, am_batch = 2, am_fragment = 3, am_control = 4 };

struct BatchHeader {
    std::uint64_t token = 0;
    std::uint64_t sequence = 0;
};

struct FragmentHeader {
    std::uint64_t token = 0;
    std::uint64_t body = 0; ///< the n-th body of the stream that is not inside its record
    std::uint64_t offset = 0;
};

struct ControlHeader {
    std::uint64_t token = 0;
    std::uint64_t consumed = 0; ///< bytes of records and copied bodies that the receiver is done with, ever
};

enum class RecordKind : std::uint32_t {
    inline_body = 0,   ///< head and body follow
    copied_body = 1,   ///< head follows, the body comes in fragments; counts for the window
    borrowed_body = 2, ///< head follows, the body comes in fragments
    bye = 3            ///< orderly end, nothing comes after
};

/// At the beginning of each message in a batch; records are padded to 8 bytes.
struct Record {
    std::uint32_t head_size = 0;
    RecordKind kind = RecordKind::inline_body;
    std::uint64_t body_size = 0;
};

constexpr std::size_t batch_capacity =
    8000; ///< with UCX's own headers within one 8 KiB segment of tcp and shm
constexpr std::size_t max_inline_body = 4096;
constexpr std::uint64_t window = 32 << 20; ///< bytes of records and copied bodies that may be on the way

constexpr std::size_t padded(std::size_t size) {
    return (size + 7) & ~std::size_t{7};
}

/// One batch, being filled, on the wire, or received.
struct Chunk {
    BatchHeader header;
    std::size_t size = 0;
    alignas(16) std::array<std::byte, batch_capacity> bytes;
};

/// Chunks for reuse, so that the hot path does not allocate. Not thread safe.
class ChunkPool {
public:
    std::unique_ptr<Chunk> get() {
        if (free_.empty())
            return std::unique_ptr<Chunk>(new Chunk);
        auto chunk = std::move(free_.back());
        free_.pop_back();
        chunk->size = 0;
        return chunk;
    }
    void put(std::unique_ptr<Chunk> chunk) {
        if (free_.size() < keep)
            free_.push_back(std::move(chunk));
    }

private:
    static constexpr std::size_t keep = 256;
    std::vector<std::unique_ptr<Chunk>> free_;
};

} // namespace vgpu::transport
