// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/incoming.h"

#include <cstring>

namespace vgpu::transport {

Incoming::~Incoming() {
    abort();
}

void Incoming::open(ucp_worker_h worker, std::uint64_t token) {
    worker_ = worker;
    token_ = token;
}

std::size_t Incoming::record_size(const Record& record) {
    const std::size_t inside = record.kind == RecordKind::inline_body ? record.body_size : 0;
    return sizeof record + padded(record.head_size + inside);
}

bool Incoming::read_record(const Chunk& chunk, std::size_t at, Record& record) const {
    if (at + sizeof record > chunk.size)
        return false;
    memcpy(&record, chunk.bytes.data() + at, sizeof record);
    return record.head_size <= max_head && record.kind <= RecordKind::bye &&
           (record.kind != RecordKind::inline_body || record.body_size <= batch_capacity) &&
           at + record_size(record) <= chunk.size;
}

ucs_status_t Incoming::on_batch(const void* header_bytes, std::size_t header_size, const void* data,
                                std::size_t size) {
    BatchHeader header;
    if (header_size != sizeof header)
        return UCS_OK;
    memcpy(&header, header_bytes, sizeof header);
    if (token_ == 0 || header.token != token_ || size > batch_capacity || aborted_)
        return UCS_OK;
    auto chunk = pool_.get();
    chunk->header = header;
    chunk->size = size;
    memcpy(chunk->bytes.data(), data, size);
    if (header.sequence == next_sequence_) {
        accept(std::move(chunk));
        for (auto i = early_.begin(); i != early_.end() && i->first == next_sequence_; i = early_.erase(i))
            accept(std::move(i->second));
    } else if (header.sequence > next_sequence_ && early_.size() < most_early) {
        early_[header.sequence] = std::move(chunk);
    } else {
        fault_ = "the peer sent a batch twice or too early";
    }
    return UCS_OK;
}

void Incoming::accept(std::unique_ptr<Chunk> chunk) {
    ++next_sequence_;
    Record record;
    std::size_t at = 0;
    for (; at < chunk->size; at += record_size(record)) {
        if (!read_record(*chunk, at, record)) {
            fault_ = "the peer sent a malformed batch";
            return;
        }
        if (record.kind != RecordKind::copied_body && record.kind != RecordKind::borrowed_body)
            continue;
        Body& body = bodies_[announced_];
        body.known = true;
        body.kind = record.kind;
        body.announced = {
            announced_++, {chunk->bytes.data() + at + sizeof record, record.head_size}, record.body_size};
    }
    ready_.push_back(std::move(chunk));
}

ucs_status_t Incoming::on_fragment(const void* header_bytes, std::size_t header_size, void* data,
                                   std::size_t size, const ucp_am_recv_param_t& param) {
    FragmentHeader header;
    if (header_size != sizeof header)
        return UCS_OK;
    memcpy(&header, header_bytes, sizeof header);
    if (token_ == 0 || header.token != token_ || aborted_)
        return UCS_OK;
    if (header.body < delivered_ || header.body > announced_ + most_early) {
        fault_ = "the peer sent a part of a body that it never announced";
        return UCS_OK;
    }
    Fragment fragment;
    fragment.offset = header.offset;
    fragment.size = size;
    ucs_status_t result = UCS_OK;
    Body& body = bodies_[header.body];
    if (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        fragment.descriptor = data;
        fragment.rendezvous = true;
        result = UCS_INPROGRESS;
    } else if (body.assigned) {
        if (header.offset > body.buffer.size() || size > body.buffer.size() - header.offset) {
            fault_ = "the peer sent more of a body than it announced";
            return UCS_OK;
        }
        memcpy(body.buffer.data() + header.offset, data, size);
        body.received += size;
        return UCS_OK;
    } else if (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) {
        fragment.descriptor = data;
        result = UCS_INPROGRESS;
    } else {
        const auto* bytes = static_cast<const std::byte*>(data);
        fragment.copy.assign(bytes, bytes + size);
    }
    if (body.assigned)
        place(body, std::move(fragment));
    else
        body.waiting.push_back(std::move(fragment));
    return result;
}

bool Incoming::next_announced(Announced& announced) {
    if (assigned_ == announced_ || assigned_ - delivered_ >= most_bodies_at_once || aborted_)
        return false;
    announced = bodies_.at(assigned_).announced;
    return true;
}

void Incoming::assign(std::uint64_t number, std::span<std::byte> buffer) {
    Body& body = bodies_.at(number);
    if (buffer.size() != body.announced.size) {
        body.own = std::make_unique_for_overwrite<std::byte[]>(body.announced.size);
        buffer = {body.own.get(), body.announced.size};
    }
    body.buffer = buffer;
    body.assigned = true;
    ++assigned_;
    auto waiting = std::move(body.waiting);
    body.waiting.clear();
    for (auto& fragment : waiting)
        place(body, std::move(fragment));
}

void Incoming::place(Body& body, Fragment fragment) {
    if (fragment.offset > body.buffer.size() || fragment.size > body.buffer.size() - fragment.offset) {
        fault_ = "the peer sent more of a body than it announced";
        release(fragment);
        return;
    }
    std::byte* to = body.buffer.data() + fragment.offset;
    if (!fragment.rendezvous) {
        memcpy(to, fragment.descriptor ? fragment.descriptor : fragment.copy.data(), fragment.size);
        body.received += fragment.size;
        release(fragment);
        return;
    }
    auto receive = std::make_unique<Receive>(Receive{this, body.announced.number, fragment.size});
    ucp_request_param_t param{};
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv_am = receive_done;
    param.user_data = receive.get();
    ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_, fragment.descriptor, to, fragment.size, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ++receiving_;
        receive.release(); // receive_done takes it back
    } else if (UCS_PTR_STATUS(request) == UCS_OK) {
        body.received += fragment.size;
    } else {
        fault_ = std::string("UCX cannot receive a body: ") + ucs_status_string(UCS_PTR_STATUS(request));
    }
}

