// SPDX-License-Identifier: BSD-3-Clause
// Runs a few lines of PTX over a table of operands, a thread a row, and gives the results.
#pragma once

#include "tests/ptx/harness.h"

#include <array>
#include <bit>

namespace softgpu::ptx::test {

using Operands = std::array<std::uint64_t, 3>; // bits, in the low part

// Text works on registers a, b, c of type `source` (or as `third` says for c) and leaves its result in d of
// type `result`; p and q are predicates, t and u 32-bit registers to use freely.
struct Operation {
    std::string text;
    std::string result;
    std::string source;
    std::string second = {}; // of b, as source if empty
    std::string third = {};  // of c
};

inline std::string loads(const std::string& type, const char* name, int offset) {
    return "ld.global." + type + " " + name + ", [in+" + std::to_string(offset) + "];\n";
}

inline std::vector<std::uint64_t> run(const Operation& op, const std::vector<Operands>& operands) {
    Device device;
    const std::string second = op.second.empty() ? op.source : op.second;
    const std::string third = op.third.empty() ? op.source : op.third;
    const std::string text = std::string(kHeader) + R"(
.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u64 pn)
{
    .reg .u64 in, out, n, i, off; .reg .u32 x, y, z, t, u, v; .reg .pred p, q, r;
    .reg .)" + op.result + " d; .reg ." +
                             op.source + " a; .reg ." + second + " b; .reg ." + third + R"( c;
    ld.param.u64 in, [pin]; ld.param.u64 out, [pout]; ld.param.u64 n, [pn];
    mov.u32 x, %ctaid.x; mov.u32 y, %ntid.x; mov.u32 z, %tid.x; mad.lo.u32 x, x, y, z;
    cvt.u64.u32 i, x;
    setp.ge.u64 p, i, n;
    @p exit;
    mad.lo.u64 in, i, 24, in; mad.lo.u64 out, i, 8, out;
)" + loads(op.source, "a", 0) +
                             loads(second, "b", 8) + loads(third, "c", 16) + op.text + "\nst.global." +
                             op.result + " [out], d;\nret;\n}\n";
    const auto module = device.load(text);
    const std::uint64_t in = device.upload(operands);
    const std::uint64_t out = device.upload(std::vector<std::uint64_t>(operands.size()));
    const Kernel& kernel = module->kernels().at(0);
    const auto blocks = static_cast<std::uint32_t>((operands.size() + 127) / 128);
    const LaunchResult result =
        device.launch(kernel, {blocks, 1, 1}, {128, 1, 1}, {in, out, operands.size()});
    if (result.status != Status::ok)
        throw std::runtime_error(op.text + ": " + result.message);
    return device.download<std::uint64_t>(out, operands.size());
}

// All pairs, or triples, of interesting values.
inline std::vector<Operands> cross(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b,
                                   const std::vector<std::uint64_t>& c = {0}) {
    std::vector<Operands> all;
    for (const std::uint64_t x : a)
        for (const std::uint64_t y : b)
            for (const std::uint64_t z : c)
                all.push_back({x, y, z});
    return all;
}

inline std::uint64_t f32(float v) {
    return std::bit_cast<std::uint32_t>(v);
}
inline std::uint64_t f64(double v) {
    return std::bit_cast<std::uint64_t>(v);
}
inline float as_f32(std::uint64_t v) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(v));
}
inline double as_f64(std::uint64_t v) {
    return std::bit_cast<double>(v);
}

} // namespace softgpu::ptx::test
