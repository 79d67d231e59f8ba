// SPDX-License-Identifier: BSD-3-Clause
#include "topology/placement.h"

#include <algorithm>

namespace vgpu {
namespace {

std::string gpu_name(const FreeGpu& gpu) {
    return gpu.node + " gpu " + std::to_string(gpu.index);
}

/// The part of the sentence that tells what stood in the way, for requests of one vGPU.
std::string what_is_free(const std::vector<FreeGpu>& gpus, const Shape& shape, std::uint64_t memory_mib) {
    auto most_shares = std::max_element(
        gpus.begin(), gpus.end(), [](const FreeGpu& a, const FreeGpu& b) { return a.shares < b.shares; });
    if (most_shares->shares < shape.shares)
        return "at most " + std::to_string(most_shares->shares) + " free on one GPU (" +
               gpu_name(*most_shares) + ")";
    // There are enough shares somewhere, so memory was short wherever they were.
    const FreeGpu* most_memory = nullptr;
    for (const auto& gpu : gpus)
        if (gpu.shares >= shape.shares &&
            (most_memory == nullptr || gpu.memory_mib > most_memory->memory_mib))
            most_memory = &gpu;
    return "at most " + std::to_string(most_memory->memory_mib) +
           " MiB free on a GPU with so many free shares (" + gpu_name(*most_memory) + ")" +
           (memory_mib == 0
                ? ", less than the " + std::to_string(shape.shares) + " shares' part of its memory"
                : "");
}

} // namespace

std::vector<Place> place(const std::vector<FreeGpu>& gpus, const Shape& shape, std::uint64_t memory_mib,
                         unsigned shares_per_gpu) {
    std::vector<Place> places;
    for (std::size_t i = 0; i < gpus.size() && places.size() < shape.devices; ++i) {
        const auto& gpu = gpus[i];
        auto memory =
            memory_mib != 0 ? memory_mib : proportional_mib(shape.shares, shares_per_gpu, gpu.total_mib);
        if (gpu.shares >= shape.shares && gpu.memory_mib >= memory)
            places.push_back({i, shape.shares, memory});
    }
    if (places.size() == shape.devices)
        return places;

    std::string asked = share_count(shape.shares);
    if (memory_mib != 0)
        asked += " with " + std::to_string(memory_mib) + " MiB";
    if (gpus.empty())
        throw NoRoom("no room: " + asked +
                     " asked, and no GPU is in the pool at the moment: is vgpud running on the GPU nodes?");
    if (shape.devices == 1)
        throw NoRoom("no room: " + asked + " asked, " + what_is_free(gpus, shape, memory_mib));
    throw NoRoom("no room: " + std::to_string(shape.devices) + " GPUs with " + asked + " each asked, " +
                 (places.empty() ? "none has"
                                 : std::to_string(places.size()) + (places.size() == 1 ? " has" : " have")) +
                 " that free at the moment (of " + std::to_string(gpus.size()) + " in the pool)");
}

std::string never_fits(const std::vector<FreeGpu>& gpus, const Shape& shape, std::uint64_t memory_mib) {
    if (gpus.size() < shape.devices)
        return std::to_string(shape.devices) + " vGPUs need as many GPUs, and the pool has " +
               std::to_string(gpus.size()) + ": ask fewer";
    std::uint64_t largest = 0;
    std::size_t enough = 0;
    for (const auto& gpu : gpus) {
        largest = std::max(largest, gpu.total_mib);
        enough += gpu.total_mib >= memory_mib;
    }
    if (enough >= shape.devices)
        return "";
    if (enough == 0)
        return std::to_string(memory_mib) + " MiB are more than any GPU of the pool has: ask at most " +
               std::to_string(largest) + "M";
    return std::to_string(memory_mib) + " MiB on each of " + std::to_string(shape.devices) +
           " GPUs asked, and only " + std::to_string(enough) + " of the pool " +
           (enough == 1 ? "has" : "have") + " so much: ask less memory or fewer devices";
}

} // namespace vgpu
