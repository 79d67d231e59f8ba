// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE protocol
#include "ucx_forwarder/protocol/jit_options.h"
#include "ucx_forwarder/protocol/message.h"
#include "ucx_forwarder/protocol/snapshot.h"
#include "ucx_forwarder/worker/argument.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstring>

using namespace vgpu::protocol;
using vgpu::worker::Argument;
using vgpu::worker::DecodeContext;
using vgpu::worker::Tables;

namespace {

/// Writes an argument as the client does and reads it as the worker does.
template <class D>
struct Trip {
    explicit Trip(typename D::Argument value, std::size_t cut = 0) {
        Encoder out{std::span<std::byte>(buffer)};
        D::put(out, value);
        size = out.size();
        Decoder in(out.written().first(size - cut));
        DecodeContext context{in, tables, devices};
        read = argument.decode(context);
        complete = in.complete();
        status = context.status;
    }
    std::array<std::byte, 256> buffer;
    std::size_t size = 0;
    Tables tables;
    std::vector<CUdevice> devices{7, 5};
    Argument<D> argument;
    bool read = false;
    bool complete = false;
    CUresult status = CUDA_SUCCESS;
};

CUstream stream_at(std::uintptr_t address) {
    return reinterpret_cast<CUstream>(address);
}

} // namespace

