// SPDX-License-Identifier: BSD-3-Clause
// Modules and the JIT linker.
#include "ucx_forwarder/protocol/jit_options.h"
#include "ucx_forwarder/worker/executor.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

namespace vgpu::worker {

namespace {

/// Options whose value is a number. Any other could be a pointer, and the client's pointers mean nothing
/// here.
bool has_plain_value(CUjit_option option) {
    switch (option) {
    case CU_JIT_MAX_REGISTERS:
    case CU_JIT_THREADS_PER_BLOCK:
    case CU_JIT_WALL_TIME:
    case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
    case CU_JIT_OPTIMIZATION_LEVEL:
    case CU_JIT_TARGET_FROM_CUCONTEXT:
    case CU_JIT_TARGET:
    case CU_JIT_FALLBACK_STRATEGY:
    case CU_JIT_GENERATE_DEBUG_INFO:
    case CU_JIT_LOG_VERBOSE:
    case CU_JIT_GENERATE_LINE_INFO:
    case CU_JIT_CACHE_MODE:
        return true;
    default:
        return false;
    }
}

/// The client's options with log buffers of ours.
class JitCall {
public:
    explicit JitCall(Bytes encoded) {
        std::vector<protocol::JitOption> options;
        if (!decode_jit_options(encoded, options)) {
            throw ProtocolError("the options of a module cannot be read");
        }
        for (const protocol::JitOption& option : options) {
            if (!has_plain_value(option.option)) {
                continue;
            }
            if (option.option == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
                add_log(info_, CU_JIT_INFO_LOG_BUFFER, option);
            } else if (option.option == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
                add_log(error_, CU_JIT_ERROR_LOG_BUFFER, option);
            } else {
                add(option.option, option.value);
            }
        }
    }
    unsigned count() const { return static_cast<unsigned>(options_.size()); }
    CUjit_option* options() { return options_.data(); }
    void** values() { return values_.data(); }

    void results(protocol::ModuleSnapshot& out) const {
        out.info_log = text(info_);
        out.error_log = text(error_);
        const auto time = std::find(options_.begin(), options_.end(), CU_JIT_WALL_TIME);
        if (time != options_.end()) {
            std::memcpy(&out.wall_time_ms, &values_[static_cast<std::size_t>(time - options_.begin())],
                        sizeof out.wall_time_ms);
        }
    }

private:
    void add(CUjit_option option, std::uint64_t value) {
        options_.push_back(option);
        values_.push_back(reinterpret_cast<void*>(value));
    }
    void add_log(std::string& log, CUjit_option buffer, const protocol::JitOption& size) {
        log.assign(std::min(size.value, protocol::max_jit_log), '\0');
        add(buffer, reinterpret_cast<std::uintptr_t>(log.data()));
        add(size.option, log.size());
    }
    static std::string text(const std::string& log) {
        return log.substr(0, std::min(log.find('\0'), log.size()));
    }

