// SPDX-License-Identifier: BSD-3-Clause
// Modules and what is in them, for the functions on modules, on libraries and on functions.
#pragma once

#include "ucx_forwarder/client/cuda/client.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vgpu::client {

/// Options of a JIT compilation as a program gives them.
struct JitArguments {
    unsigned count = 0;
    CUjit_option* options = nullptr;
    void** values = nullptr;
};

/// One round trip, two when the node does not have the image yet. `encoded` are the options as they travel;
/// `report` is told also when the load fails.
CUresult load_module(Context& context, std::span<const std::byte> image, std::span<const std::byte> encoded,
                     CUlibrary library, const JitArguments& report, CUmodule& result);
/// The module with all its functions and variables is gone, here and on the worker. `handle` is valid.
CUresult unload_module(CUmodule handle);

/// The function of that name, or at that place: made when it is first asked for.
CUresult function_by_name(Module& module, std::string_view name, CUfunction& result);
CUresult function_at(Module& module, std::uint32_t place, CUfunction& result);

CUresult global_of(Module& module, const char* name, CUdeviceptr* pointer, std::size_t* size);

/// The whole file, with a zero after it (PTX is text). CUDA_ERROR_FILE_NOT_FOUND.
CUresult read_file(const char* path, std::vector<std::byte>& content);

/// The module of a library in this context, loaded if it is not yet.
CUresult library_module(LibraryState& library, Context& context, Module*& module);
/// The function of a kernel in this context.
CUresult kernel_function(Kernel& kernel, Context& context, CUfunction& result);

CUresult set_function_attribute(Function& function, CUfunction_attribute attribute, int value);
CUresult get_function_attribute(const Function& function, CUfunction_attribute attribute, int* value);

} // namespace vgpu::client
