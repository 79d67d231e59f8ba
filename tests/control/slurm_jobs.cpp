// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>

#include <ctime>
#include <fstream>

#include <sys/stat.h>

#include "gres_vgpu/pool/slurm_jobs.h"
#include "tests/control/munged.h"

using namespace vgpu;
using namespace vgpu::pool;
using namespace std::chrono_literals;
using control::ErrorKind;

namespace {

/// A squeue that is this shell script.
class Squeue {
public:
    explicit Squeue(const std::string& script) {
        config.squeue_program = directory_.path() + "/squeue";
        std::ofstream(config.squeue_program) << "#!/bin/sh\n" << script;
        chmod(config.squeue_program.c_str(), 0755);
    }
    Config config;

private:
    test::TempDir directory_;
};

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(slurm_jobs)

BOOST_AUTO_TEST_CASE(programs) {
    auto good = run_program({"/bin/sh", "-c", "echo out; echo err >&2"}, 10s);
    BOOST_REQUIRE(good.ok());
    BOOST_TEST(*good == "out\n");
    auto bad = run_program({"/bin/sh", "-c", "echo out; echo 'slurm_load_jobs error' >&2; exit 1"}, 10s);
    BOOST_REQUIRE(!bad.ok());
    BOOST_TEST(bad.error().message == "/bin/sh: slurm_load_jobs error");
    BOOST_TEST(has(run_program({"/nonexistent/squeue"}, 10s).error().message, "No such file or directory"));
    BOOST_TEST(has(run_program({"/bin/sh", "-c", "exec sleep 600"}, 50ms).error().message, "killed"));
    std::atomic<bool> stop{true};
    BOOST_TEST(has(run_program({"/bin/sh", "-c", "exec sleep 600"}, 600s, &stop).error().message, "stopped"));
    auto much = run_program({"/bin/sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"}, 10s);
    BOOST_REQUIRE(much.ok());
    BOOST_TEST(much->size() == 300000u);
}

BOOST_AUTO_TEST_CASE(live) {
    Squeue squeue("cat <<END\n"
                  "12                  2026-11-30T17:00:00     0           R       \n"
                  "13                  2026-11-30T17:00:05     2           CG      \n"
                  "14                  2026-11-30T17:00:06     0           PD      \n"
                  "END\n");
    auto jobs = live_jobs(squeue.config);
    BOOST_REQUIRE(jobs.ok());
    BOOST_REQUIRE(jobs->size() == 2u);
    BOOST_TEST((*jobs)[0].id == 12u);
    BOOST_TEST((*jobs)[1].restarts == 2u);
    BOOST_TEST((*jobs)[1].submit_time - (*jobs)[0].submit_time == 5);
    auto time = static_cast<std::time_t>((*jobs)[0].submit_time);
    BOOST_TEST(std::localtime(&time)->tm_hour == 17);
    BOOST_TEST(live_jobs(Squeue("true").config)->empty());
    // Half an answer must not look like few jobs.
    BOOST_TEST(has(live_jobs(Squeue("echo 12 2026-11-30").config).error().message, "cannot be understood"));
    BOOST_TEST(!live_jobs(Squeue("echo '12 2026-11-30T17:00:00 x R'").config).ok());
    BOOST_TEST(!live_jobs(Squeue("echo 12 2026-11-30T17:00:00 0 R; exit 1").config).ok());
}

BOOST_AUTO_TEST_CASE(one_job) {
    Squeue squeue("echo 20 2026-11-30T17:00:00 0 1000 1001 alice gres:vgpu:25 'c[1-2]'\n"
                  "echo 21 2026-11-30T17:00:00 1 1000 1001 alice gres:gpu:1,gres:vgpu:a100:5 c3\n"
                  "echo 22 2026-11-30T17:00:00 1 1000 1001 alice N/A c3\n"
                  "echo 23 2026-11-30T17:00:00 1 1000 1001 alice N/A\n");
    auto job = slurm_job(squeue.config, 20);
    BOOST_REQUIRE(job.ok());
    BOOST_TEST(job->shares == 25u);
    BOOST_TEST(job->uid == 1000u);
    BOOST_TEST(job->gid == 1001u);
    BOOST_TEST(job->user == "alice");
    BOOST_REQUIRE(job->nodes.size() == 2u);
    BOOST_TEST(job->nodes[1] == "c2");
    BOOST_TEST(slurm_job(squeue.config, 21)->shares == 5u);
    BOOST_TEST(slurm_job(squeue.config, 22)->shares == 0u);
    BOOST_TEST(slurm_job(squeue.config, 23)->nodes.empty());
    auto none = slurm_job(squeue.config, 99);
    BOOST_REQUIRE(!none.ok());
    BOOST_CHECK(none.error().kind == ErrorKind::refused);
    BOOST_TEST(none.error().message == "Slurm knows no job 99");
    none = slurm_job(Squeue("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1").config, 98);
    BOOST_REQUIRE(!none.ok());
    BOOST_CHECK(none.error().kind == ErrorKind::refused);
    BOOST_TEST(none.error().message == "Slurm knows no job 98");
}

BOOST_AUTO_TEST_CASE(gres_lists) {
    const std::pair<const char*, unsigned> cases[] = {{"gres:vgpu:25", 25},
                                                      {"gres/vgpu:25", 25},
                                                      {"vgpu", 1},
                                                      {"gres:vgpu", 1},
                                                      {"gres:vgpu:a100:7", 7},
                                                      {"vgpu:a100", 1},
                                                      {"gres:vgpu:2K", 2048},
                                                      {"gres/vgpu=3", 3},
                                                      {"gres:vgpu:25(IDX:0)", 25},
                                                      {"gpu:1,vgpu:2,vgpu:x:3", 5},
                                                      {"gres:gpu:4", 0},
                                                      {"N/A", 0},
                                                      {"", 0},
                                                      {"vgpux:5", 0}};
    for (const auto& [text, shares] : cases) {
        BOOST_TEST_CONTEXT(text) {
            auto got = vgpu_shares(text);
            BOOST_REQUIRE(got.has_value());
            BOOST_TEST(*got == shares);
        }
    }
    BOOST_TEST(!vgpu_shares("vgpu:a100:x").has_value());
    BOOST_TEST(!vgpu_shares("vgpu:99999999999").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
