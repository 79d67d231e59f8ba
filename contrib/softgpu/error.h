// SPDX-License-Identifier: BSD-3-Clause
// How errors travel: inside the library as exceptions, at its boundary as the CUresult of the call.
#pragma once

#include "contrib/softgpu/cuda_api.h"

#include <exception>
#include <string>

namespace softgpu {

// Thrown by whatever finds the error, turned into a result by call() (call.h).
class Error : public std::exception {
public:
    explicit Error(CUresult code) : code_(code) {}
    [[nodiscard]] CUresult code() const noexcept { return code_; }
    [[nodiscard]] const char* what() const noexcept override;

private:
    CUresult code_;
};

// The names and descriptions of all results; nullptr where the code is none.
[[nodiscard]] const char* error_name(int code) noexcept;
[[nodiscard]] const char* error_description(int code) noexcept;

inline void require(bool condition, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
    if (!condition)
        throw Error(otherwise);
}

// One line on stderr, "softgpu: " in front. For what a result code cannot say: why an image was refused,
// which setting is wrong.
void complain(const std::string& sentence);

} // namespace softgpu
