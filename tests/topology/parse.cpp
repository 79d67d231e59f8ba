// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>

#include "topology/parse.h"

using namespace vgpu;
using namespace std::chrono_literals;

namespace {

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& word : words)
        out += (out.empty() ? "" : " ") + word;
    return out;
}

template <class F>
std::string sentence(F&& f) {
    try {
        f();
    } catch (const ParseError& error) {
        return error.what();
    }
    return "(accepted)";
}

} // namespace

BOOST_AUTO_TEST_SUITE(parse)

BOOST_AUTO_TEST_CASE(sizes) {
    BOOST_TEST(parse_mib("512") == 512u);
    BOOST_TEST(parse_mib("512M") == 512u);
    BOOST_TEST(parse_mib("1G") == 1024u);
    BOOST_TEST(parse_mib("1g") == 1024u);
    BOOST_TEST(parse_mib("3GiB") == 3072u);
    BOOST_TEST(parse_mib("2TB") == 2097152u);
    for (auto wrong : {"", "G", "1.5G", "-1G", "12Q", "12K", "1 G", "1GG", "0", "0G", "99999999999T",
                       "18446744073709551617M", "1Gib2"})
        BOOST_CHECK_THROW(parse_mib(wrong), ParseError);
    BOOST_TEST(sentence([] { parse_mib("12Q"); }) ==
               "\"12Q\" is not a size: the unit is M, G or T, as in 512M or 2G (a number alone counts MiB)");
}

BOOST_AUTO_TEST_CASE(numbers) {
    BOOST_TEST(parse_number("17", 1, 17) == 17u);
    for (auto wrong : {"", "0", "18", "1x", " 1", "-1", "0x1"})
        BOOST_CHECK_THROW(parse_number(wrong, 1, 17), ParseError);
    BOOST_TEST(sentence([] { parse_number("0", 1, 10); }) == "\"0\" is not a whole number from 1 to 10");
}

BOOST_AUTO_TEST_CASE(durations) {
    BOOST_CHECK(parse_duration("4") == 4s);
    BOOST_CHECK(parse_duration("4s") == 4s);
    BOOST_CHECK(parse_duration("250ms") == 250ms);
    BOOST_CHECK(parse_duration("2m") == 2min);
    for (auto wrong : {"", "0", "ms", "5h", "-1s", "1.5", "2000m", "99999999999999999999"})
        BOOST_CHECK_THROW(parse_duration(wrong), ParseError);
}

BOOST_AUTO_TEST_CASE(flags) {
    BOOST_TEST(parse_flag("YES"));
    BOOST_TEST(!parse_flag("no"));
    BOOST_CHECK_THROW(parse_flag("perhaps"), ParseError);
}

BOOST_AUTO_TEST_CASE(environments) {
    auto env = parse_environment("A=1,B_2=x=y");
    BOOST_TEST(env.size() == 2u);
    BOOST_TEST(env["A"] == "1");
    BOOST_TEST(env["B_2"] == "x=y");
    BOOST_TEST(parse_environment("").empty());
    for (auto wrong : {"A", "=1", "1A=2", "A=1,,B=2", "A=1,A=2", "A B=1"})
        BOOST_CHECK_THROW(parse_environment(wrong), ParseError);
}

BOOST_AUTO_TEST_CASE(hostlists) {
    BOOST_TEST(joined(expand_hostlist("g1")) == "g1");
    BOOST_TEST(joined(expand_hostlist("g[1-4]")) == "g1 g2 g3 g4");
    BOOST_TEST(joined(expand_hostlist("g[1-2,7],big[08-11]x")) == "g1 g2 g7 big08x big09x big10x big11x");
    BOOST_TEST(joined(expand_hostlist("r[1-2]n[1-2]")) == "r1n1 r1n2 r2n1 r2n2");
    for (auto wrong :
         {"", "g1,", "g[1-4", "g1-4]", "g[]", "g[4-1]", "g[a-b]", "g[1-]", ",g1", "g[1-99999999]"})
        BOOST_CHECK_THROW(expand_hostlist(wrong), ParseError);
    BOOST_TEST(sentence([] { expand_hostlist("g[4-1]"); }) ==
               "\"g[4-1]\" is not a host list: the range 4-1 runs backwards");
}

BOOST_AUTO_TEST_CASE(pairs) {
    auto pairs =
        parse_pairs("  NodeName=g1 NodeAddr = 10.0.0.1 CudaEnv=A=1,B=2 NetDevices=\"eth0 #1\" # rest=1");
    BOOST_REQUIRE(pairs.size() == 4u);
    BOOST_TEST(pairs[0].first == "NodeName");
    BOOST_TEST(pairs[1].second == "10.0.0.1");
    BOOST_TEST(pairs[2].second == "A=1,B=2");
    BOOST_TEST(pairs[3].second == "eth0 #1");
    BOOST_TEST(parse_pairs("# nothing").empty());
    BOOST_TEST(parse_pairs("").empty());
    BOOST_TEST(parse_pairs("A=")[0].second == "");
    for (auto wrong : {"A", "A B=1", "=1", "A=\"x", "A=\"x\"y"})
        BOOST_CHECK_THROW(parse_pairs(wrong), ParseError);
}

BOOST_AUTO_TEST_CASE(near_words) {
    const std::vector<std::string> known{"NodeName", "NodeAddr", "VgpudPort", "Transport"};
    BOOST_TEST(nearest("nodeadr", known) == "NodeAddr");
    BOOST_TEST(nearest("VgpuPort", known) == "VgpudPort");
    BOOST_TEST(nearest("Colour", known) == "");
}

BOOST_AUTO_TEST_SUITE_END()
