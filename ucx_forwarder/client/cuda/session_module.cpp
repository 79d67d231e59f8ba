// SPDX-License-Identifier: BSD-3-Clause
// Modules, the linker, and host functions.
#include "ucx_forwarder/client/cuda/session_state.h"

#include <sodium.h>

#include <algorithm>

namespace vgpu::client {

using protocol::chunk_bytes;

CUresult Session::load_module(WireId context, WireId module, Bytes image, Bytes options,
                              ModuleSnapshot& out) {
    out = {};
    if (image.empty()) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    protocol::ImageHash hash;
    crypto_generichash(reinterpret_cast<unsigned char*>(hash.data()), hash.size(),
                       reinterpret_cast<const unsigned char*>(image.data()), image.size(), nullptr, 0);
    for (int attempt = 0; attempt < 2; ++attempt) {
        std::vector<std::byte> answer;
        const CUresult status = call<Call::module_load>(context, module, Bytes(hash), options, &answer);
        if (status != CUDA_ERROR_NOT_FOUND || !answer.empty()) {
            // A failed load answers too, with the logs.
            const bool readable = decode(Bytes(answer), out);
            return status != CUDA_SUCCESS ? status : readable ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
        }
        for (std::size_t offset = 0; offset < image.size(); offset += chunk_bytes) {
            const Bytes part = image.subspan(offset, std::min(chunk_bytes, image.size() - offset));
            const CUresult sent = call<Call::image_part>(no_context, Bytes(hash), std::uint64_t{image.size()},
                                                         std::uint64_t{offset}, part);
            if (sent != CUDA_SUCCESS) {
                return sent;
            }
        }
    }
    return CUDA_ERROR_UNKNOWN; // the worker says that it lacks what it was just sent
}

CUresult Session::link(WireId context, std::span<const LinkInput> inputs, Bytes options,
                       std::vector<std::byte>& cubin, ModuleSnapshot& logs) {
    std::size_t size = 0;
    for (const LinkInput& input : inputs) {
        size += 4 + 4 + input.name.size() + 8 + input.data.size();
    }
    std::vector<std::byte> body(size);
    protocol::Encoder out{std::span<std::byte>(body)};
    for (const LinkInput& input : inputs) {
        out.put(static_cast<std::uint32_t>(input.type));
        out.put_text(input.name);
        out.put(static_cast<std::uint64_t>(input.data.size()));
        out.put_bytes(input.data.data(), input.data.size());
    }
    std::vector<std::byte> answer;
    const CUresult status = call<Call::link>(context, options, Bytes(body), &answer);
    protocol::Decoder in{Bytes(answer)};
    logs = {};
    if (answer.empty()) {
        return status == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : status;
    }
    if (!decode(in.take_blob(), logs)) {
        return status == CUDA_SUCCESS ? CUDA_ERROR_UNKNOWN : status;
    }
    cubin.assign(in.rest().begin(), in.rest().end());
    return status;
}

CUresult Session::host_function(WireId context, WireId stream, std::function<void()> function) {
    State& state = *state_;
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(state.host_mutex_);
        number = state.next_host_function_++;
        state.host_functions_.emplace(number, std::move(function));
        if (!state.host_thread_.joinable()) {
            state.host_thread_ = std::thread([this, &state] {
                state.run_host_functions(
                    [this](std::uint64_t done) { (void)call<Call::host_function_done>(no_context, done); });
            });
        }
    }
    const CUresult status = call<Call::host_function>(context, stream, number);
    if (status != CUDA_SUCCESS) {
        const std::lock_guard lock(state.host_mutex_);
        state.host_functions_.erase(number);
    }
    return status;
}

void Session::State::run_host_functions(const std::function<void(std::uint64_t)>& done) {
    std::unique_lock lock(host_mutex_);
    while (true) {
        host_ready_.wait(lock, [this] { return host_stop_ || !host_due_.empty(); });
        if (host_stop_) {
            return;
        }
        const std::uint64_t number = host_due_.front();
        host_due_.erase(host_due_.begin());
        auto found = host_functions_.extract(number);
        lock.unlock();
        if (!found.empty()) {
            found.mapped()();
        }
        done(number);
        lock.lock();
    }
}

} // namespace vgpu::client