BOOST_AUTO_TEST_CASE(values) {
    Trip<In<unsigned>> number(0xdeadbeef);
    BOOST_TEST(number.read);
    BOOST_TEST(number.complete);
    BOOST_TEST(number.size == 4U);
    BOOST_TEST(number.argument.value == 0xdeadbeef);

    const LaunchShape shape{{1, 2, 3}, {4, 5, 6}, 7, 0};
    Trip<InP<LaunchShape>> pointed(&shape);
    BOOST_TEST(pointed.complete);
    BOOST_TEST(pointed.argument.value.block[2] == 6U);

    Trip<Str> text("a name");
    BOOST_TEST(text.complete);
    BOOST_TEST(text.argument.value == "a name");

    const std::array<std::byte, 3> three{std::byte{1}, std::byte{2}, std::byte{3}};
    Trip<Blob> blob{Bytes(three)};
    BOOST_TEST(blob.complete);
    BOOST_TEST(std::memcmp(blob.argument.value.data(), three.data(), 3) == 0);

    const std::array<int, 4> items{1, -1, 2, -2};
    Trip<List<int>> list{std::span<const int>(items)};
    BOOST_TEST(list.complete);
    BOOST_TEST(list.argument.value == std::vector<int>(items.begin(), items.end()),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_cut_short_is_malformed) {
    for (std::size_t cut = 1; cut <= 4; ++cut) {
        BOOST_TEST(!Trip<In<unsigned>>(1, cut).read);
    }
    const LaunchShape shape;
    BOOST_TEST(!Trip<InP<LaunchShape>>(&shape, 1).read);
    BOOST_TEST(!Trip<Str>("text", 1).read);
    BOOST_TEST(!Trip<New<CUstream>>(WireId{20}, 1).read);
    BOOST_TEST(!Trip<Device>(0, 2).read);
    const std::array<int, 2> items{1, 2};
    BOOST_TEST(!Trip<List<int>>(std::span<const int>(items), 1).read);
}

BOOST_AUTO_TEST_CASE(a_forged_count_takes_no_memory) {
    std::array<std::byte, 8> buffer;
    Encoder out{std::span<std::byte>(buffer)};
    out.put(std::uint32_t{0xffffffff});
    out.put(std::uint32_t{0});
    Decoder in(out.written());
    Tables tables;
    std::vector<CUdevice> devices;
    DecodeContext context{in, tables, devices};
    Argument<List<std::uint64_t>> list;
    BOOST_TEST(!list.decode(context));
    BOOST_TEST(list.value.capacity() == 0U);

    ModuleSnapshot module;
    BOOST_TEST(!decode(Bytes(buffer), module));
    std::vector<DeviceSnapshot> snapshots;
    BOOST_TEST(!decode(Bytes(buffer), snapshots));
}

BOOST_AUTO_TEST_CASE(handles) {
    Tables tables;
    std::vector<CUdevice> devices;
    std::array<std::byte, 64> buffer;
    const auto read = [&]<class D>(Argument<D>& argument, WireId id) {
        Encoder out{std::span<std::byte>(buffer)};
        D::put(out, id);
        Decoder in(out.written());
        DecodeContext context{in, tables, devices};
        BOOST_TEST(argument.decode(context));
        return context.status;
    };
    const WireId id{first_id + 3};
    Argument<In<CUstream>> use;
    BOOST_TEST(read(use, id) == CUDA_ERROR_INVALID_HANDLE);

    Argument<New<CUstream>> create;
    BOOST_TEST(read(create, id) == CUDA_SUCCESS);
    std::array<std::byte, 8> reply;
    Encoder out{std::span<std::byte>(reply)};
    *std::get<0>(create.driver()) = stream_at(0x1234);
    create.done(tables, out);
    BOOST_TEST(out.size() == 0U); // the client chose the id: there is nothing to tell
    BOOST_TEST(read(use, id) == CUDA_SUCCESS);
    BOOST_TEST(use.value == stream_at(0x1234));
    BOOST_TEST(read(create, id) == CUDA_ERROR_INVALID_HANDLE); // in use

    // The default streams are there, and cannot be made or destroyed.
    BOOST_TEST(read(use, null_id) == CUDA_SUCCESS);
    BOOST_TEST(use.value == nullptr);
    BOOST_TEST(read(use, legacy_stream) == CUDA_SUCCESS);
    BOOST_TEST(use.value == CU_STREAM_LEGACY);
    Argument<Del<CUstream>> destroy;
    BOOST_TEST(read(destroy, legacy_stream) == CUDA_ERROR_INVALID_HANDLE);
    BOOST_TEST(read(create, legacy_stream) == CUDA_ERROR_INVALID_HANDLE);
    BOOST_TEST(read(create, WireId{end_id}) == CUDA_ERROR_INVALID_HANDLE);

    // An id names one thing of one kind.
    Argument<In<CUevent>> event;
    BOOST_TEST(read(event, id) == CUDA_ERROR_INVALID_HANDLE);

    BOOST_TEST(read(destroy, id) == CUDA_SUCCESS);
    destroy.done(tables, out);
    BOOST_TEST(read(use, id) == CUDA_ERROR_INVALID_HANDLE);
}

BOOST_AUTO_TEST_CASE(handles_go_with_their_context) {
    Tables tables;
    tables.entered = 100;
    tables.insert<CUstream>({20}, stream_at(1));
    tables.entered = 101;
    tables.insert<CUstream>({21}, stream_at(2));
    tables.modules[30] = {nullptr, 100, {vgpu::worker::Kernel{}}};
    BOOST_TEST(tables.kernel(kernel_id({30}, 0)) != nullptr);
    BOOST_TEST(tables.kernel(kernel_id({30}, 1)) == nullptr);
    tables.erase_context(100);
    CUstream stream;
    BOOST_TEST(!tables.find({20}, stream));
    BOOST_TEST(tables.find({21}, stream));
    BOOST_TEST(tables.kernel(kernel_id({30}, 0)) == nullptr);
}

BOOST_AUTO_TEST_CASE(devices_are_those_of_the_lease) {
    Trip<Device> second(1);
    BOOST_TEST(second.status == CUDA_SUCCESS);
    BOOST_TEST(std::get<0>(second.argument.driver()) == 5);
    BOOST_TEST(Trip<Device>(2).status == CUDA_ERROR_INVALID_DEVICE);
    BOOST_TEST(Trip<Device>(-1).status == CUDA_ERROR_INVALID_DEVICE);
}

BOOST_AUTO_TEST_CASE(out_values_come_back) {
    Argument<Out<std::size_t>> worker;
    *std::get<0>(worker.driver()) = 4711;
    std::array<std::byte, 8> buffer;
    Encoder reply{std::span<std::byte>(buffer)};
    Tables tables;
    worker.done(tables, reply);
    std::size_t value = 0;
    Decoder in(reply.written());
    BOOST_TEST(Out<std::size_t>::take(in, &value));
    BOOST_TEST(value == 4711U);
    Decoder again(reply.written());
    BOOST_TEST(Out<std::size_t>::take(again, nullptr)); // not wanted, but skipped
    BOOST_TEST(again.complete());
    Decoder nothing{Bytes{}};
    BOOST_TEST(!Out<std::size_t>::take(nothing, &value));
}

BOOST_AUTO_TEST_CASE(an_encoder_that_is_full_says_how_much_it_needs) {
    std::array<std::byte, 6> buffer;
    Encoder out{std::span<std::byte>(buffer)};
    out.put(std::uint32_t{1});
    BOOST_TEST(!out.overflow());
    out.put(std::uint32_t{2});
    BOOST_TEST(out.overflow());
    BOOST_TEST(out.size() == 8U);
    BOOST_TEST(out.written().empty());
}

BOOST_AUTO_TEST_CASE(snapshots) {
    DeviceSnapshot device;
    device.name = "a GPU";
    device.uuid.bytes[15] = 9;
    device.total_memory = 123456789012;
    device.attributes = {std::nullopt, 1024, -1};
    const auto bytes = encode(std::vector<DeviceSnapshot>{device, device});
    std::vector<DeviceSnapshot> devices;
    BOOST_REQUIRE(decode(Bytes(bytes), devices));
    BOOST_REQUIRE(devices.size() == 2U);
    BOOST_TEST(devices[1].name == "a GPU");
    BOOST_TEST(devices[1].total_memory == 123456789012U);
    int value = 0;
    BOOST_TEST(devices[1].attribute(static_cast<CUdevice_attribute>(1), value) == CUDA_SUCCESS);
    BOOST_TEST(value == 1024);
    BOOST_TEST(devices[1].attribute(static_cast<CUdevice_attribute>(0), value) == CUDA_ERROR_INVALID_VALUE);
    BOOST_TEST(devices[1].attribute(static_cast<CUdevice_attribute>(99), value) == CUDA_ERROR_INVALID_VALUE);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        BOOST_TEST(!decode(Bytes(bytes).first(size), devices));
    }

    ModuleSnapshot module;
    module.kernels = {{"k", {256, std::nullopt}, {{0, 8}, {8, 4}, {16, 8}}}};
    module.error_log = "log";
    const auto image = encode(module);
    ModuleSnapshot read;
    BOOST_REQUIRE(decode(Bytes(image), read));
    BOOST_TEST(read.kernels.at(0).parameters.at(2).offset == 16U);
    BOOST_TEST(read.kernels.at(0).parameter_bytes() == 24U);
    BOOST_TEST(read.error_log == "log");
    for (std::size_t size = 0; size < image.size(); ++size) {
        BOOST_TEST(!decode(Bytes(image).first(size), read));
    }
}

