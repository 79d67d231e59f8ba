// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#define BOOST_TEST_MODULE lease_memory
#include <boost/test/unit_test.hpp>

#include "ucx_forwarder/worker/lease_memory.h"

#include <csignal>
#include <fcntl.h>
#include <functional>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using vgpu::worker::LeaseMemory;

namespace {

constexpr std::uint64_t mib = 1 << 20;

pid_t worker(LeaseMemory& memory, int slot, const std::function<void(LeaseMemory&)>& work) {
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    auto own = LeaseMemory::attach(dup(memory.fd()), slot);
    work(*own);
    _exit(0);
}

int wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

} // namespace

BOOST_AUTO_TEST_CASE(limits_are_exact) {
    auto memory = LeaseMemory::create({100, 7});
    const int a = memory->open_slot(), b = memory->open_slot();
    auto first = LeaseMemory::attach(dup(memory->fd()), a),
         second = LeaseMemory::attach(dup(memory->fd()), b);
    BOOST_TEST(first->limit(0) == 100u);
    BOOST_TEST(second->limit(1) == 7u);
    BOOST_TEST(first->take(0, 60));
    BOOST_TEST(!second->take(0, 41));
    BOOST_TEST(second->used(0) == 60u);
    BOOST_TEST(second->take(0, 40));
    BOOST_TEST(!first->take(0, 1));
    BOOST_TEST(first->take(0, 0));
    BOOST_TEST(!first->take(0, ~std::uint64_t{0}));
    BOOST_TEST(first->take(1, 7));
    BOOST_TEST(memory->used(0) == 100u);
    BOOST_TEST(memory->used(0, a) == 60u);
    first->give(0, 10);
    BOOST_TEST(memory->used(0) == 90u);
    first->give(0, 1000); // more than it holds
    BOOST_TEST(memory->used(0, a) == 0u);
    memory->close_slot(b);
    BOOST_TEST(memory->used(0) == 0u);
    BOOST_TEST(memory->used(1) == 7u);
    BOOST_TEST(memory->open_slot() == b);
}

BOOST_AUTO_TEST_CASE(bad_arguments) {
    BOOST_CHECK_THROW(LeaseMemory::create({}), std::invalid_argument);
    BOOST_CHECK_THROW(LeaseMemory::create(std::vector<std::uint64_t>(65, 1)), std::invalid_argument);
    auto memory = LeaseMemory::create({1});
    BOOST_CHECK_THROW(static_cast<void>(memory->limit(1)), std::out_of_range);
    BOOST_CHECK_THROW(static_cast<void>(memory->used(-1)), std::out_of_range);
    const int other = memfd_create("other", MFD_CLOEXEC);
    BOOST_CHECK_THROW(LeaseMemory::attach(other, 0), std::invalid_argument);
    close(other);
    // Nobody can cut the page under vgpud's feet.
    BOOST_TEST(ftruncate(memory->fd(), 0) != 0);
}

BOOST_AUTO_TEST_CASE(all_slots_and_no_more) {
    auto memory = LeaseMemory::create({1});
    for (int i = 0; i < LeaseMemory::max_sessions; ++i)
        BOOST_REQUIRE(memory->open_slot() == i);
    BOOST_TEST(memory->open_slot() == -1);
}

BOOST_AUTO_TEST_CASE(concurrent_takers_never_pass_the_limit) {
    auto memory = LeaseMemory::create({1000});
    std::vector<pid_t> pids;
    for (int i = 0; i < 4; ++i) {
        const int slot = memory->open_slot();
        pids.push_back(worker(*memory, slot, [](LeaseMemory& own) {
            for (int round = 0; round < 20000; ++round) {
                if (own.take(0, 300)) {
                    if (own.used(0) > 1000)
                        _exit(1);
                    own.give(0, 300);
                }
            }
        }));
    }
    for (pid_t pid : pids)
        BOOST_TEST(wait_for(pid) == 0);
    BOOST_TEST(memory->used(0) == 0u);
}

BOOST_AUTO_TEST_CASE(a_killed_taker_leaves_nothing) {
    auto memory = LeaseMemory::create({1000 * mib});
    const int keeper_slot = memory->open_slot();
    auto keeper = LeaseMemory::attach(dup(memory->fd()), keeper_slot);
    BOOST_REQUIRE(keeper->take(0, 500 * mib));
    for (int round = 0; round < 100; ++round) {
        const int slot = memory->open_slot();
        const pid_t pid = worker(*memory, slot, [](LeaseMemory& own) {
            for (;;)
                if (own.take(0, 3 * mib))
                    own.give(0, 2 * mib);
                else
                    own.give(0, 100 * mib);
        });
        while (memory->used(0, slot) == 0)
            usleep(100);
        usleep(static_cast<useconds_t>(round * 17 % 301));
        kill(pid, SIGKILL);
        wait_for(pid);
        memory->close_slot(slot);
        BOOST_REQUIRE(memory->used(0) == 500 * mib);
        // And its mutex, if it held it, is free.
        BOOST_REQUIRE(keeper->take(0, 500 * mib));
        BOOST_REQUIRE(!keeper->take(0, 1));
        keeper->give(0, 500 * mib);
    }
}
