// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/isa.h"

#include <cstdlib>
#include <string_view>

namespace softgpu::ptx {

const Isa& best_isa() {
    static const Isa& best = []() -> const Isa& {
        const char* wish = std::getenv("SOFTGPU_ISA");
        const std::string_view most = wish != nullptr ? wish : "v4";
        __builtin_cpu_init();
        const bool v3 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                        __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                        __builtin_cpu_supports("popcnt") != 0;
        const bool v4 = v3 && __builtin_cpu_supports("avx512f") != 0 &&
                        __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                        __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512cd") != 0;
        if (v4 && most == "v4")
            return isa_v4;
        return v3 && most != "v1" ? isa_v3 : isa_v1;
    }();
    return best;
}

} // namespace softgpu::ptx
