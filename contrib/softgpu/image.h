// SPDX-License-Identifier: BSD-3-Clause
// Finds the PTX in what programs hand over as code: a fatbin, by its wrapper or bare, or PTX text.
#pragma once

#include "contrib/softgpu/cuda_api.h"

#include <stdexcept>
#include <string>

namespace softgpu {

// Why an image cannot be used, in one sentence.
class ImageError : public std::runtime_error {
public:
    ImageError(CUresult code, const std::string& cause) : std::runtime_error(cause), code_(code) {}
    [[nodiscard]] CUresult code() const noexcept { return code_; }

private:
    CUresult code_;
};

// The PTX of the image for a device of this compute capability (10 * major + minor): of several the newest
// that the device takes. `image` is as long as its own headers say; PTX text ends with a NUL. Throws
// ImageError.
[[nodiscard]] std::string find_ptx(const void* image, int capability);

} // namespace softgpu
