// SPDX-License-Identifier: BSD-3-Clause
// The JIT linker. Inputs are gathered here and go to the worker together, at cuLinkComplete.
#include "ucx_forwarder/client/cuda/link.h"

#include "ucx_forwarder/client/cuda/image.h"
#include "ucx_forwarder/client/cuda/module.h"
#include "ucx_forwarder/protocol/jit_options.h"

#include <bit>

namespace vgpu::client {
namespace {

HandleTable<Link>& links() {
    static auto& table = *new HandleTable<Link>(Kind::link);
    return table;
}

CUresult link_of(CUlinkState handle, Link*& link) {
    VGPU_TRY(client().ready());
    link = links().find(handle);
    return link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult create(unsigned count, CUjit_option* options, void** values, CUlinkState* result) {
    Context* context;
    VGPU_TRY(current(context));
    if (!result || (count > 0 && (!options || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    auto made = links().make();
    if (!made.object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made.object->context = context->handle;
    made.object->options.assign(options, options + count);
    made.object->values.assign(values, values + count);
    made.object->program_values = values;
    links().publish(made.handle);
    *result = std::bit_cast<CUlinkState>(made.handle);
    return CUDA_SUCCESS;
}

CUresult add(CUlinkState state, CUjitInputType type, std::vector<std::byte> data, const char* name) {
    Link* link;
    VGPU_TRY(link_of(state, link));
    if (unsigned(type) >= CU_JIT_NUM_INPUT_TYPES || data.empty())
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_PTX && data.back() != std::byte{0})
        data.push_back(std::byte{0});
    link->inputs.push_back({type, std::move(data), name ? name : ""});
    return CUDA_SUCCESS;
}

CUresult add_data(CUlinkState state, CUjitInputType type, const void* data, std::size_t size,
                  const char* name) {
    if (!data || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    auto* bytes = static_cast<const std::byte*>(data);
    return add(state, type, {bytes, bytes + size}, name);
}

CUresult add_file(CUlinkState state, CUjitInputType type, const char* path) {
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::byte> content;
    VGPU_TRY(read_file(path, content));
    content.pop_back();
    return add(state, type, std::move(content), path);
}

} // namespace
} // namespace vgpu::client

using namespace vgpu::client;

VGPU_API cuLinkCreate(unsigned int numOptions, CUjit_option* options, void** optionValues,
                      CUlinkState* stateOut) {
    return create(numOptions, options, optionValues, stateOut);
}
VGPU_API cuLinkCreate_v2(unsigned int numOptions, CUjit_option* options, void** optionValues,
                         CUlinkState* stateOut) {
    return create(numOptions, options, optionValues, stateOut);
}

// Options of one input are accepted as long as there are none: those of the whole link are what counts.
VGPU_API cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                       unsigned int numOptions, CUjit_option*, void**) {
    return numOptions ? CUDA_ERROR_NOT_SUPPORTED : add_data(state, type, data, size, name);
}
VGPU_API cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                          unsigned int numOptions, CUjit_option*, void**) {
    return numOptions ? CUDA_ERROR_NOT_SUPPORTED : add_data(state, type, data, size, name);
}
VGPU_API cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions,
                       CUjit_option*, void**) {
    return numOptions ? CUDA_ERROR_NOT_SUPPORTED : add_file(state, type, path);
}
VGPU_API cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions,
                          CUjit_option*, void**) {
    return numOptions ? CUDA_ERROR_NOT_SUPPORTED : add_file(state, type, path);
}

VGPU_API cuLinkComplete(CUlinkState state, void** cubinOut, size_t* sizeOut) {
    Link* link;
    VGPU_TRY(link_of(state, link));
    if (!cubinOut)
        return CUDA_ERROR_INVALID_VALUE;
    Context* context;
    VGPU_TRY(context_of(link->context, context));
    std::vector<LinkInput> inputs;
    for (const auto& input : link->inputs)
        inputs.push_back({.type = input.type, .data = input.data, .name = input.name});
    auto count = unsigned(link->options.size());
    auto encoded = vgpu::protocol::encode_jit_options(count, link->options.data(), link->values.data());
    ModuleSnapshot logs;
    CUresult status = context->session().link(context->id, inputs, encoded, link->cubin, logs);
    vgpu::protocol::return_jit_results(logs, count, link->options.data(), link->program_values);
    VGPU_TRY(status);
    *cubinOut = link->cubin.data();
    if (sizeOut)
        *sizeOut = link->cubin.size();
    return CUDA_SUCCESS;
}

VGPU_API cuLinkDestroy(CUlinkState state) {
    Link* link;
    VGPU_TRY(link_of(state, link));
    link->cubin = {};
    link->inputs = {};
    return links().remove(state) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
