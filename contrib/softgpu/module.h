// SPDX-License-Identifier: BSD-3-Clause
// Loaded code: modules (in a context) and libraries (in all contexts), their functions and variables.
#pragma once

#include "contrib/softgpu/context.h"
#include "contrib/softgpu/cuda_api.h"
#include "contrib/softgpu/device.h"
#include "contrib/softgpu/ptx/engine.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace softgpu {

class Module;

// The options of cuModuleLoadDataEx and cuLinkCreate that matter here: where messages go.
class JitOptions {
public:
    JitOptions() = default;
    JitOptions(unsigned count, const CUjit_option* options, void** values); // throws Error
    void info(const std::string& text) { write(info_, text); }
    void error(const std::string& text) { write(error_, text); }
    [[nodiscard]] bool takes_errors() const { return error_.buffer != nullptr && error_.size > 0; }

private:
    struct Log {
        char* buffer = nullptr;
        std::size_t size = 0;
        void** filled = nullptr; // CUDA reports the bytes written in the value that held the size
    };
    static void write(Log& log, const std::string& text);
    Log info_;
    Log error_;
};

// The PTX of an image; a failure goes to the log and is thrown as Error.
[[nodiscard]] std::string ptx_of(const void* image, int capability, JitOptions& options);

class Function {
public:
    Function(Module& module, const ptx::Kernel& kernel) : module_(module), kernel_(kernel) {}
    Function(const Function&) = delete;
    Function& operator=(const Function&) = delete;

    [[nodiscard]] Module& module() const { return module_; }
    [[nodiscard]] const ptx::Kernel& kernel() const { return kernel_; }
    [[nodiscard]] int attribute(CUfunction_attribute attribute) const; // throws Error
    void set_attribute(CUfunction_attribute attribute, int value);     // throws Error
    [[nodiscard]] std::uint32_t max_dynamic_shared() const;

private:
    Module& module_;
    const ptx::Kernel& kernel_;
    mutable std::mutex mutex_;
    std::map<int, int> set_;
};

// The same questions, of a kernel that is on no device yet.
[[nodiscard]] int kernel_attribute(const ptx::Kernel& kernel, CUfunction_attribute attribute,
                                   const Device& device);
void check_settable(const ptx::Kernel& kernel, CUfunction_attribute attribute, int value,
                    const Device& device);

class Module : public std::enable_shared_from_this<Module> {
public:
    // Compiles the PTX, and lists the functions among the driver's handles. Throws Error.
    [[nodiscard]] static std::shared_ptr<Module> load(Context& context, std::string_view ptx,
                                                      JitOptions& options);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] const std::deque<Function>& functions() const { return functions_; }
    [[nodiscard]] Function* find(std::string_view name);
    [[nodiscard]] const ptx::Global* find_global(std::string_view name) const {
        return code_->find_global(name);
    }
    [[nodiscard]] const std::vector<ptx::Global>& globals() const { return code_->globals(); }
    [[nodiscard]] bool uses_heap() const { return uses_heap_; }
    // Takes its handles away. The code stays until launches are done with it.
    void unlist();

private:
    explicit Module(Context& context) : context_(context.shared_from_this()) {}

    std::shared_ptr<Context> context_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> memory_; // address, Allocation::id
    std::unique_ptr<ptx::Module> code_;
    std::deque<Function> functions_;
    bool uses_heap_ = false;
};

class Library;

// A kernel of a library: a Function in each context that uses it.
class LibraryKernel {
public:
    LibraryKernel(Library& library, ptx::Kernel kernel) : library_(library), kernel_(std::move(kernel)) {}
    [[nodiscard]] Library& library() const { return library_; }
    // What it says of itself; not to be launched.
    [[nodiscard]] const ptx::Kernel& kernel() const { return kernel_; }
    [[nodiscard]] std::shared_ptr<Function> function(Context& context); // throws Error
    [[nodiscard]] int attribute(CUfunction_attribute attribute, Device& device);
    void set_attribute(CUfunction_attribute attribute, int value, Device& device);

private:
    Library& library_;
    const ptx::Kernel kernel_;
    std::mutex mutex_;
    std::map<std::pair<int, int>, int> set_; // (device, attribute)
};

class Library : public std::enable_shared_from_this<Library> {
public:
    // `context`: where to compile it first; nullptr: only to see what is in it. Throws Error.
    [[nodiscard]] static std::shared_ptr<Library> load(Context* context, const void* image, int capability,
                                                       JitOptions& options);
    [[nodiscard]] std::shared_ptr<Module> module(Context& context); // throws Error
    [[nodiscard]] LibraryKernel* find(std::string_view name);
    [[nodiscard]] std::deque<LibraryKernel>& kernels() { return kernels_; }
    // The context is gone, or about to be as new.
    void forget(const Context& context);
    void unlist();

private:
    std::string ptx_;
    std::deque<LibraryKernel> kernels_;
    std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<Module>> modules_; // by Context::id()
};

// A function or a kernel, by a handle of either kind: CUkernel may stand where CUfunction is asked. Throws
// Error.
[[nodiscard]] std::shared_ptr<Function> find_function(const void* handle, Context& context);

} // namespace softgpu
