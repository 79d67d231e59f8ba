// SPDX-License-Identifier: BSD-3-Clause
#include "spank/environment.h"

namespace vgpu::spank {

std::string without_ours(std::string_view list) {
    std::string kept;
    while (!list.empty()) {
        const auto end = list.find(':');
        const auto entry = list.substr(0, end);
        list = end == list.npos ? std::string_view{} : list.substr(end + 1);
        const auto slash = entry.rfind('/');
        const auto base = slash == entry.npos ? entry : entry.substr(slash + 1);
        if (entry.empty() || base == audit_library)
            continue;
        if (!kept.empty())
            kept += ':';
        kept += entry;
    }
    return kept;
}

std::string with_ours(std::string_view list, const std::string& client_dir) {
    std::string all = without_ours(list);
    if (!all.empty())
        all += ':';
    return all + client_dir + "/" + std::string(audit_library);
}

} // namespace vgpu::spank
