// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_MODULE softgpu
#include "tests/softgpu/driver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>
#include <vector>

namespace softgpu_test {

void* symbol(const char* name) {
    static void* library = dlopen(SOFTGPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw std::runtime_error(dlerror());
    void* found = dlsym(library, name);
    if (found == nullptr)
        throw std::runtime_error(std::string(name) + " is not exported");
    return found;
}

const std::string& directory() {
    static const std::string path = [] {
        std::string pattern = (std::filesystem::temp_directory_path() / "softgpu-test-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr)
            throw std::runtime_error("mkdtemp " + pattern);
        return pattern;
    }();
    return path;
}

std::string helper() {
    return SOFTGPU_HELPER;
}

PrimaryContext::PrimaryContext() {
    REQUIRE_CU(CU(cuDevicePrimaryCtxRetain)(&handle, 0));
    REQUIRE_CU(CU(cuCtxSetCurrent)(handle));
}

PrimaryContext::~PrimaryContext() {
    (void)CU(cuCtxSetCurrent)(nullptr);
    (void)CU(cuDevicePrimaryCtxRelease)(0);
}

OwnContext::OwnContext() {
    const auto create =
        reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(symbol("cuCtxCreate_v2"));
    REQUIRE_CU(create(&handle, 0, 0));
}

OwnContext::~OwnContext() {
    (void)CU(cuCtxDestroy)(handle);
}

struct Environment {
    Environment() {
        setenv("SOFTGPU_DIR", directory().c_str(), 1);
        setenv("SOFTGPU_DEVICES", "2", 1);
        setenv("SOFTGPU_MEMORY", "64M", 1);
        setenv("SOFTGPU_NAME", "Test GPU", 1);
        setenv("SOFTGPU_SMS", "3", 1);
        setenv("SOFTGPU_CAPABILITY", "8.0", 1);
        unsetenv("SOFTGPU_CONF");
        int count = 0;
        BOOST_REQUIRE_EQUAL(CU(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
        REQUIRE_CU(CU(cuInit)(0));
    }
    ~Environment() {
        std::error_code ignored;
        std::filesystem::remove_all(directory(), ignored);
    }
};
BOOST_TEST_GLOBAL_FIXTURE(Environment);

} // namespace softgpu_test
