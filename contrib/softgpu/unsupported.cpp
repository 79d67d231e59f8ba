// SPDX-License-Identifier: BSD-3-Clause
// Every name of the driver API, for those that nothing else defines: a program that is linked to one still
// starts, and gets CUDA_ERROR_NOT_SUPPORTED if it calls it. The definitions are weak, so that a real one
// takes their place. cuda.h is not included: the types would not fit, nor do they matter.
namespace {
constexpr int not_supported = 801; // CUDA_ERROR_NOT_SUPPORTED
}

#define CUDA_EXPORT(symbol)                                                                                  \
    extern "C" __attribute__((weak, visibility("default"))) int symbol();                                    \
    extern "C" int symbol() {                                                                                \
        return not_supported;                                                                                \
    }
#include "build-aux/cuda_api.inc"
