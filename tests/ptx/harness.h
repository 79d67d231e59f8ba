// SPDX-License-Identifier: BSD-3-Clause
// A device of a few MiB for tests of the PTX engine.
#pragma once

#include "contrib/softgpu/ptx/engine.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace softgpu::ptx::test {

class Device {
public:
    static constexpr std::uint64_t kBytes = 64U << 20;

    explicit Device(unsigned threads = 2) : pages_(kBytes >> kPageShift, kPageNone) {
        void* memory =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            throw std::runtime_error("mmap");
        base_ = reinterpret_cast<std::uint64_t>(memory);
        engine_ = std::make_unique<Engine>(AddressSpace{base_, kBytes, pages_.data()}, threads);
    }
    ~Device() { munmap(reinterpret_cast<void*>(base_), kBytes); }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    // Whole pages, with one between that is not allocated.
    std::uint64_t allocate(std::uint64_t bytes, PageState state = kPageReadWrite) {
        const std::uint64_t pages = (bytes + 4095) / 4096;
        const std::uint64_t at = next_page_;
        if (at + pages >= pages_.size())
            return 0;
        std::fill_n(pages_.begin() + static_cast<std::ptrdiff_t>(at), pages,
                    static_cast<std::uint8_t>(state));
        next_page_ += pages + 1;
        return base_ + at * 4096;
    }
    template <class T>
    std::uint64_t upload(const std::vector<T>& values) {
        const std::uint64_t at = allocate(values.size() * sizeof(T));
        std::memcpy(reinterpret_cast<void*>(at), values.data(), values.size() * sizeof(T));
        return at;
    }
    template <class T>
    std::vector<T> download(std::uint64_t at, std::size_t count) const {
        std::vector<T> values(count);
        std::memcpy(values.data(), reinterpret_cast<const void*>(at), count * sizeof(T));
        return values;
    }

    std::unique_ptr<Module> load(const std::string& text) {
        return Module::load(text, [this](std::uint64_t bytes, std::uint64_t, bool constant) {
            return allocate(bytes, constant ? kPageReadOnly : kPageReadWrite);
        });
    }

    // Parameters are 8 bytes each.
    LaunchResult launch(const Kernel& kernel, Dim3 grid, Dim3 block,
                        const std::vector<std::uint64_t>& parameters, LaunchOptions options = {},
                        std::uint32_t shared = 0) {
        options.print = [this](std::string_view text) { output += text; };
        options.print_error = [this](std::string_view text) { errors += text; };
        return engine_->launch(kernel, grid, block, shared, std::as_bytes(std::span(parameters)), options);
    }

    Engine& engine() { return *engine_; }
    [[nodiscard]] std::uint64_t base() const { return base_; }
    std::string output, errors;

private:
    std::vector<std::uint8_t> pages_;
    std::uint64_t base_ = 0;
    std::uint64_t next_page_ = 1;
    std::unique_ptr<Engine> engine_;
};

inline const char* kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

} // namespace softgpu::ptx::test
