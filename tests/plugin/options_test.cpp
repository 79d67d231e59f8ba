// SPDX-License-Identifier: BSD-3-Clause
// The users' options and the variables of the tasks, without a cluster.
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE plugin
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

#include "spank/environment.h"
#include "spank/options.h"

namespace data = boost::unit_test::data;
using namespace vgpu::spank;

namespace {

/// The error's text; empty if there is none.
template <class Check>
std::string error_of(Check check, const std::string& name, const std::string& text) {
    try {
        check(name, text);
        return "";
    } catch (const OptionError& error) {
        return error.what();
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(memory_in_mib) {
    BOOST_TEST(check_memory("--vgpu-mem", "1") == 1u);
    BOOST_TEST(check_memory("--vgpu-mem", "512M") == 512u);
    BOOST_TEST(check_memory("--vgpu-mem", "1G") == 1024u);
    BOOST_TEST(check_memory("--vgpu-mem", "2t") == 2u * 1024 * 1024);
}

BOOST_DATA_TEST_CASE(bad_memory,
                     data::make({"", "0", "-1", "G", "1.5G", "1Q", "1G1", " 1", "99999999999999999999"}),
                     text) {
    const auto error = error_of(check_memory, "VGPU_MEM", text);
    BOOST_TEST(error.starts_with("VGPU_MEM: "));
    BOOST_TEST(error.find(text) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(devices) {
    BOOST_TEST(check_devices("--vgpu-devices", "1") == 1u);
    BOOST_TEST(check_devices("--vgpu-devices", "8") == 8u);
}

BOOST_DATA_TEST_CASE(bad_devices, data::make({"", "0", "-1", "two", "1.5", "65", "4294967297"}), text) {
    const auto error = error_of(check_devices, "--vgpu-devices", text);
    BOOST_TEST(error.starts_with("--vgpu-devices: "));
    BOOST_TEST(error.find(text) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(audit_list) {
    BOOST_TEST(with_ours("", "/lib/vgpu") == "/lib/vgpu/libvgpu_audit.so");
    BOOST_TEST(with_ours("/a.so:b.so", "/lib/vgpu") == "/a.so:b.so:/lib/vgpu/libvgpu_audit.so");
    // A step inside a batch script: once, at the end, and from this node's place.
    BOOST_TEST(with_ours("/old/libvgpu_audit.so:/a.so", "/lib/vgpu") == "/a.so:/lib/vgpu/libvgpu_audit.so");
    BOOST_TEST(without_ours("/lib/vgpu/libvgpu_audit.so") == "");
    BOOST_TEST(without_ours("/a.so:/lib/vgpu/libvgpu_audit.so:c") == "/a.so:c");
    BOOST_TEST(without_ours("/a/not-libvgpu_audit.so") == "/a/not-libvgpu_audit.so");
}
