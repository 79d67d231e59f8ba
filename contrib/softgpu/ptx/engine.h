// SPDX-License-Identifier: BSD-3-Clause
// The PTX engine: loads PTX text and runs its kernels on CPU threads. It knows nothing of the driver API on
// top.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace softgpu::ptx {

// ---- memory ----

inline constexpr unsigned kPageShift = 12;

enum PageState : std::uint8_t { kPageNone = 0, kPageReadWrite = 1, kPageReadOnly = 2 };

// The device's memory as a kernel sees it: one reserved range in which a device pointer is also the host
// pointer. The owner keeps the *whole* range mapped readable and writable for as long as kernels run (an
// access is allowed or refused by `pages` alone), and changes `pages` only for memory that no running kernel
// uses.
struct AddressSpace {
    std::uint64_t base = 0;              // page-aligned
    std::uint64_t size = 0;              // bytes, a multiple of the page size
    const std::uint8_t* pages = nullptr; // one PageState per 4 KiB page of the range
};

// Generic addresses of shared, local and kernel parameter memory, and of functions. The AddressSpace must not
// overlap [kWindowsBegin, kWindowsEnd).
inline constexpr std::uint64_t kWindowsBegin = 0x0010'0000'0000;
inline constexpr std::uint64_t kSharedWindow = kWindowsBegin;
inline constexpr std::uint64_t kLocalWindow = 0x0011'0000'0000;
inline constexpr std::uint64_t kParamWindow = 0x0012'0000'0000;
inline constexpr std::uint64_t kCodeWindow = 0x0013'0000'0000;
inline constexpr std::uint64_t kWindowsEnd = 0x0014'0000'0000;

// What a kernel's malloc and free work on: a piece of device memory, kept from launch to launch. Thread-safe.
class DeviceHeap {
public:
    DeviceHeap(std::uint64_t base, std::uint64_t size);
    // 16-byte aligned; 0 when there is no room.
    [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes);
    // False if `address` was not given by allocate().
    bool release(std::uint64_t address);

private:
    std::mutex mutex_;
    std::map<std::uint64_t, std::uint64_t> free_; // begin -> bytes
    std::map<std::uint64_t, std::uint64_t> used_;
};

// ---- modules ----

class ParseError : public std::runtime_error {
public:
    ParseError(int line, const std::string& cause);
    [[nodiscard]] int line() const { return line_; } // 1-based, 0 if it concerns the whole text

private:
    int line_;
};

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
    [[nodiscard]] std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

struct Parameter {
    std::uint32_t offset = 0, size = 0, align = 1; // bytes, in the packed parameter block
};

struct Program;  // a compiled module (internal)
struct Function; // a compiled function (internal)

struct Kernel {
    std::string name; // mangled, as in the PTX
    std::vector<Parameter> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t static_shared_bytes = 0;
    std::uint32_t local_bytes = 0;
    std::uint32_t registers = 0;         // an estimate of 32-bit registers a thread, for cuFuncGetAttribute
    std::uint32_t max_threads = 1024;    // from .maxntid or .reqntid, else 1024
    std::uint32_t min_blocks_per_sm = 0; // .minnctapersm
    Dim3 required_block{0, 0, 0};        // .reqntid, zeros if not given
    int target = 0;                      // 75 for sm_75
    int ptx_version = 0;                 // 64 for 6.4
    std::string unsupported;             // not empty: why a launch of this kernel will be refused
    const Program* program = nullptr;    // internal
    const Function* function = nullptr;  // internal
};

struct Global {
    std::string name;
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    bool constant = false;
    bool managed = false;
};

// Gives device memory for a module's variables (device pointer == host pointer), 0 when there is none. The
// memory stays the caller's, who frees it after the Module. Called at most twice a module: the variables, the
// constants.
using GlobalAllocator = std::function<std::uint64_t(std::uint64_t bytes, std::uint64_t align, bool constant)>;

class Module {
public:
    // Parses and compiles PTX text and writes the initial values of its variables. Throws ParseError, and
    // std::bad_alloc when the allocator gave nothing. A kernel with an instruction that is not supported
    // still loads; see Kernel::unsupported. The text need not outlive the call.
    [[nodiscard]] static std::unique_ptr<Module> load(std::string_view text, const GlobalAllocator& allocate);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    [[nodiscard]] const std::vector<Kernel>& kernels() const;
    [[nodiscard]] const std::vector<Global>& globals() const;
    // nullptr if there is none of that name.
    [[nodiscard]] const Kernel* find_kernel(std::string_view name) const;
    [[nodiscard]] const Global* find_global(std::string_view name) const;

private:
    explicit Module(std::unique_ptr<Program> program);
    std::unique_ptr<Program> program_;
};

// ---- launches ----

enum class Status {
    ok,
    illegal_address,     // CUDA_ERROR_ILLEGAL_ADDRESS
    misaligned_address,  // CUDA_ERROR_MISALIGNED_ADDRESS
    assert_failed,       // CUDA_ERROR_ASSERT
    illegal_instruction, // trap, deadlocked barriers, call through a bad pointer:
                         // CUDA_ERROR_ILLEGAL_INSTRUCTION
    stack_overflow,      // CUDA_ERROR_LAUNCH_FAILED
    stopped,             // LaunchOptions::stop was set
    invalid_launch,      // grid, block, shared memory or parameters do not fit the kernel
    not_supported        // Kernel::unsupported
};

struct LaunchResult {
    Status status = Status::ok;
    std::string message;       // one sentence for the log; empty when ok
    std::uint64_t address = 0; // of an illegal or misaligned access
};

struct LaunchOptions {
    bool cooperative = false; // all blocks are resident and take turns, so that grid.sync works
    // Where printf's output (and the assertion's message) goes, whole formatted pieces at a time, one call at
    // a time.
    std::function<void(std::string_view)> print;       // default: stdout
    std::function<void(std::string_view)> print_error; // default: stderr
    const std::atomic<bool>* stop = nullptr; // set to true: the launch ends soon with Status::stopped
    DeviceHeap* heap = nullptr;              // nullptr: malloc in kernels gives NULL
    // %envreg1 (high half) and %envreg2: where the barrier of grid.sync is kept, as cooperative_groups asks
    // for.
    std::uint64_t grid_workspace = 0;
    std::uint32_t sm_count = 16;                 // %nsmid
    std::uint64_t stack_bytes = 1024;            // cudaLimitStackSize, per thread
    std::uint32_t max_shared_bytes = 0xffffffff; // static + dynamic, more is Status::invalid_launch
};

// Runs kernels. launch() may be called from several threads at once; the launches then share the CPU threads.
class Engine {
public:
    // threads: CPU threads blocks run on, at least 1.
    Engine(const AddressSpace& space, unsigned threads);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Returns when the grid has ended. `parameters` is the packed parameter block (Kernel::parameters).
    // A faulting kernel never harms the process.
    [[nodiscard]] LaunchResult launch(const Kernel& kernel, const Dim3& grid, const Dim3& block,
                                      std::uint32_t dynamic_shared_bytes,
                                      std::span<const std::byte> parameters, const LaunchOptions& options);

private:
    struct Pool;
    AddressSpace space_;
    std::unique_ptr<Pool> pool_;
};

} // namespace softgpu::ptx
