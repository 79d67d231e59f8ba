// SPDX-License-Identifier: BSD-3-Clause
// What a process's beginning, forking and end do. This process itself never calls cuInit: every case is a
// child of its own, and says by its exit status where it failed.
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE process
#include <boost/test/unit_test.hpp>
#include <cuda.h>

#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

void* symbol(const char* name) {
    static void* const library = dlopen(std::getenv("VGPU_TEST_LIBCUDA"), RTLD_NOW);
    return library ? dlsym(library, name) : nullptr;
}

#define TEXT_(text) #text
#define TEXT(text) TEXT_(text)
#define CU(name) (reinterpret_cast<decltype(&::name)>(symbol(TEXT(name))))
/// In a child: ends it with this line's number as its status unless the condition holds.
#define MUST(condition)                                                                                      \
    if (!(condition))                                                                                        \
    _exit(__LINE__ % 250 + 1)

/// The exit status of a child that runs this; a signal is 1000 + its number.
int child(const std::function<void()>& body, bool orderly_exit = false) {
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        body();
        if (orderly_exit)
            std::exit(0);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void use_it() {
    MUST(CU(cuInit)(0) == CUDA_SUCCESS);
    CUcontext context = nullptr;
    MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS);
    MUST(CU(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    MUST(CU(cuMemAlloc)(&memory, 1000) == CUDA_SUCCESS);
    MUST(CU(cuMemsetD8)(memory, 5, 1000) == CUDA_SUCCESS);
    std::vector<unsigned char> back(1000);
    MUST(CU(cuMemcpyDtoH)(back.data(), memory, 1000) == CUDA_SUCCESS);
    MUST(back == std::vector<unsigned char>(1000, 5));
    MUST(CU(cuMemFree)(memory) == CUDA_SUCCESS);
}

} // namespace

BOOST_AUTO_TEST_CASE(before_init) {
    BOOST_CHECK_EQUAL(child([] {
                          int value = 0;
                          CUdeviceptr memory = 0;
                          CUcontext context = nullptr;
                          MUST(CU(cuDeviceGetCount)(&value) == CUDA_ERROR_NOT_INITIALIZED);
                          MUST(CU(cuMemAlloc)(&memory, 1) == CUDA_ERROR_NOT_INITIALIZED);
                          MUST(CU(cuCtxGetCurrent)(&context) == CUDA_ERROR_NOT_INITIALIZED);
                          MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_ERROR_NOT_INITIALIZED);
                          MUST(CU(cuDriverGetVersion)(&value) == CUDA_SUCCESS && value >= 12000);
                      }),
                      0);
}

BOOST_AUTO_TEST_CASE(forked_before_init) {
    BOOST_CHECK_EQUAL(child([] {
                          MUST(symbol("cuInit"));
                          MUST(child(use_it) == 0);
                          MUST(child(use_it) == 0);
                          use_it();
                      }),
                      0);
}

BOOST_AUTO_TEST_CASE(forked_after_init) {
    BOOST_CHECK_EQUAL(child([] {
                          use_it();
                          MUST(child(
                                   [] {
                                       int count = 0;
                                       CUdeviceptr memory = 0;
                                       MUST(CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED);
                                       MUST(CU(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED);
                                       MUST(CU(cuMemAlloc)(&memory, 1) == CUDA_ERROR_NOT_INITIALIZED);
                                   },
                                   true) == 0);
                          // The child's end took nothing away from its parent.
                          use_it();
                      }),
                      0);
}

BOOST_AUTO_TEST_CASE(init_in_many_threads) {
    BOOST_CHECK_EQUAL(child([] {
                          MUST(symbol("cuInit"));
                          std::vector<std::thread> threads;
                          for (int i = 0; i < 8; ++i)
                              threads.emplace_back(use_it);
                          for (std::thread& thread : threads)
                              thread.join();
                      }),
                      0);
}

BOOST_AUTO_TEST_CASE(orderly_exit) {
    BOOST_CHECK_EQUAL(child(use_it, true), 0);
}

static void exit_handler() {
    // Statics of programs call the driver from here; whatever it answers, it must answer.
    CUdeviceptr memory = 0;
    CUresult result = CU(cuMemAlloc)(&memory, 100);
    MUST(result == CUDA_SUCCESS || result == CUDA_ERROR_DEINITIALIZED);
}

BOOST_AUTO_TEST_CASE(calls_at_exit) {
    BOOST_CHECK_EQUAL(child(
                          [] {
                              std::atexit(exit_handler);
                              use_it();
                          },
                          true),
                      0);
}

BOOST_AUTO_TEST_CASE(exit_while_threads_work) {
    BOOST_CHECK_EQUAL(child(
                          [] {
                              use_it();
                              CUcontext context = nullptr;
                              MUST(CU(cuCtxGetCurrent)(&context) == CUDA_SUCCESS);
                              for (int i = 0; i < 4; ++i)
                                  std::thread([context] {
                                      CU(cuCtxSetCurrent)(context);
                                      for (;;)
                                          CU(cuCtxSynchronize)();
                                  }).detach();
                              CUdeviceptr memory = 0;
                              for (int i = 0; i < 20; ++i) {
                                  MUST(CU(cuMemAlloc)(&memory, 1000) == CUDA_SUCCESS);
                                  MUST(CU(cuMemFree)(memory) == CUDA_SUCCESS);
                              }
                          },
                          true),
                      0);
}
