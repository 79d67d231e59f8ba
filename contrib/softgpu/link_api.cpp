// SPDX-License-Identifier: BSD-3-Clause
// cuLink*: one input that is PTX, or holds some. What comes out is that PTX, to be loaded like any other
// image.
#include "contrib/softgpu/call.h"
#include "contrib/softgpu/module.h"

#include <fstream>
#include <iterator>

namespace softgpu {

class LinkState {
public:
    LinkState(std::shared_ptr<Context> context, JitOptions options)
        : context_(std::move(context)), options_(options) {}

    void add(CUjitInputType type, const char* data, std::size_t size) {
        require(data != nullptr && size != 0);
        if (type == CU_JIT_INPUT_CUBIN)
            throw refuse(CUDA_ERROR_NO_BINARY_FOR_GPU,
                         "a cubin is machine code of a real GPU: this device links PTX");
        if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY)
            throw refuse(CUDA_ERROR_NOT_SUPPORTED, "only PTX and fatbins can be linked");
        const std::string image(data, size); // with a NUL behind it
        auto text = ptx_of(image.c_str(), context_->device().capability(), options_);
        if (!text_.empty())
            throw refuse(CUDA_ERROR_NOT_SUPPORTED, "only one image can be linked");
        text_ = std::move(text);
    }

    // Valid as long as this object.
    const std::string& complete() {
        require(!text_.empty());
        return text_;
    }

private:
    Error refuse(CUresult code, const std::string& cause) {
        options_.error(cause);
        complain(cause);
        return Error(code);
    }

    std::shared_ptr<Context> context_;
    JitOptions options_;
    std::string text_;
};

namespace {

std::shared_ptr<LinkState> find(CUlinkState handle) {
    auto link = Driver::get().links.find(handle);
    require(link != nullptr, CUDA_ERROR_INVALID_HANDLE);
    return link;
}

CUresult create(unsigned count, CUjit_option* names, void** values, CUlinkState* handle) {
    return context_call([&](Context& context) {
        require(handle != nullptr);
        *handle = Driver::get().links.add<CUlinkState>(
            std::make_shared<LinkState>(context.shared_from_this(), JitOptions(count, names, values)));
    });
}

CUresult add_data(CUlinkState handle, CUjitInputType type, void* data, std::size_t size) {
    return context_call([&](Context&) { find(handle)->add(type, static_cast<const char*>(data), size); });
}

CUresult add_file(CUlinkState handle, CUjitInputType type, const char* path) {
    return context_call([&](Context&) {
        require(path != nullptr);
        std::ifstream file(path, std::ios::binary);
        require(file.good(), CUDA_ERROR_FILE_NOT_FOUND);
        const std::string contents{std::istreambuf_iterator<char>(file), {}};
        find(handle)->add(type, contents.data(), contents.size());
    });
}

} // namespace
} // namespace softgpu

using namespace softgpu;

SOFTGPU_API CUresult cuLinkCreate(unsigned int count, CUjit_option* options, void** values,
                                  CUlinkState* state) {
    return create(count, options, values, state);
}
SOFTGPU_API CUresult cuLinkCreate_v2(unsigned int count, CUjit_option* options, void** values,
                                     CUlinkState* state) {
    return create(count, options, values, state);
}
SOFTGPU_API CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void* data, std::size_t size,
                                   const char*, unsigned int, CUjit_option*, void**) {
    return add_data(state, type, data, size);
}
SOFTGPU_API CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t size,
                                      const char*, unsigned int, CUjit_option*, void**) {
    return add_data(state, type, data, size);
}
SOFTGPU_API CUresult cuLinkAddFile(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                                   CUjit_option*, void**) {
    return add_file(state, type, path);
}
SOFTGPU_API CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned int,
                                      CUjit_option*, void**) {
    return add_file(state, type, path);
}
SOFTGPU_API CUresult cuLinkComplete(CUlinkState state, void** image, std::size_t* size) {
    return context_call([&](Context&) {
        require(image != nullptr);
        const auto& text = find(state)->complete();
        *image = const_cast<char*>(text.c_str());
        if (size != nullptr)
            *size = text.size() + 1;
    });
}
SOFTGPU_API CUresult cuLinkDestroy(CUlinkState state) {
    return call([&] { require(Driver::get().links.remove(state) != nullptr, CUDA_ERROR_INVALID_HANDLE); });
}
