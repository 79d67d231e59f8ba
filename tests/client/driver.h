// SPDX-License-Identifier: BSD-3-Clause
// The driver library under test. The same tests run on softgpu's own libcuda.so.1 and on the client's in
// front of it: what a program sees must be the same. Not linked but opened, from the path in
// VGPU_TEST_LIBCUDA.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cuda.h>

#include <ostream>
#include <string>
#include <vector>

namespace driver {

/// The address of a function; a missing name is a failure of the test.
void* symbol(const char* name);

#define DRIVER_TEXT_(text) #text
#define DRIVER_TEXT(text) DRIVER_TEXT_(text)
/// CU(cuMemAlloc)(&p, n): the function under the name that cuda.h gives it (cuMemAlloc_v2).
#define CU(name) (reinterpret_cast<decltype(&::name)>(driver::symbol(DRIVER_TEXT(name))))
/// The result is success, else the test ends here.
#define OK(call) BOOST_REQUIRE_EQUAL(driver::Result{call}, driver::Result{CUDA_SUCCESS})
/// The result is this error.
#define FAILS(error, call) BOOST_CHECK_EQUAL(driver::Result{call}, driver::Result{error})

struct Result {
    CUresult code;
    bool operator==(const Result&) const = default;
};
std::ostream& operator<<(std::ostream& out, Result result);

/// cuInit, and the first device's primary context current. For BOOST_FIXTURE_TEST_SUITE.
struct Primary {
    Primary();
    ~Primary();
    CUdevice device = 0;
    CUcontext context = nullptr;
};

/// A context of its own, for tests that break theirs.
struct OwnContext {
    OwnContext();
    ~OwnContext();
    CUdevice device = 0;
    CUcontext context = nullptr;
};

/// Device memory that is freed at the end of the scope.
class Buffer {
public:
    explicit Buffer(std::size_t size);
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    operator CUdeviceptr() const { return address_; }

private:
    CUdeviceptr address_ = 0;
};

template <class T>
std::vector<T> download(CUdeviceptr from, std::size_t count) {
    std::vector<T> data(count);
    OK(CU(cuMemcpyDtoH)(data.data(), from, count * sizeof(T)));
    return data;
}

template <class T>
void upload(CUdeviceptr to, const std::vector<T>& data) {
    OK(CU(cuMemcpyHtoD)(to, data.data(), data.size() * sizeof(T)));
}

/// PTX text with the kernels of kernels.cpp.
extern const char kernels[];

/// `kernels` as a module.
struct Kernels {
    Kernels();
    ~Kernels();
    CUfunction operator[](const char* name) const;
    CUmodule module = nullptr;
};

} // namespace driver
