// SPDX-License-Identifier: BSD-3-Clause
// The sending half of a connection: packs messages into batches, cuts large bodies into fragments, keeps a
// few of them in flight. Not thread safe: the connection's lock is held in every call.
#pragma once

#include "ucx_forwarder/transport/connection.h"
#include "ucx_forwarder/transport/wire.h"

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <ucp/api/ucp.h>
#include <vector>

namespace vgpu::transport {

class Outgoing {
public:
    explicit Outgoing(ChunkPool& pool) : pool_(pool) {}
    Outgoing(const Outgoing&) = delete;
    Outgoing& operator=(const Outgoing&) = delete;

    /// Before any other call.
    void open(ucp_ep_h endpoint, std::uint64_t token);

    /// Whether the body goes inside the record, and hence is copied at once.
    static bool fits_inline(std::size_t head, std::size_t body) {
        return body <= max_inline_body && sizeof(Record) + padded(head + body) <= batch_capacity;
    }
    void append(std::span<const std::byte> head, std::span<const std::byte> inline_body,
                RecordKind kind = RecordKind::inline_body);
    /// The body goes in fragments from where it lies. `sent` becomes due once that memory is no longer
    /// needed.
    void append_large(std::span<const std::byte> head, std::span<const std::byte> body, RecordKind kind,
                      std::function<void()> sent);

    /// Puts the batch that is being filled on the wire.
    void flush();
    /// Posts what may be posted now: fragments, and the batch when the pipe is idle.
    void pump();
    void send_control(std::uint64_t consumed);

    bool pipe_idle() const { return batches_in_flight_ == 0; }
    bool has_unflushed() const { return current_ && current_->size > 0; }
    bool busy() const { return in_flight() > 0 || !bodies_.empty() || has_unflushed(); }
    bool bulk_pending() const { return fragments_in_flight_ > 0 || !bodies_.empty(); }
    std::size_t in_flight() const { return batches_in_flight_ + fragments_in_flight_ + controls_in_flight_; }

    void acknowledged(std::uint64_t consumed);
    /// Bytes of records and copied bodies that the peer has not yet done with.
    std::uint64_t unacknowledged() const { return appended_ - acknowledged_; }

    /// After loss: nothing more is posted; what was not posted becomes due.
    void abort();
    /// After loss, when UCX does not give back what is in flight.
    void abandon();

    /// `sent` functions that are due; the connection calls them without its lock.
    bool has_finished() const { return !finished_.empty(); }
    void take_finished(std::vector<std::function<void()>>& into) { into.swap(finished_); }

    /// The first error that UCX gave to a send; UCS_OK: none.
    ucs_status_t error() const { return error_; }

private:
    struct Body {
        std::uint64_t number = 0;
        std::span<const std::byte> bytes;
        std::size_t posted = 0;
        std::size_t in_flight = 0;
        std::function<void()> sent;
    };
    struct Fragment {
        FragmentHeader header;
        Outgoing* owner = nullptr;
        std::list<Body>::iterator body;
    };
    struct Batch {
        Outgoing* owner = nullptr;
        std::unique_ptr<Chunk> chunk;
    };
    struct Control {
        ControlHeader header;
        Outgoing* owner = nullptr;
    };

    static void batch_done(void* request, ucs_status_t status, void* user_data);
    static void fragment_done(void* request, ucs_status_t status, void* user_data);
    static void control_done(void* request, ucs_status_t status, void* user_data);
    std::byte* reserve(std::size_t size);
    void post_fragment(std::list<Body>::iterator body);
    void finish_fragment(std::unique_ptr<Fragment> fragment);
    void finish_body(std::list<Body>::iterator body);
    void note(ucs_status_t status);

    ChunkPool& pool_;
    ucp_ep_h endpoint_ = nullptr;
    std::uint64_t token_ = 0;
    std::unique_ptr<Chunk> current_;
    std::uint64_t next_sequence_ = 0;
    std::uint64_t next_body_ = 0;
    std::list<Body> bodies_; ///< not yet wholly posted
    std::list<Body> posted_; ///< wholly posted, not yet done
    std::vector<std::unique_ptr<Fragment>> free_fragments_;
    std::vector<std::unique_ptr<Batch>> free_batches_;
    std::size_t batches_in_flight_ = 0;
    std::size_t fragments_in_flight_ = 0;
    std::size_t controls_in_flight_ = 0;
    std::uint64_t appended_ = 0;
    std::uint64_t acknowledged_ = 0;
    std::vector<std::function<void()>> finished_;
    ucs_status_t error_ = UCS_OK;
    bool aborted_ = false;
};

} // namespace vgpu::transport
