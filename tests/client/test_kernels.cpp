// SPDX-License-Identifier: BSD-3-Clause
// Modules and launches across the wire.
#include "tests/client/worker_process.h"

#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace vgpu;
using protocol::Call;
using protocol::LaunchShape;
using protocol::WireId;
using test::Fixture;

namespace {

// saxpy(float* y, const float* x, float a, int n), fault(), hello(int)
constexpr char ptx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[18] = {110, 117, 109, 98, 101, 114, 32, 37, 100, 32, 115, 97, 105, 100, 10, 0, 0, 0};
.global .align 4 .u32 answer = 42;
.visible .entry saxpy(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) {
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [y];
    ld.param.u64 %rd2, [x];
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p, %r5, %r1;
    @%p bra done;
    mul.wide.s32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f4, %f1, %f3, %f2;
    st.global.f32 [%rd4], %f4;
done:
    ret;
}
.visible .entry fault() {
    .reg .b64 %rd<2>;
    .reg .b32 %r<2>;
    mov.u64 %rd1, 64;
    mov.u32 %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry hello(.param .u32 number) {
    .local .align 8 .b8 frame[8];
    .reg .b64 %rd<5>;
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [number];
    mov.u64 %rd1, frame;
    cvta.local.u64 %rd2, %rd1;
    st.u32 [%rd2], %r1;
    mov.u64 %rd3, text;
    cvta.global.u64 %rd4, %rd3;
    {
        .param .b64 param0;
        st.param.b64 [param0], %rd4;
        .param .b64 param1;
        st.param.b64 [param1], %rd2;
        .param .b32 back;
        call.uni (back), vprintf, (param0, param1);
        ld.param.b32 %r2, [back];
    }
    ret;
}
)";

protocol::Bytes image() {
    return std::as_bytes(std::span(ptx));
}

struct Loaded : Fixture {
    explicit Loaded(const test::WorkerSettings& settings = {})
        : Fixture(settings), module(session->new_id()) {
        status = session->load_module(context, module, image(), {}, snapshot);
    }
    WireId kernel(const std::string& name) const {
        for (std::uint32_t i = 0; i < snapshot.kernels.size(); ++i) {
            if (snapshot.kernels[i].name == name) {
                return protocol::kernel_id(module, i);
            }
        }
        throw std::runtime_error("no kernel " + name);
    }
    WireId module;
    protocol::ModuleSnapshot snapshot;
    CUresult status;
};

struct SaxpyParameters {
    CUdeviceptr y;
    CUdeviceptr x;
    float a;
    int n;
};

template <class T>
protocol::Bytes bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

/// The process's stdout while it lives, in a file.
class Stdout {
public:
    Stdout() : file_(std::tmpfile()), old_(::dup(STDOUT_FILENO)) {
        std::fflush(stdout);
        ::dup2(::fileno(file_), STDOUT_FILENO);
    }
    ~Stdout() {
        restore();
        std::fclose(file_);
    }
    std::string text() {
        restore();
        std::string all(1 << 16, '\0');
        const ssize_t size = ::pread(::fileno(file_), all.data(), all.size(), 0);
        all.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
        return all;
    }

private:
    void restore() {
        if (old_ >= 0) {
            std::fflush(stdout);
            ::dup2(old_, STDOUT_FILENO);
            ::close(old_);
            old_ = -1;
        }
    }
    FILE* file_;
    int old_;
};

} // namespace

BOOST_AUTO_TEST_SUITE(kernels)

