// SPDX-License-Identifier: BSD-3-Clause
// The library under test, opened as programs open it: by dlopen, its functions by name.
#pragma once

#include <cuda.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>

namespace softgpu_test {

// The address of an exported function; throws std::runtime_error if there is none.
[[nodiscard]] void* symbol(const char* name);
// A directory of this run's own for SOFTGPU_DIR, removed at its end.
[[nodiscard]] const std::string& directory();
// Where the program is that the tests start as another process (helper.cpp).
[[nodiscard]] std::string helper();

// Makes device 0's primary context, or a new one, current for the life of a test.
struct PrimaryContext {
    PrimaryContext();
    ~PrimaryContext();
    CUcontext handle = nullptr;
};
struct OwnContext {
    OwnContext();
    ~OwnContext();
    CUcontext handle = nullptr;
};

// For several threads at once: Boost.Test's own checks are for one thread at a time.
class Failures {
public:
    void operator()(CUresult result) { count_ += result != CUDA_SUCCESS; }
    [[nodiscard]] int count() const { return count_; }

private:
    std::atomic<int> count_ = 0;
};

} // namespace softgpu_test

#define SOFTGPU_TEXT_(text) #text
#define SOFTGPU_TEXT(text) SOFTGPU_TEXT_(text)
// CU(cuMemAlloc)(...) calls what cuda.h makes of that name, cuMemAlloc_v2.
#define CU(function) (*reinterpret_cast<decltype(&function)>(softgpu_test::symbol(SOFTGPU_TEXT(function))))
#define CHECK_CU(expression, expected)                                                                       \
    BOOST_CHECK_EQUAL(static_cast<int>(expression), static_cast<int>(expected))
#define REQUIRE_CU(expression) BOOST_REQUIRE_EQUAL(static_cast<int>(expression), 0)
