// SPDX-License-Identifier: BSD-3-Clause
// Every name that a program can be linked to is there. A function that no other file defines is the weak one
// here and says that it is not supported. Written without cuda.h, so that the names are the linker's and
// nothing else.

namespace {
constexpr int not_supported = 801; // CUDA_ERROR_NOT_SUPPORTED
}

#define CUDA_EXPORT(symbol)                                                                                  \
    extern "C" __attribute__((weak, visibility("default"))) int symbol() {                                   \
        return not_supported;                                                                                \
    }
#include "build-aux/cuda_api.inc"
