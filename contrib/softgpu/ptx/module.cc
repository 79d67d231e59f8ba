// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/ptx/engine.h"

namespace softgpu::ptx {

struct Program {
    std::vector<Kernel> kernels;
    std::vector<Global> globals;
};

ParseError::ParseError(int line, const std::string& cause)
    : std::runtime_error(line > 0 ? "PTX line " + std::to_string(line) + ": " + cause : "PTX: " + cause),
      line_(line) {}

Module::Module(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Module::~Module() = default;

std::unique_ptr<Module> Module::load(std::string_view, const GlobalAllocator&) {
    throw ParseError(0, "the compiler is not in this build");
}
const std::vector<Kernel>& Module::kernels() const {
    return program_->kernels;
}
const std::vector<Global>& Module::globals() const {
    return program_->globals;
}
const Kernel* Module::find_kernel(std::string_view name) const {
    for (const Kernel& kernel : program_->kernels)
        if (kernel.name == name)
            return &kernel;
    return nullptr;
}
const Global* Module::find_global(std::string_view name) const {
    for (const Global& global : program_->globals)
        if (global.name == name)
            return &global;
    return nullptr;
}

struct Engine::Pool {};
Engine::Engine(const AddressSpace& space, unsigned) : space_(space) {}
Engine::~Engine() = default;
LaunchResult Engine::launch(const Kernel& kernel, const Dim3&, const Dim3&, std::uint32_t,
                            std::span<const std::byte>, const LaunchOptions&) {
    return {Status::not_supported, kernel.name + " cannot run: the interpreter is not in this build", 0};
}

} // namespace softgpu::ptx