BOOST_AUTO_TEST_CASE(jit_options_carry_values_and_bring_logs_back) {
    char log[8] = "????";
    CUjit_option options[] = {CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {reinterpret_cast<void*>(2), log, reinterpret_cast<void*>(sizeof log)};
    const auto encoded = encode_jit_options(3, options, values);
    std::vector<JitOption> decoded;
    BOOST_REQUIRE(decode_jit_options(encoded, decoded));
    BOOST_REQUIRE(decoded.size() == 2U); // the client's address does not travel
    BOOST_TEST(decoded[0].value == 2U);
    BOOST_TEST(decoded[1].value == sizeof log);
    BOOST_TEST(!decode_jit_options(Bytes(encoded).first(encoded.size() - 1), decoded));

    ModuleSnapshot result;
    result.error_log = "a long message";
    return_jit_results(result, 3, options, values);
    BOOST_TEST(std::string(log) == "a long ");
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(values[2]) == 7U);
}

BOOST_AUTO_TEST_CASE(the_table) {
    BOOST_TEST(info(Call::hello).name == "hello");
    BOOST_TEST(static_cast<int>(Call::hello) == 0); // it must be understood by workers of any version
    for (std::size_t i = 0; i < call_count; ++i) {
        const CallInfo& call = call_table[i];
        const bool answers = call.parameters.find("Out") != std::string_view::npos;
        // Nobody waits for the answer of a sent call.
        BOOST_TEST((!answers || call.how == How::awaited), call.name);
        for (std::size_t j = 0; j < i; ++j) {
            BOOST_TEST(call_table[j].name != call.name);
        }
    }
}

// Every plain line of the table can be called as cuda.h declares the function.
namespace {
template <class F, class Tuple>
constexpr bool callable = false;
template <class F, class... A>
constexpr bool callable<F, std::tuple<A...>> = std::is_invocable_v<F, A...>;
template <Call C>
using DriverArguments =
    decltype(std::apply([](auto&... argument) { return std::tuple_cat(argument.driver()...); },
                        std::declval<vgpu::worker::Arguments<C>&>()));
} // namespace
BOOST_AUTO_TEST_CASE(the_table_agrees_with_cuda_h) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define VGPU_CALL(name, ...)                                                                                 \
    BOOST_TEST((callable<decltype(&::name), DriverArguments<Call::name>>), #name " is not called so");
#define VGPU_SPECIAL(name, ...)
#include "ucx_forwarder/protocol/calls.def"
#undef VGPU_CALL
#undef VGPU_SPECIAL
#pragma GCC diagnostic pop
}
