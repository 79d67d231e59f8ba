// SPDX-License-Identifier: BSD-3-Clause
// How a call over the control plane ends: a value, or one sentence meant for the user. No exceptions, because
// callers live inside slurmstepd.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace vgpu::control {

enum class ErrorKind {
    refused,     ///< the request itself is wrong or not allowed; asking again does not help
    no_room,     ///< the pool is full at the moment; asking again later may help
    not_ready,   ///< vgpuctld has just started and does not know all nodes yet; ask again soon
    unreachable, ///< no daemon answered
    internal,    ///< the other side failed, or answered what cannot be understood or trusted
};

struct Error {
    ErrorKind kind = ErrorKind::internal;
    std::string message; ///< one sentence: what is wrong, where, and what would be right
};

struct Nothing {};

/// Either a T or an Error. value() and error() must match ok().
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }
    const T& value() const& { return std::get<0>(state_); }
    T&& value() && { return std::get<0>(std::move(state_)); }
    const T& operator*() const& { return value(); }
    const T* operator->() const { return &value(); }
    const Error& error() const { return std::get<1>(state_); }

private:
    std::variant<T, Error> state_;
};

} // namespace vgpu::control
