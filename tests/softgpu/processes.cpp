// SPDX-License-Identifier: BSD-3-Clause
// What processes share, and what is left of one that was killed; settings.
#include "tests/softgpu/driver.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace softgpu_test;

namespace {

using Settings = std::map<std::string, std::string>;

class Process {
public:
    explicit Process(std::vector<std::string> arguments, const Settings& settings = {}) {
        int in[2];
        int out[2];
        int errors[2];
        BOOST_REQUIRE(pipe(in) == 0 && pipe(out) == 0 && pipe(errors) == 0);
        arguments.insert(arguments.begin(), helper());
        pid_ = fork();
        BOOST_REQUIRE_GE(pid_, 0);
        if (pid_ == 0) {
            dup2(in[0], STDIN_FILENO);
            dup2(out[1], STDOUT_FILENO);
            dup2(errors[1], STDERR_FILENO);
            for (const int file : {in[0], in[1], out[0], out[1], errors[0], errors[1]})
                close(file);
            for (const auto& [key, value] : settings)
                setenv(key.c_str(), value.c_str(), 1);
            std::vector<char*> list;
            for (auto& argument : arguments)
                list.push_back(argument.data());
            list.push_back(nullptr);
            execv(list[0], list.data());
            _exit(127);
        }
        close(in[0]);
        close(out[1]);
        close(errors[1]);
        in_ = in[1];
        out_ = fdopen(out[0], "r");
        errors_ = fdopen(errors[0], "r");
    }
    ~Process() {
        kill();
        if (in_ >= 0)
            close(in_);
        fclose(out_);
        fclose(errors_);
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    [[nodiscard]] std::string line() { return line_of(out_); }
    [[nodiscard]] std::string error_line() { return line_of(errors_); }

    int finish() {
        if (in_ >= 0)
            close(in_);
        in_ = -1;
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    void kill() {
        if (pid_ <= 0)
            return;
        ::kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

private:
    static std::string line_of(FILE* file) {
        std::string text;
        for (int c = std::getc(file); c != EOF && c != '\n'; c = std::getc(file))
            text += static_cast<char>(c);
        return text;
    }
    pid_t pid_ = -1;
    int in_ = -1;
    FILE* out_ = nullptr;
    FILE* errors_ = nullptr;
};

std::size_t free_bytes() {
    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE_CU(CU(cuMemGetInfo)(&free, &total));
    return free;
}

constexpr std::size_t mib = std::size_t{1} << 20;

} // namespace

BOOST_FIXTURE_TEST_SUITE(processes, PrimaryContext)

BOOST_AUTO_TEST_CASE(memory_is_shared_by_processes) {
    const auto before = free_bytes();
    Process other({"hold", std::to_string(40 * mib)});
    BOOST_CHECK_EQUAL(other.line(), std::to_string(before - 40 * mib));
    BOOST_CHECK_EQUAL(free_bytes(), before - 40 * mib);
    CUdeviceptr pointer = 0;
    CHECK_CU(CU(cuMemAlloc)(&pointer, 30 * mib), CUDA_ERROR_OUT_OF_MEMORY);
    {
        Process third({"hold", std::to_string(10 * mib)});
        BOOST_CHECK_EQUAL(third.line(), std::to_string(before - 50 * mib));
        BOOST_CHECK_EQUAL(third.finish(), 0);
    }
    BOOST_CHECK_EQUAL(other.finish(), 0);
    BOOST_CHECK_EQUAL(free_bytes(), before);
    REQUIRE_CU(CU(cuMemAlloc)(&pointer, 30 * mib));
    REQUIRE_CU(CU(cuMemFree)(pointer));
}

BOOST_AUTO_TEST_CASE(a_killed_process_gives_its_memory_back) {
    const auto before = free_bytes();
    Process other({"hold", std::to_string(40 * mib)});
    BOOST_CHECK_EQUAL(other.line(), std::to_string(before - 40 * mib));
    other.kill();
    BOOST_CHECK_EQUAL(free_bytes(), before);
}

BOOST_AUTO_TEST_CASE(a_killed_process_gives_the_device_back) {
    const auto before = free_bytes();
    Process spinning({"spin"});
    BOOST_REQUIRE_EQUAL(spinning.line(), "running");
    Process waiting({"store"}); // its kernel has to wait
    spinning.kill();
    BOOST_CHECK_EQUAL(waiting.line(), "123");
    BOOST_CHECK_EQUAL(waiting.finish(), 0);
    BOOST_CHECK_EQUAL(free_bytes(), before);
}

BOOST_AUTO_TEST_CASE(another_directory_is_another_machine) {
    const auto before = free_bytes();
    Process other({"hold", std::to_string(40 * mib)}, {{"SOFTGPU_DIR", directory() + "/other"}});
    BOOST_CHECK_EQUAL(other.line(), std::to_string(24 * mib));
    BOOST_CHECK_EQUAL(free_bytes(), before);
}

BOOST_AUTO_TEST_CASE(children_after_fork_are_not_initialised) {
    Process other({"fork"});
    BOOST_CHECK_EQUAL(other.line(), "3 3");
    BOOST_CHECK_EQUAL(other.line(), "0");
}

BOOST_AUTO_TEST_CASE(settings_that_make_no_sense_are_refused) {
    const std::vector<std::pair<std::string, std::string>> wrong = {
        {"SOFTGPU_MEMORY", "much"},       {"SOFTGPU_MEMORY", "100K"}, {"SOFTGPU_MEMORY", "-1G"},
        {"SOFTGPU_DEVICES", "0"},         {"SOFTGPU_DEVICES", "2x"},  {"SOFTGPU_CAPABILITY", "9"},
        {"SOFTGPU_CAPABILITY", "99.0"},   {"SOFTGPU_THREADS", ""},    {"SOFTGPU_SMS", "many"},
        {"SOFTGPU_CONF", "/no/such/file"}};
    for (const auto& [key, value] : wrong) {
        BOOST_TEST_CONTEXT(key << "=" << value) {
            Process other({"init"}, {{key, value}});
            BOOST_CHECK_EQUAL(other.line(), std::to_string(CUDA_ERROR_INVALID_VALUE));
            const auto sentence = other.error_line();
            BOOST_CHECK_MESSAGE(sentence.find(key) != std::string::npos, sentence);
            BOOST_CHECK_EQUAL(other.error_line(), "");
        }
    }
}

BOOST_AUTO_TEST_CASE(settings_from_a_file) {
    const auto path = directory() + "/softgpu.conf";
    std::ofstream(path) << "# a device\nSOFTGPU_MEMORY = 1G\nSOFTGPU_DIR = " << directory() << "/file\n";
    // The environment of this process says 64M, and wins.
    Process environment({"hold", std::to_string(mib)},
                        {{"SOFTGPU_CONF", path}, {"SOFTGPU_DIR", directory() + "/x"}});
    BOOST_CHECK_EQUAL(environment.line(), std::to_string(63 * mib));
    unsetenv("SOFTGPU_MEMORY");
    Process file({"hold", std::to_string(mib)},
                 {{"SOFTGPU_CONF", path}, {"SOFTGPU_DIR", directory() + "/y"}});
    setenv("SOFTGPU_MEMORY", "64M", 1);
    BOOST_CHECK_EQUAL(file.line(), std::to_string(1023 * mib));
    std::ofstream(path) << "SOFTGPU_MEMORY=1G\nSOFTGPU_COLOUR=blue\n";
    Process wrong({"init"}, {{"SOFTGPU_CONF", path}});
    BOOST_CHECK_EQUAL(wrong.line(), std::to_string(CUDA_ERROR_INVALID_VALUE));
    const auto sentence = wrong.error_line();
    BOOST_CHECK_MESSAGE(sentence.find(":2: ") != std::string::npos, sentence);
}

BOOST_AUTO_TEST_SUITE_END()