    std::vector<CUjit_option> options_;
    std::vector<void*> values_;
    std::string info_;
    std::string error_;
};

protocol::ImageHash hash_of(Bytes bytes) {
    protocol::ImageHash hash{};
    if (bytes.size() != hash.size()) {
        throw ProtocolError("the hash of a module has the wrong size");
    }
    std::memcpy(hash.data(), bytes.data(), hash.size());
    return hash;
}

} // namespace

CUresult Executor::module_snapshot(CUmodule handle, ModuleState& module, protocol::ModuleSnapshot& out) {
    unsigned count = 0;
    CUresult status = driver_->cuModuleGetFunctionCount(&count, handle);
    if (status == CUDA_ERROR_NOT_SUPPORTED) {
        out.error_log +=
            "the driver on the GPU node cannot list a module's kernels; it must be 550 (CUDA 12.4) or newer";
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    std::vector<CUfunction> functions(std::min(count, protocol::max_kernels));
    status = functions.empty() ? CUDA_SUCCESS
                               : driver_->cuModuleEnumerateFunctions(
                                     functions.data(), static_cast<unsigned>(functions.size()), handle);
    for (std::size_t i = 0; i < functions.size() && status == CUDA_SUCCESS; ++i) {
        protocol::KernelSnapshot kernel;
        const char* name = nullptr;
        status = driver_->cuFuncGetName(&name, functions[i]);
        if (status != CUDA_SUCCESS || name == nullptr) {
            continue;
        }
        kernel.name = name;
        kernel.attributes.resize(CU_FUNC_ATTRIBUTE_MAX);
        for (int which = 0; which < CU_FUNC_ATTRIBUTE_MAX; ++which) {
            int value = 0;
            if (driver_->cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(which), functions[i]) ==
                CUDA_SUCCESS) {
                kernel.attributes[static_cast<std::size_t>(which)] = value;
            }
        }
        constexpr std::size_t max_parameters = 4096;
        for (std::size_t p = 0; p < max_parameters; ++p) {
            std::size_t offset = 0;
            std::size_t size = 0;
            if (driver_->cuFuncGetParamInfo(functions[i], p, &offset, &size) != CUDA_SUCCESS) {
                break; // CUDA_ERROR_INVALID_VALUE: no further parameter
            }
            kernel.parameters.push_back(
                {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
        }
        module.kernels.push_back({functions[i], kernel.parameters, kernel.parameter_bytes()});
        out.kernels.push_back(std::move(kernel));
    }
    return status;
}

template <>
CUresult Executor::special<Call::image_part>(const Record&, Arguments<Call::image_part>& arguments) {
    auto& [hash, size, offset, part] = arguments;
    if (!images_.add_part(hash_of(hash.value), size.value, offset.value, part.value)) {
        throw ProtocolError("a part of a module's image does not fit the image");
    }
    return CUDA_SUCCESS;
}

template <>
CUresult Executor::special<Call::module_load>(const Record& record, Arguments<Call::module_load>& arguments) {
    auto& [module, hash, options, answer] = arguments;
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const ImageCache::Image image = images_.find(hash_of(hash.value));
    if (image == nullptr) {
        return CUDA_ERROR_NOT_FOUND; // with an empty answer: "send it"
    }
    JitCall jit(options.value);
    ModuleState state;
    state.context = record.caller.context.value;
    protocol::ModuleSnapshot snapshot;
    CUresult status =
        driver_->cuModuleLoadDataEx(&state.handle, image->data(), jit.count(), jit.options(), jit.values());
    jit.results(snapshot);
    if (status == CUDA_SUCCESS) {
        status = module_snapshot(state.handle, state, snapshot);
        if (status == CUDA_SUCCESS) {
            tables_.modules[module.id.value] = std::move(state);
        } else {
            spdlog::error("a module's kernels cannot be listed: {} {}", driver_->name_of(status),
                          snapshot.error_log);
            (void)driver_->cuModuleUnload(state.handle);
        }
    }
    if (status != CUDA_SUCCESS) {
        snapshot.kernels.clear();
    }
    answer.value = encode(snapshot);
    return status;
}

template <>
CUresult Executor::special<Call::cuModuleUnload>(const Record&, Arguments<Call::cuModuleUnload>& arguments) {
    return driver_->cuModuleUnload(std::get<0>(arguments).value);
}

template <>
CUresult Executor::special<Call::link>(const Record& record, Arguments<Call::link>& arguments) {
    auto& [options, inputs, answer] = arguments;
    if (record.context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    JitCall jit(options.value);
    CUlinkState linker = nullptr;
    CUresult status = driver_->cuLinkCreate_v2(jit.count(), jit.options(), jit.values(), &linker);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    Decoder in(inputs.value);
    while (status == CUDA_SUCCESS && !in.rest().empty()) {
        const auto type = static_cast<CUjitInputType>(in.take<std::uint32_t>());
        const std::string name(in.take_text());
        const Bytes data = in.take_bytes(in.take<std::uint64_t>());
        if (!in.ok()) {
            (void)driver_->cuLinkDestroy(linker);
            throw ProtocolError("the inputs of the linker cannot be read");
        }
        std::vector<std::byte> copy(data.begin(), data.end()); // PTX needs its end marked
        copy.resize(copy.size() + ImageCache::padding);
        const bool text = type == CU_JIT_INPUT_PTX;
        const std::size_t size =
            text ? strnlen(reinterpret_cast<const char*>(copy.data()), data.size()) + 1 : data.size();
        status =
            driver_->cuLinkAddData_v2(linker, type, copy.data(), size, name.c_str(), 0, nullptr, nullptr);
    }
    void* cubin = nullptr;
    std::size_t size = 0;
    if (status == CUDA_SUCCESS) {
        status = driver_->cuLinkComplete(linker, &cubin, &size);
    }
    protocol::ModuleSnapshot logs;
    jit.results(logs);
    const auto encoded = encode(logs);
    const std::size_t image = status == CUDA_SUCCESS ? size : 0;
    answer.value.resize(sizeof(std::uint32_t) + encoded.size() + image);
    Encoder out{std::span<std::byte>(answer.value)};
    out.put_blob(encoded);
    out.put_bytes(cubin, image);
    (void)driver_->cuLinkDestroy(linker);
    return status;
}

} // namespace vgpu::worker
