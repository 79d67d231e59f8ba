// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/outgoing.h"

#include <algorithm>
#include <cstring>

namespace vgpu::transport {
namespace {

constexpr std::size_t fragments_at_once = 4;
/// From here on a rendezvous, by which the bytes go straight into their place, pays.
constexpr std::size_t rendezvous_size = 64 << 10;

std::size_t fragment_size(std::size_t body) {
    return body >= (16u << 20) ? 4u << 20 : 1u << 20;
}

ucp_request_param_t with_callback(ucp_send_nbx_callback_t callback, void* user_data, std::uint32_t flags) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    param.cb.send = callback;
    param.user_data = user_data;
    param.flags = flags;
    return param;
}

template <typename T>
std::unique_ptr<T> from_pool(std::vector<std::unique_ptr<T>>& pool) {
    if (pool.empty())
        return std::make_unique<T>();
    auto object = std::move(pool.back());
    pool.pop_back();
    return object;
}

} // namespace

void Outgoing::open(ucp_ep_h endpoint, std::uint64_t token) {
    endpoint_ = endpoint;
    token_ = token;
}

void Outgoing::note(ucs_status_t status) {
    if (status != UCS_OK && error_ == UCS_OK && !aborted_)
        error_ = status;
}

std::byte* Outgoing::reserve(std::size_t size) {
    if (current_ && current_->size + size > batch_capacity)
        flush();
    if (!current_)
        current_ = pool_.get();
    std::byte* at = current_->bytes.data() + current_->size;
    current_->size += size;
    appended_ += size;
    return at;
}

void Outgoing::append(std::span<const std::byte> head, std::span<const std::byte> inline_body,
                      RecordKind kind) {
    const Record record{static_cast<std::uint32_t>(head.size()), kind, inline_body.size()};
    std::byte* at = reserve(sizeof record + padded(head.size() + inline_body.size()));
    memcpy(at, &record, sizeof record);
    at += sizeof record;
    if (!head.empty())
        memcpy(at, head.data(), head.size());
    if (!inline_body.empty())
        memcpy(at + head.size(), inline_body.data(), inline_body.size());
}

void Outgoing::append_large(std::span<const std::byte> head, std::span<const std::byte> body, RecordKind kind,
                            std::function<void()> sent) {
    const Record record{static_cast<std::uint32_t>(head.size()), kind, body.size()};
    std::byte* at = reserve(sizeof record + padded(head.size()));
    memcpy(at, &record, sizeof record);
    if (!head.empty())
        memcpy(at + sizeof record, head.data(), head.size());
    if (kind == RecordKind::copied_body)
        appended_ += body.size();
    bodies_.push_back(Body{next_body_++, body, 0, 0, std::move(sent)});
    flush();
    pump();
}

void Outgoing::flush() {
    if (!has_unflushed() || aborted_)
        return;
    auto batch = from_pool(free_batches_);
    batch->owner = this;
    batch->chunk = std::move(current_);
    batch->chunk->header = {token_, next_sequence_++};
    Chunk& chunk = *batch->chunk;
    const ucp_request_param_t param = with_callback(batch_done, batch.get(), UCP_AM_SEND_FLAG_EAGER);
    ucs_status_ptr_t request = ucp_am_send_nbx(endpoint_, am_batch, &chunk.header, sizeof chunk.header,
                                               chunk.bytes.data(), chunk.size, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ++batches_in_flight_;
        batch.release(); // batch_done takes it back
        return;
    }
    note(UCS_PTR_STATUS(request));
    pool_.put(std::move(batch->chunk));
    free_batches_.push_back(std::move(batch));
}

void Outgoing::batch_done(void* request, ucs_status_t status, void* user_data) {
    std::unique_ptr<Batch> batch(static_cast<Batch*>(user_data));
    Outgoing& self = *batch->owner;
    self.note(status);
    --self.batches_in_flight_;
    self.pool_.put(std::move(batch->chunk));
    self.free_batches_.push_back(std::move(batch));
    ucp_request_free(request);
}

void Outgoing::pump() {
    if (aborted_)
        return;
    while (fragments_in_flight_ < fragments_at_once && !bodies_.empty() && error_ == UCS_OK)
        post_fragment(bodies_.begin());
    if (pipe_idle())
        flush();
}

void Outgoing::post_fragment(std::list<Body>::iterator body) {
    auto fragment = from_pool(free_fragments_);
    const std::size_t size = std::min(fragment_size(body->bytes.size()), body->bytes.size() - body->posted);
    fragment->header = {token_, body->number, body->posted};
    fragment->owner = this;
    fragment->body = body;
    const std::byte* from = body->bytes.data() + body->posted;
    body->posted += size;
    ++body->in_flight;
    if (body->posted == body->bytes.size())
        posted_.splice(posted_.end(), bodies_, body); // iterators stay valid
    const ucp_request_param_t param =
        with_callback(fragment_done, fragment.get(),
                      size >= rendezvous_size ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
    ucs_status_ptr_t request = ucp_am_send_nbx(endpoint_, am_fragment, &fragment->header,
                                               sizeof fragment->header, from, size, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ++fragments_in_flight_;
        fragment.release(); // fragment_done takes it back
        return;
    }
    note(UCS_PTR_STATUS(request));
    finish_fragment(std::move(fragment));
}

void Outgoing::fragment_done(void* request, ucs_status_t status, void* user_data) {
    std::unique_ptr<Fragment> fragment(static_cast<Fragment*>(user_data));
    Outgoing& self = *fragment->owner;
    self.note(status);
    --self.fragments_in_flight_;
    self.finish_fragment(std::move(fragment));
    ucp_request_free(request);
}

void Outgoing::finish_fragment(std::unique_ptr<Fragment> fragment) {
    const auto body = fragment->body;
    free_fragments_.push_back(std::move(fragment));
    if (--body->in_flight == 0 && body->posted == body->bytes.size())
        finish_body(body);
}

void Outgoing::finish_body(std::list<Body>::iterator body) {
    if (body->sent)
        finished_.push_back(std::move(body->sent));
    posted_.erase(body);
}

void Outgoing::send_control(std::uint64_t consumed) {
    if (aborted_ || error_ != UCS_OK || controls_in_flight_ > 8)
        return;
    auto control = std::make_unique<Control>();
    control->header = {token_, consumed};
    control->owner = this;
    const ucp_request_param_t param = with_callback(control_done, control.get(), UCP_AM_SEND_FLAG_EAGER);
    ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint_, am_control, &control->header, sizeof control->header, nullptr, 0, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ++controls_in_flight_;
        control.release(); // control_done takes it back
        return;
    }
    note(UCS_PTR_STATUS(request));
}

void Outgoing::control_done(void* request, ucs_status_t status, void* user_data) {
    std::unique_ptr<Control> control(static_cast<Control*>(user_data));
    control->owner->note(status);
    --control->owner->controls_in_flight_;
    ucp_request_free(request);
}

void Outgoing::acknowledged(std::uint64_t consumed) {
    if (consumed > acknowledged_ && consumed <= appended_)
        acknowledged_ = consumed;
}

void Outgoing::abort() {
    aborted_ = true;
    current_.reset();
    for (auto body = bodies_.begin(); body != bodies_.end();) {
        const auto next = std::next(body);
        body->bytes = body->bytes.first(body->posted);
        posted_.splice(posted_.end(), bodies_, body);
        if (body->in_flight == 0)
            finish_body(body);
        body = next;
    }
}

void Outgoing::abandon() {
    abort();
    for (auto& body : posted_)
        if (body.sent)
            finished_.push_back(std::move(body.sent));
}

} // namespace vgpu::transport
