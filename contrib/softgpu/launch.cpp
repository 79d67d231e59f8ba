// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/launch.h"

#include "contrib/softgpu/driver.h"
#include "contrib/softgpu/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace softgpu {
namespace {

using Parameters = std::vector<std::byte>;

Parameters pack(const ptx::Kernel& kernel, void** parameters, void** extra) {
    require(parameters == nullptr || extra == nullptr);
    Parameters block(kernel.parameter_bytes);
    if (extra != nullptr) {
        const void* buffer = nullptr;
        std::size_t size = 0;
        for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
            if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
                buffer = extra[1];
            else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
                size = *static_cast<std::size_t*>(extra[1]);
            else
                throw Error(CUDA_ERROR_INVALID_VALUE);
        }
        require(size >= block.size() && (buffer != nullptr || block.empty()));
        std::memcpy(block.data(), buffer, block.size());
        return block;
    }
    require(parameters != nullptr || kernel.parameters.empty());
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
        require(parameters[i] != nullptr);
        std::memcpy(block.data() + kernel.parameters[i].offset, parameters[i], kernel.parameters[i].size);
    }
    return block;
}

void check(const Function& function, const LaunchShape& shape) {
    const auto& kernel = function.kernel();
    const auto& device = function.module().context().device();
    const auto fits = [&](std::uint32_t value, int attribute) {
        return value >= 1 && value <= static_cast<std::uint32_t>(device.attribute(attribute));
    };
    require(fits(shape.grid.x, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) &&
            fits(shape.grid.y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) &&
            fits(shape.grid.z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z));
    require(fits(shape.block.x, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) &&
            fits(shape.block.y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) &&
            fits(shape.block.z, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    require(shape.block.count() <=
            static_cast<std::uint64_t>(function.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)));
    const auto& wanted = kernel.required_block;
    require(wanted.count() == 0 ||
            (wanted.x == shape.block.x && wanted.y == shape.block.y && wanted.z == shape.block.z));
    require(shape.dynamic_shared <= function.max_dynamic_shared());
    if (!kernel.unsupported.empty()) {
        complain("kernel " + kernel.name + " cannot run on this device: " + kernel.unsupported);
        throw Error(CUDA_ERROR_NOT_SUPPORTED);
    }
    if (shape.cooperative) {
        const auto resident = resident_blocks(function, shape.block.count(), shape.dynamic_shared);
        require(shape.grid.count() <=
                    static_cast<std::uint64_t>(resident) * static_cast<std::uint64_t>(device.config().sms),
                CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    }
}

CUresult result_of(ptx::Status status) {
    switch (status) {
    case ptx::Status::ok:
        return CUDA_SUCCESS;
    case ptx::Status::illegal_address:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::Status::misaligned_address:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::Status::assert_failed:
        return CUDA_ERROR_ASSERT;
    case ptx::Status::illegal_instruction:
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case ptx::Status::invalid_launch:
        return CUDA_ERROR_INVALID_VALUE;
    case ptx::Status::not_supported:
        return CUDA_ERROR_NOT_SUPPORTED;
    case ptx::Status::stack_overflow:
    case ptx::Status::stopped:
        break;
    }
    return CUDA_ERROR_LAUNCH_FAILED;
}

// What a kernel prints, in few writes. What the program has printed itself before stays in front of it.
class Output {
public:
    explicit Output(int file) : file_(file) {}
    ~Output() { flush(); }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void add(std::string_view text) {
        text_ += text;
        if (text_.size() >= most_)
            flush();
    }

    void flush() {
        if (text_.empty())
            return;
        std::fflush(file_ == STDOUT_FILENO ? stdout : stderr);
        std::string_view left = text_;
        while (!left.empty()) {
            const auto written = ::write(file_, left.data(), left.size());
            if (written < 0 && errno != EINTR)
                break; // nobody reads it
            left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
        }
        text_.clear();
    }

private:
    static constexpr std::size_t most_ = std::size_t{1} << 16;
    int file_;
    std::string text_;
};

CUresult run(const Function& function, const LaunchShape& shape, const Parameters& parameters) {
    auto& context = function.module().context();
    auto& device = context.device();
    ptx::LaunchResult result;
    {
        Output output(STDOUT_FILENO);
        Output errors(STDERR_FILENO);
        ptx::LaunchOptions options;
        options.cooperative = shape.cooperative;
        options.grid_workspace = shape.cooperative ? context.grid_workspace() : 0;
        options.print = [&](std::string_view text) { output.add(text); };
        options.print_error = [&](std::string_view text) { errors.add(text); };
        options.heap = function.module().uses_heap() ? context.heap() : nullptr;
        options.sm_count = static_cast<std::uint32_t>(device.config().sms);
        options.stack_bytes = context.limit(CU_LIMIT_STACK_SIZE);
        options.max_shared_bytes = static_cast<std::uint32_t>(device.resources().shared_bytes_optin);
        const KernelTime time(device.shared());
        result = device.engine().launch(function.kernel(), shape.grid, shape.block, shape.dynamic_shared,
                                        parameters, options);
    }
    if (result.status != ptx::Status::ok && !result.message.empty())
        complain(result.message); // which names the kernel
    return result_of(result.status);
}

} // namespace

void launch(Stream& stream, const std::shared_ptr<Function>& function, const LaunchShape& shape,
            void** parameters, void** extra) {
    require(&function->module().context() == &stream.context(), CUDA_ERROR_INVALID_HANDLE);
    check(*function, shape);
    stream.context().submit(stream, [function, shape, block = pack(function->kernel(), parameters, extra)] {
        return run(*function, shape, block);
    });
}

int resident_blocks(const Function& function, std::uint64_t threads, std::size_t dynamic_shared) {
    const auto& kernel = function.kernel();
    const auto& sm = function.module().context().device().resources();
    const auto per_block =
        function.module().context().device().attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    if (threads == 0 ||
        threads > static_cast<std::uint64_t>(function.attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)) ||
        dynamic_shared > function.max_dynamic_shared())
        return 0;
    const auto warps = (threads + 31) / 32;
    auto blocks = std::min<std::uint64_t>(static_cast<std::uint64_t>(sm.blocks),
                                          static_cast<std::uint64_t>(sm.threads) / 32 / warps);
    // Registers are given to warps by 256, shared memory by 128 bytes.
    const auto registers = (std::max<std::uint64_t>(kernel.registers, 1) * 32 + 255) / 256 * 256 * warps;
    blocks = std::min(blocks, static_cast<std::uint64_t>(sm.registers) / registers);
    const auto shared =
        (kernel.static_shared_bytes + dynamic_shared + static_cast<std::size_t>(per_block) + 127) / 128 * 128;
    if (shared != 0)
        blocks = std::min(blocks, static_cast<std::uint64_t>(sm.shared_bytes) / shared);
    return static_cast<int>(blocks);
}

} // namespace softgpu
