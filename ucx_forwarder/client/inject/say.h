// SPDX-License-Identifier: BSD-3-Clause
// One sentence on stderr, without stdio: inside the dynamic loader there may be none yet.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstring>

namespace vgpu::inject {

template <typename... Texts>
void say(Texts... texts) {
    std::array<const char*, sizeof...(texts) + 2> parts{"vgpu: ", texts..., "\n"};
    std::array<iovec, sizeof...(texts) + 2> io;
    for (std::size_t i = 0; i < parts.size(); ++i)
        io[i] = {const_cast<char*>(parts[i] ? parts[i] : "?"), parts[i] ? strlen(parts[i]) : 1};
    [[maybe_unused]] auto written = writev(2, io.data(), io.size());
}

} // namespace vgpu::inject
