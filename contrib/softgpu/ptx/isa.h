// SPDX-License-Identifier: BSD-3-Clause
// The handlers of one level of the x86-64 instruction set.
#pragma once

#include "contrib/softgpu/ptx/program.h"

namespace softgpu::ptx {

struct Isa {
    const char* name;
    Handler (*select_int)(const Op&, Instr&);
    Handler (*select_bits)(const Op&, Instr&);
    Handler (*select_float)(const Op&, Instr&);
    Handler (*select_half)(const Op&, Instr&);
    Handler (*select_compare)(const Op&, Instr&);
    Handler (*select_convert)(const Op&, Instr&, unsigned d_size, unsigned a_size);
    Handler (*select_memory)(const Op&, Instr&, unsigned register_size);
    Handler (*select_atomic)(const Op&, Instr&);
    Handler (*select_warp)(const Op&, Instr&);
    Handler (*select_move)(const Op&, Instr&, unsigned element_size, bool pack);
};

extern const Isa isa_v1; // any x86-64
extern const Isa isa_v3; // AVX2, FMA

// The best this CPU runs; the environment variable SOFTGPU_ISA=v1 asks for less.
[[nodiscard]] const Isa& best_isa();

} // namespace softgpu::ptx
