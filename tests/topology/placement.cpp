// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>

#include "topology/placement.h"

using namespace vgpu;

namespace {

std::string refusal(unsigned shares, unsigned devices, unsigned per_gpu = 100) {
    try {
        divide_shares(shares, devices, per_gpu);
    } catch (const ShareError& error) {
        return error.what();
    }
    return "(accepted)";
}

std::string no_room(const std::vector<FreeGpu>& gpus, Shape shape, std::uint64_t memory) {
    try {
        place(gpus, shape, memory, 100);
    } catch (const NoRoom& error) {
        return error.what();
    }
    return "(placed)";
}

} // namespace

BOOST_AUTO_TEST_SUITE(shares)

BOOST_AUTO_TEST_CASE(division) {
    struct {
        unsigned shares, devices, want_devices, want_shares;
    } cases[] = {{1, 0, 1, 1},   {25, 0, 1, 25},  {100, 0, 1, 100}, {200, 0, 2, 100}, {400, 0, 4, 100},
                 {50, 2, 2, 25}, {100, 4, 4, 25}, {200, 2, 2, 100}, {30, 1, 1, 30},   {300, 6, 6, 50}};
    for (const auto& c : cases) {
        auto shape = divide_shares(c.shares, c.devices, 100);
        BOOST_TEST(shape.devices == c.want_devices);
        BOOST_TEST(shape.shares == c.want_shares);
    }
    BOOST_TEST(divide_shares(20, 0, 10).devices == 2u);
}

BOOST_AUTO_TEST_CASE(refused_with_the_nearest_that_can) {
    BOOST_TEST(refusal(0, 0) == "0 shares are no vGPU: ask at least 1, as in --gres=vgpu:1");
    BOOST_TEST(refusal(130, 0) ==
               "130 shares cannot be divided: a GPU has 100 shares, and more than one GPU is had in "
               "whole GPUs only; ask 100 or 200, or say over how many with --vgpu-devices");
    BOOST_TEST(refusal(25, 2) == "25 shares cannot be divided evenly over 2 devices: ask 24 or 26");
    BOOST_TEST(refusal(1, 2) == "1 share cannot be divided evenly over 2 devices: ask 2");
    BOOST_TEST(refusal(150, 1) ==
               "150 shares do not fit on 1 device, which has 100: ask at most 100 shares, or "
               "--vgpu-devices=2 or more");
    BOOST_TEST(refusal(4294967295u, 1000) != "(accepted)");
}

BOOST_AUTO_TEST_CASE(memory) {
    BOOST_TEST(proportional_mib(25, 100, 16384) == 4096u);
    BOOST_TEST(proportional_mib(33, 100, 1000) == 330u);
    BOOST_TEST(proportional_mib(1, 3, 100) == 33u); // rounded down
    BOOST_TEST(proportional_mib(1, 100, 10) == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(placement)

BOOST_AUTO_TEST_CASE(first_fit) {
    std::vector<FreeGpu> gpus{
        {"g1", 0, 10, 8000, 16000}, {"g1", 1, 60, 16000, 16000}, {"g2", 0, 100, 16000, 16000}};
    auto places = place(gpus, {1, 25}, 0, 100);
    BOOST_REQUIRE(places.size() == 1u);
    BOOST_TEST(places[0].gpu == 1u);
    BOOST_TEST(places[0].shares == 25u);
    BOOST_TEST(places[0].memory_mib == 4000u);
    BOOST_TEST(place(gpus, {1, 10}, 0, 100)[0].gpu == 0u);
    BOOST_TEST(place(gpus, {1, 61}, 0, 100)[0].gpu == 2u);
    BOOST_TEST(place(gpus, {1, 5}, 9000, 100)[0].gpu == 1u); // shares fit on the first, memory does not
    BOOST_TEST(place(gpus, {1, 5}, 9000, 100)[0].memory_mib == 9000u);
}

BOOST_AUTO_TEST_CASE(each_on_its_own_gpu) {
    std::vector<FreeGpu> gpus{
        {"g1", 0, 100, 16000, 16000}, {"g1", 1, 20, 16000, 16000}, {"g2", 0, 100, 32000, 32000}};
    auto places = place(gpus, {2, 25}, 0, 100);
    BOOST_REQUIRE(places.size() == 2u);
    BOOST_TEST(places[0].gpu == 0u);
    BOOST_TEST(places[1].gpu == 2u);
    BOOST_TEST(places[1].memory_mib == 8000u); // each in proportion to its own GPU
}

BOOST_AUTO_TEST_CASE(sentences) {
    std::vector<FreeGpu> gpus{{"g1", 0, 10, 8000, 16000}, {"g2", 0, 5, 16000, 16000}};
    BOOST_TEST(no_room(gpus, {1, 25}, 0) ==
               "no room: 25 shares asked, at most 10 free on one GPU (g1 gpu 0)");
    BOOST_TEST(no_room(gpus, {1, 8}, 9000) ==
               "no room: 8 shares with 9000 MiB asked, at most 8000 MiB free on a GPU with "
               "so many free shares (g1 gpu 0)");
    BOOST_TEST(no_room(gpus, {2, 8}, 0) ==
               "no room: 2 GPUs with 8 shares each asked, 1 has that free at the moment (of 2 in the pool)");
    BOOST_TEST(no_room({}, {1, 8}, 0) == "no room: 8 shares asked, and no GPU is in the pool at the moment: "
                                         "is vgpud running on the GPU nodes?");
    BOOST_TEST(no_room({{"g1", 0, 50, 10, 16000}}, {1, 50}, 0) ==
               "no room: 50 shares asked, at most 10 MiB free on a GPU with so many free shares (g1 gpu 0), "
               "less than the "
               "50 shares' part of its memory");
}

BOOST_AUTO_TEST_CASE(never) {
    std::vector<FreeGpu> gpus{{"g1", 0, 0, 0, 16000}, {"g2", 0, 0, 0, 32000}};
    BOOST_TEST(never_fits(gpus, {1, 100}, 32000) == "");
    BOOST_TEST(never_fits(gpus, {2, 100}, 0) == "");
    BOOST_TEST(never_fits(gpus, {3, 1}, 0) == "3 vGPUs need as many GPUs, and the pool has 2: ask fewer");
    BOOST_TEST(never_fits(gpus, {1, 1}, 32001) ==
               "32001 MiB are more than any GPU of the pool has: ask at most 32000M");
    BOOST_TEST(never_fits(gpus, {2, 1}, 16001) ==
               "16001 MiB on each of 2 GPUs asked, and only 1 of the pool has so "
               "much: ask less memory or fewer devices");
}

BOOST_AUTO_TEST_SUITE_END()
