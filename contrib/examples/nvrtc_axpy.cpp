// SPDX-License-Identifier: BSD-3-Clause
// The driver API, with a kernel that NVRTC compiles at run time. Build: g++ nvrtc_axpy.cpp -o nvrtc_axpy
// -lcuda -lnvrtc
#include <cuda.h>
#include <nvrtc.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        const CUresult result_ = (call);                                                                     \
        if (result_ != CUDA_SUCCESS) {                                                                       \
            const char *name_ = nullptr, *text_ = nullptr;                                                   \
            cuGetErrorName(result_, &name_);                                                                 \
            cuGetErrorString(result_, &text_);                                                               \
            std::fprintf(stderr, "nvrtc_axpy: %s: %s (%s)\n", #call, text_ ? text_ : "?",                    \
                         name_ ? name_ : "?");                                                               \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

static const char* const kSource = R"(
template <typename T>
__device__ T axpy(T a, T x, T y) { return a * x + y; }

extern "C" __global__ void axpy_kernel(unsigned n, double a, const double* x, double* y) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = axpy(a, x[i], y[i]);
}
)";

static bool compile(int major, int minor, std::string& ptx) {
    nvrtcProgram program;
    if (nvrtcCreateProgram(&program, kSource, "axpy.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS)
        return false;
    const std::string architecture =
        "--gpu-architecture=compute_" + std::to_string(major) + std::to_string(minor);
    const char* options[] = {architecture.c_str(), "--std=c++17"};
    const nvrtcResult compiled = nvrtcCompileProgram(program, 2, options);
    if (compiled != NVRTC_SUCCESS) {
        size_t size = 0;
        nvrtcGetProgramLogSize(program, &size);
        std::string log(size, '\0');
        nvrtcGetProgramLog(program, log.data());
        std::fprintf(stderr, "nvrtc_axpy: %s: %s\n", nvrtcGetErrorString(compiled), log.c_str());
        return false;
    }
    size_t size = 0;
    nvrtcGetPTXSize(program, &size);
    ptx.resize(size);
    nvrtcGetPTX(program, ptx.data());
    return nvrtcDestroyProgram(&program) == NVRTC_SUCCESS;
}

int main() {
    CHECK(cuInit(0));
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    char name[128] = "", pci[32] = "";
    int major = 0, minor = 0;
    CHECK(cuDeviceGetName(name, sizeof name, device));
    CHECK(cuDeviceGetPCIBusId(pci, sizeof pci, device));
    CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    CHECK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    CUcontext context;
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));

    std::string ptx;
    if (!compile(major, minor, ptx))
        return 1;
    CUmodule module;
    CUfunction function;
    CHECK(cuModuleLoadData(&module, ptx.c_str()));
    CHECK(cuModuleGetFunction(&function, module, "axpy_kernel"));

    unsigned n = 100000;
    double a = 0.5;
    std::vector<double> x(n), y(n), result(n);
    for (unsigned i = 0; i < n; ++i) {
        x[i] = i;
        y[i] = -1.0 * i;
    }
    CUdeviceptr device_x = 0, device_y = 0;
    const size_t bytes = n * sizeof(double);
    CHECK(cuMemAlloc(&device_x, bytes));
    CHECK(cuMemAlloc(&device_y, bytes));
    CUstream stream;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemcpyHtoDAsync(device_x, x.data(), bytes, stream));
    CHECK(cuMemcpyHtoDAsync(device_y, y.data(), bytes, stream));
    void* arguments[] = {&n, &a, &device_x, &device_y};
    CHECK(cuLaunchKernel(function, 64, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr));
    CHECK(cuMemcpyDtoHAsync(result.data(), device_y, bytes, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamDestroy(stream));
    CHECK(cuMemFree(device_x));
    CHECK(cuMemFree(device_y));
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));

    double worst = 0;
    for (unsigned i = 0; i < n; ++i) {
        const double error = std::fabs(result[i] - (a * x[i] + y[i]));
        if (!(error <= worst))
            worst = error;
    }
    std::printf("nvrtc_axpy: %u elements, max error %g, on GPU %s (%s)\n", n, worst, name, pci);
    return worst == 0 ? 0 : 1;
}