void Incoming::receive_done(void* request, ucs_status_t status, std::size_t, void* user_data) {
    std::unique_ptr<Receive> receive(static_cast<Receive*>(user_data));
    Incoming& self = *receive->owner;
    --self.receiving_;
    if (status != UCS_OK) {
        if (self.fault_.empty())
            self.fault_ = std::string("a body was cut off: ") + ucs_status_string(status);
    } else if (auto body = self.bodies_.find(receive->number); body != self.bodies_.end()) {
        body->second.received += receive->size;
    }
    ucp_request_free(request);
}

void Incoming::release(Fragment& fragment) {
    if (fragment.descriptor != nullptr)
        ucp_am_data_release(worker_, fragment.descriptor);
    fragment.descriptor = nullptr;
}

bool Incoming::deliverable() const {
    if (ready_.empty() || aborted_)
        return false;
    if (assigned_ != announced_ && assigned_ - delivered_ < most_bodies_at_once)
        return true;
    Record record;
    if (at_ >= ready_.front()->size || !read_record(*ready_.front(), at_, record))
        return true;
    if (record.kind != RecordKind::copied_body && record.kind != RecordKind::borrowed_body)
        return true;
    const auto body = bodies_.find(delivered_);
    return body != bodies_.end() && body->second.complete();
}

bool Incoming::next_message(Message& message) {
    while (!ready_.empty() && at_ >= ready_.front()->size) {
        pool_.put(std::move(ready_.front()));
        ready_.pop_front();
        at_ = 0;
    }
    if (ready_.empty() || aborted_)
        return false;
    Chunk& chunk = *ready_.front();
    Record record;
    if (!read_record(chunk, at_, record))
        return false;
    std::byte* const head = chunk.bytes.data() + at_ + sizeof record;
    message.head = {head, record.head_size};
    message.bye = record.kind == RecordKind::bye;
    message.body = {};
    if (record.kind == RecordKind::inline_body) {
        message.body = {head + record.head_size, record.body_size};
    } else if (record.kind != RecordKind::bye) {
        Body& body = bodies_.at(delivered_);
        if (!body.complete())
            return false;
        message.body = body.buffer;
    }
    return true;
}

void Incoming::done_message() {
    Record record;
    if (ready_.empty() || !read_record(*ready_.front(), at_, record))
        return;
    at_ += record_size(record);
    consumed_ += record_size(record);
    if (record.kind == RecordKind::copied_body || record.kind == RecordKind::borrowed_body) {
        if (record.kind == RecordKind::copied_body)
            consumed_ += record.body_size;
        bodies_.erase(delivered_++);
    }
}

void Incoming::abort() {
    if (aborted_)
        return;
    aborted_ = true;
    for (auto& [number, body] : bodies_)
        for (auto& fragment : body.waiting)
            if (!fragment.rendezvous)
                release(fragment);
}

} // namespace vgpu::transport