BOOST_AUTO_TEST_CASE(a_module_comes_with_its_kernels) {
    Loaded fixture;
    BOOST_REQUIRE(fixture.status == CUDA_SUCCESS);
    BOOST_TEST(fixture.snapshot.kernels.size() == 3U);
    const auto& saxpy = fixture.snapshot.kernels.at(fixture.kernel("saxpy").value % protocol::max_kernels);
    BOOST_REQUIRE(saxpy.parameters.size() == 4U);
    BOOST_TEST(saxpy.parameters[2].offset == 16U);
    BOOST_TEST(saxpy.parameters[3].offset == 20U);
    BOOST_TEST(saxpy.parameter_bytes() == sizeof(SaxpyParameters));
    BOOST_TEST(saxpy.attributes.at(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).value_or(0) > 0);
    BOOST_TEST(fixture.awaited() == 2U); // its hash, and once more when the image was there
    CUdeviceptr address = 0;
    std::size_t size = 0;
    BOOST_TEST(fixture.call<Call::cuModuleGetGlobal_v2>(&address, &size, fixture.module, "answer") ==
               CUDA_SUCCESS);
    BOOST_TEST(size == 4U);
    std::uint32_t answer = 0;
    BOOST_TEST(fixture.session->copy_to_host(fixture.context, std::as_writable_bytes(std::span(&answer, 1)),
                                             address, {}, false) == CUDA_SUCCESS);
    BOOST_TEST(answer == 42U);
    BOOST_TEST(fixture.call<Call::cuModuleGetGlobal_v2>(&address, &size, fixture.module, "nothing") ==
               CUDA_ERROR_NOT_FOUND);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(saxpy_in_six_round_trips) {
    Loaded fixture; // 2
    constexpr int n = 1000;
    std::vector<float> x(n), y(n);
    for (int i = 0; i < n; ++i) {
        x[i] = static_cast<float>(i);
        y[i] = static_cast<float>(2 * i);
    }
    const SaxpyParameters parameters{fixture.allocate(n * 4), fixture.allocate(n * 4), 0.5F, n}; // 2
    BOOST_TEST(fixture.session->copy_to_device(fixture.context, parameters.x, std::as_bytes(std::span(x)), {},
                                               false) == CUDA_SUCCESS);
    BOOST_TEST(fixture.session->copy_to_device(fixture.context, parameters.y, std::as_bytes(std::span(y)), {},
                                               false) == CUDA_SUCCESS);
    const LaunchShape shape{{4, 1, 1}, {256, 1, 1}, 0, 0};
    BOOST_TEST(fixture.call<Call::cuLaunchKernel>(fixture.kernel("saxpy"), &shape, WireId{},
                                                  bytes_of(parameters)) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_SUCCESS); // 1
    std::vector<float> result(n);
    BOOST_TEST(fixture.session->copy_to_host(fixture.context, std::as_writable_bytes(std::span(result)),
                                             parameters.y, {}, false) == CUDA_SUCCESS); // 1
    for (int i = 0; i < n; ++i) {
        BOOST_TEST(result[i] == 2.5F * static_cast<float>(i));
    }
    BOOST_TEST(fixture.awaited() == 6U);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(parameters_must_be_as_long_as_the_kernel_wants) {
    Loaded fixture;
    const LaunchShape shape;
    const std::uint32_t few = 1;
    BOOST_TEST(fixture.call<Call::cuLaunchKernel>(fixture.kernel("saxpy"), &shape, WireId{}, bytes_of(few)) ==
               CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_ERROR_INVALID_VALUE);
    BOOST_TEST(fixture.call<Call::cuLaunchKernel>(protocol::kernel_id(fixture.module, 99), &shape, WireId{},
                                                  bytes_of(few)) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_ERROR_INVALID_HANDLE);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(what_kernels_print_comes_out_here) {
    Loaded fixture;
    Stdout out;
    for (const std::uint32_t number : {7U, 8U}) {
        const LaunchShape shape;
        BOOST_TEST(fixture.call<Call::cuLaunchKernel>(fixture.kernel("hello"), &shape, WireId{},
                                                      bytes_of(number)) == CUDA_SUCCESS);
        BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_SUCCESS);
        std::printf("host %u\n", number);
    }
    BOOST_TEST(out.text() == "number 7 said\nhost 7\nnumber 8 said\nhost 8\n");
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(a_fatal_error_stays) {
    Loaded fixture;
    const LaunchShape shape;
    BOOST_TEST(fixture.call<Call::cuLaunchKernel>(fixture.kernel("fault"), &shape, WireId{},
                                                  protocol::Bytes{}) == CUDA_SUCCESS);
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_ERROR_ILLEGAL_ADDRESS);
    const auto before = fixture.awaited();
    CUdeviceptr memory = 0;
    BOOST_TEST(fixture.call<Call::cuMemAlloc_v2>(&memory, std::size_t{16}) == CUDA_ERROR_ILLEGAL_ADDRESS);
    BOOST_TEST(fixture.call<Call::cuMemFree_v2>(memory) == CUDA_ERROR_ILLEGAL_ADDRESS);
    BOOST_TEST(fixture.awaited() == before); // known here
    BOOST_TEST(fixture.session->sticky(fixture.context) == CUDA_ERROR_ILLEGAL_ADDRESS);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_CASE(an_image_goes_to_a_node_once) {
    char directory[] = "/tmp/vgpu-test-images-XXXXXX";
    BOOST_REQUIRE(::mkdtemp(directory) != nullptr);
    test::WorkerSettings settings;
    settings.image_cache = directory;
    {
        Loaded first(settings);
        BOOST_TEST(first.status == CUDA_SUCCESS);
        BOOST_TEST(first.awaited() == 2U);
        BOOST_TEST(first.end() == 0);
    }
    {
        Loaded second(settings);
        BOOST_TEST(second.status == CUDA_SUCCESS);
        BOOST_TEST(second.awaited() == 1U);
        BOOST_TEST(second.snapshot.kernels.size() == 3U);
        BOOST_TEST(second.end() == 0);
    }
    // A file that was tampered with is not believed.
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        std::ofstream(entry.path(), std::ios::binary) << "something else";
    }
    {
        Loaded third(settings);
        BOOST_TEST(third.status == CUDA_SUCCESS);
        BOOST_TEST(third.awaited() == 2U);
        BOOST_TEST(third.end() == 0);
    }
    // A directory that others can write to is not used.
    BOOST_REQUIRE(::chmod(directory, 0777) == 0);
    {
        Loaded fourth(settings);
        BOOST_TEST(fourth.status == CUDA_SUCCESS);
        BOOST_TEST(fourth.awaited() == 2U);
        BOOST_TEST(fourth.end() == 0);
    }
    std::filesystem::remove_all(directory);
}

BOOST_AUTO_TEST_CASE(an_image_that_is_none) {
    Fixture fixture;
    protocol::ModuleSnapshot snapshot;
    const std::string nonsense = "this is no PTX";
    const CUresult status = fixture.session->load_module(fixture.context, fixture.session->new_id(),
                                                         std::as_bytes(std::span(nonsense)), {}, snapshot);
    BOOST_TEST(status != CUDA_SUCCESS);
    BOOST_TEST(snapshot.kernels.empty());
    BOOST_TEST(fixture.call<Call::cuCtxSynchronize>() == CUDA_SUCCESS);
    BOOST_TEST(fixture.end() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
