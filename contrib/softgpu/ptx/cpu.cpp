// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/isa.h"

#include <cstdlib>
#include <string_view>

namespace softgpu::ptx {

const Isa& best_isa() {
    static const Isa& best = []() -> const Isa& {
        const char* wish = std::getenv("SOFTGPU_ISA");
        __builtin_cpu_init();
        const bool v3 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                        __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                        __builtin_cpu_supports("popcnt") != 0;
        return v3 && (wish == nullptr || std::string_view(wish) != "v1") ? isa_v3 : isa_v1;
    }();
    return best;
}

} // namespace softgpu::ptx
