// SPDX-License-Identifier: BSD-3-Clause
// Another process for the tests: does what its first argument says with the library under test, and tells on
// stdout.
//   init                  the result of cuInit
//   hold BYTES            allocates, says how much is free, then waits until stdin ends
//   spin                  runs a kernel that never ends, and waits until stdin ends
//   store                 runs a short kernel, says what it wrote
//   fork                  what a child of an initialised process is told
#include "tests/softgpu/kernels.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void* symbol(const char* name) {
    static void* library = dlopen(SOFTGPU_LIBRARY, RTLD_NOW);
    void* found = library != nullptr ? dlsym(library, name) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(2);
    }
    return found;
}

#define TEXT_(text) #text
#define TEXT(text) TEXT_(text)
#define CU(function) (*reinterpret_cast<decltype(&function)>(symbol(TEXT(function))))

void must(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "%s: %d\n", what, result);
    std::exit(1);
}

void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

void wait_for_end() {
    while (std::getchar() != EOF) {
    }
}

void begin() {
    must(CU(cuInit)(0), "cuInit");
    CUcontext context = nullptr;
    must(CU(cuDevicePrimaryCtxRetain)(&context, 0), "cuDevicePrimaryCtxRetain");
    must(CU(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
}

CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr pointer = 0;
    must(CU(cuMemAlloc)(&pointer, bytes), "cuMemAlloc");
    must(CU(cuMemsetD8)(pointer, 0, bytes), "cuMemsetD8");
    return pointer;
}

void launch(const char* name, CUdeviceptr pointer, int value) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    must(CU(cuModuleLoadData)(&module, softgpu_test::kernels), "cuModuleLoadData");
    must(CU(cuModuleGetFunction)(&function, module, name), "cuModuleGetFunction");
    void* parameters[] = {&pointer, &value};
    must(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
}

void in_child() {
    must(CU(cuInit)(0), "cuInit");
    std::fflush(stdout);
    const auto child = fork();
    if (child == 0) {
        int count = 0;
        const auto init = CU(cuInit)(0);
        const auto query = CU(cuDeviceGetCount)(&count);
        say(std::to_string(init) + " " + std::to_string(query));
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    int count = 0;
    say(std::to_string(CU(cuDeviceGetCount)(&count)));
}

} // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "init") {
        say(std::to_string(CU(cuInit)(0)));
    } else if (what == "hold" && argc == 3) {
        begin();
        (void)allocate(std::strtoull(argv[2], nullptr, 10));
        std::size_t free = 0;
        std::size_t total = 0;
        must(CU(cuMemGetInfo)(&free, &total), "cuMemGetInfo");
        say(std::to_string(free));
        wait_for_end();
    } else if (what == "spin") {
        begin();
        launch("forever", allocate(4096), 0);
        say("running");
        wait_for_end();
        _exit(0); // the kernel never ends
    } else if (what == "store") {
        begin();
        const auto pointer = allocate(4096);
        launch("store", pointer, 123);
        int value = 0;
        must(CU(cuMemcpyDtoH)(&value, pointer, sizeof value), "cuMemcpyDtoH");
        say(std::to_string(value));
    } else if (what == "fork") {
        in_child();
    } else {
        std::fprintf(stderr, "usage: helper init | hold BYTES | spin | store | fork\n");
        return 2;
    }
    return 0;
}
