// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/client/inject/redirect.h"

#include "ucx_forwarder/client/inject/elf_file.h"
#include "ucx_forwarder/client/inject/say.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

// Entered by a jump from a runtime function's first instruction, the slot's address in r11: finds the
// function's real target and goes there with every argument register as the caller left it.
asm(R"(
    .text
    .type vgpu_inject_resolver, @function
vgpu_inject_resolver:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    and $-16, %rsp
    sub $192, %rsp
    mov %rdi, 0(%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    mov %rax, 48(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    mov %r11, %rdi
    call vgpu_inject_resolve
    mov %rax, %r11
    mov 0(%rsp), %rdi
    mov 8(%rsp), %rsi
    mov 16(%rsp), %rdx
    mov 24(%rsp), %rcx
    mov 32(%rsp), %r8
    mov 40(%rsp), %r9
    mov 48(%rsp), %rax
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
    leave
    .cfi_def_cfa %rsp, 8
    jmp *%r11
    .cfi_endproc
    .size vgpu_inject_resolver, .-vgpu_inject_resolver
)");
extern "C" void vgpu_inject_resolver();
extern "C" void* vgpu_inject_resolve(std::atomic<void*>* slot);

namespace vgpu::inject {
namespace {

constexpr std::size_t max_functions = 1024; // CUDA 13.0's runtime has 423
constexpr std::size_t jump_size = 13;

struct Function {
    char name[64];
    std::atomic<void*> target; ///< the slot
};

// An audit library has no other place for these than the process: its functions get no context of their own.
std::array<Function, max_functions> functions;
std::size_t function_count = 0;
const char* runtime_path = nullptr;

/// The names that our libcudart exports, in order. Once.
bool learn_functions(const char* runtime) {
    if (function_count != 0)
        return true;
    ElfFile file(runtime);
    auto* table = file.section_of_type(SHT_DYNSYM);
    std::size_t count = 0;
    for (auto& symbol : file.symbols(table)) {
        std::string_view name = file.name(table, symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
            !(name.starts_with("cuda") || name.starts_with("__cuda")) ||
            name.size() >= sizeof(Function::name))
            continue;
        if (count == max_functions)
            return false;
        memcpy(functions[count].name, name.data(), name.size());
        functions[count++].target = reinterpret_cast<void*>(&vgpu_inject_resolver);
    }
    runtime_path = runtime;
    function_count = count;
    return count != 0;
}

Function* find_function(std::string_view name) {
    for (std::size_t i = 0; i < function_count; ++i)
        if (name == functions[i].name)
            return &functions[i];
    return nullptr;
}

/// Functions that came or went with a major version (CUDA 12, 13, 12.9): a runtime that disagrees with ours
/// about one of them is of another version, whose structures (cudaDeviceProp) have another shape.
constexpr std::string_view version_marks[] = {"cudaBindTexture", "cudaThreadExit", "cudaLogsCurrent"};

/// movabs $slot, %r11; jmp *(%r11). r11 carries no argument, and the resolver learns from it which slot it
/// was.
void write_jump(std::byte* entry, const std::atomic<void*>* slot) {
    const std::uint8_t movabs[] = {0x49, 0xbb}, jump[] = {0x41, 0xff, 0x23};
    memcpy(entry, movabs, sizeof movabs);
    memcpy(entry + sizeof movabs, &slot, sizeof slot);
    memcpy(entry + sizeof movabs + sizeof slot, jump, sizeof jump);
    static_assert(sizeof movabs + sizeof slot + sizeof jump == jump_size);
}

} // namespace

Redirect redirect_static_runtime(const char* path, std::size_t base, const char* runtime) {
    ElfFile file(path);
    // Every object with device code has this section, and only such: all others are done here.
    if (!file.section(".nvFatBinSegment"))
        return Redirect::none;
    auto* dynamic = file.section_of_type(SHT_DYNSYM);
    for (auto& symbol : file.symbols(dynamic))
        if (symbol.st_shndx == SHN_UNDEF &&
            strcmp(file.name(dynamic, symbol), "__cudaRegisterFatBinary") == 0)
            return Redirect::none; // a shared runtime, which la_objsearch replaces
    auto* table = file.section_of_type(SHT_SYMTAB);
    auto symbols = file.symbols(table);
    if (symbols.empty())
        return Redirect::stripped;
    if (!learn_functions(runtime))
        return Redirect::failed;

    auto each = [&](auto&& apply) {
        for (auto& symbol : symbols) {
            std::string_view name = file.name(table, symbol);
            if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
                !(name.starts_with("cuda") || name.starts_with("__cuda")))
                continue;
            // Names that we do not export are the program's own (nvcc's __cudaUnregisterBinaryUtil).
            if (auto* function = find_function(name))
                apply(symbol, *function);
        }
    };
    for (auto mark : version_marks) {
        auto is_mark = [&](const Elf64_Sym& s) {
            return s.st_shndx != SHN_UNDEF && file.name(table, s) == mark;
        };
        if (std::any_of(symbols.begin(), symbols.end(), is_mark) != (find_function(mark) != nullptr))
            return Redirect::version;
    }
    std::size_t low = SIZE_MAX, high = 0;
    bool fits = true;
    each([&](const Elf64_Sym& symbol, Function&) {
        low = std::min<std::size_t>(low, symbol.st_value);
        high = std::max<std::size_t>(high, symbol.st_value + jump_size);
        // The runtime's functions are aligned to 16 bytes, so that a short one has room behind it.
        fits = fits && (symbol.st_size >= jump_size || symbol.st_value % 16 == 0);
    });
    if (low > high)
        return Redirect::none; // device code, but all runtime functions are elsewhere (a relocatable
                               // library's part)
    if (!fits)
        return Redirect::failed;

    const std::size_t page = sysconf(_SC_PAGESIZE);
    auto* begin = reinterpret_cast<std::byte*>((base + low) & ~(page - 1));
    auto* end = reinterpret_cast<std::byte*>((base + high + page - 1) & ~(page - 1));
    if (mprotect(begin, end - begin, PROT_READ | PROT_WRITE) != 0)
        return Redirect::failed;
    each([&](const Elf64_Sym& symbol, Function& function) {
        write_jump(reinterpret_cast<std::byte*>(base + symbol.st_value), &function.target);
    });
    if (mprotect(begin, end - begin, PROT_READ | PROT_EXEC) != 0)
        return Redirect::failed;
    return Redirect::done;
}

} // namespace vgpu::inject

/// Any thread, any number of them at once: dlmopen and dlsym are idempotent here, and a slot changes once.
void* vgpu_inject_resolve(std::atomic<void*>* slot) {
    using namespace vgpu::inject;
    auto* function = reinterpret_cast<Function*>(reinterpret_cast<char*>(slot) - offsetof(Function, target));
    void* runtime = dlmopen(LM_ID_BASE, runtime_path, RTLD_NOW | RTLD_LOCAL);
    void* target = runtime ? dlsym(runtime, function->name) : nullptr;
    if (!target) {
        // There is no way to tell the caller: runtime functions return errors, strings and nothing.
        say("cannot load the CUDA runtime for this program: ", dlerror());
        _exit(127);
    }
    slot->store(target);
    return target;
}
