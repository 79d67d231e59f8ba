// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/isa.h"

#include "contrib/softgpu/ptx/exec/common.h"

#define SOFTGPU_STRING(x) #x
#define SOFTGPU_NAME(x) SOFTGPU_STRING(x)

namespace softgpu::ptx {

namespace level = SOFTGPU_ISA;

extern const Isa SOFTGPU_ISA_TABLE;
const Isa SOFTGPU_ISA_TABLE = {SOFTGPU_NAME(SOFTGPU_ISA), level::select_int,    level::select_bits,
                               level::select_float,       level::select_half,   level::select_compare,
                               level::select_convert,     level::select_memory, level::select_atomic,
                               level::select_warp,        level::select_move};

} // namespace softgpu::ptx
