// SPDX-License-Identifier: BSD-3-Clause
// The receiving half of a connection: puts batches in order, collects the fragments of large bodies in the
// memory that the receiver named, hands out whole messages. Not thread safe: the connection's lock is held in
// every call, and one thread at a time delivers.
#pragma once

#include "ucx_forwarder/transport/connection.h"
#include "ucx_forwarder/transport/wire.h"

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <ucp/api/ucp.h>
#include <vector>

namespace vgpu::transport {

class Incoming {
public:
    explicit Incoming(ChunkPool& pool) : pool_(pool) {}
    ~Incoming();
    Incoming(const Incoming&) = delete;
    Incoming& operator=(const Incoming&) = delete;

    void open(ucp_worker_h worker, std::uint64_t token);

    /// The two UCX callbacks; their result is the callback's. A message without the token is dropped.
    ucs_status_t on_batch(const void* header, std::size_t header_size, const void* data, std::size_t size);
    ucs_status_t on_fragment(const void* header, std::size_t header_size, void* data, std::size_t size,
                             const ucp_am_recv_param_t& param);

    /// A body that came to be announced, in stream order, for which the receiver has not yet named a place.
    struct Announced {
        std::uint64_t number = 0;
        std::span<const std::byte> head;
        std::size_t size = 0;
    };
    /// False: none, or enough are being received already.
    bool next_announced(Announced& announced);
    /// Where its bytes shall go; empty: in memory of our own.
    void assign(std::uint64_t number, std::span<std::byte> buffer);

    /// One whole message, in stream order. The spans stay valid until the next call of next_message or
    /// done_message.
    struct Message {
        std::span<const std::byte> head;
        std::span<std::byte> body;
        bool bye = false;
    };
    /// False: the next message is not complete.
    bool next_message(Message& message);
    void done_message();
    /// There is something for next_announced or next_message.
    bool deliverable() const;

    /// Bytes of records and copied bodies that were delivered, ever.
    std::uint64_t consumed() const { return consumed_; }
    /// Receives that UCX still writes to.
    std::size_t receiving() const { return receiving_; }
    /// What is wrong with what the peer sent; empty: nothing.
    const std::string& fault() const { return fault_; }
    /// Loss: nothing more is received into the receiver's memory.
    void abort();

private:
    struct Fragment {
        std::uint64_t offset = 0;
        std::size_t size = 0;
        void* descriptor = nullptr; ///< UCX's, to be received or released
        bool rendezvous = false;
        std::vector<std::byte> copy; ///< where UCX did not let us keep its memory
    };
    struct Body {
        Announced announced;
        RecordKind kind = RecordKind::borrowed_body;
        bool known = false; ///< its record came
        bool assigned = false;
        std::span<std::byte> buffer;
        std::unique_ptr<std::byte[]> own;
        std::size_t received = 0;
        std::vector<Fragment> waiting;
        bool complete() const { return assigned && received == announced.size; }
    };
    struct Receive {
        Incoming* owner = nullptr;
        std::uint64_t number = 0;
        std::size_t size = 0;
    };

    static void receive_done(void* request, ucs_status_t status, std::size_t size, void* user_data);
    void accept(std::unique_ptr<Chunk> chunk);
    void place(Body& body, Fragment fragment);
    void release(Fragment& fragment);
    bool read_record(const Chunk& chunk, std::size_t at, Record& record) const;
    static std::size_t record_size(const Record& record);

    static constexpr std::size_t most_bodies_at_once = 16;
    static constexpr std::size_t most_early = 4096;

    ChunkPool& pool_;
    ucp_worker_h worker_ = nullptr;
    std::uint64_t token_ = 0;
    std::uint64_t next_sequence_ = 0;
    std::map<std::uint64_t, std::unique_ptr<Chunk>> early_;
    std::deque<std::unique_ptr<Chunk>> ready_;
    std::size_t at_ = 0; ///< in ready_.front()
    std::map<std::uint64_t, Body> bodies_;
    std::uint64_t announced_ = 0; ///< bodies announced so far
    std::uint64_t assigned_ = 0;  ///< of these, with a place
    std::uint64_t delivered_ = 0; ///< of these, handed out
    std::uint64_t consumed_ = 0;
    std::size_t receiving_ = 0;
    std::string fault_;
    bool aborted_ = false;
};

} // namespace vgpu::transport
