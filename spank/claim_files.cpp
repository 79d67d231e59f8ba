// SPDX-License-Identifier: BSD-3-Clause
#include "spank/claim_files.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gres_vgpu/control/json.h"

namespace vgpu::spank {
namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::string directory(const Config& config) {
    return config.run_dir + "/claims";
}

std::string step_path(const Config& config, const StepId& step) {
    return directory(config) + "/" + std::to_string(step.job) + "." + std::to_string(step.step) + "." +
           step.node + ".step";
}

/// Users pass through it to their own files and cannot list it.
void make_directory(const Config& config) {
    if (mkdir(config.run_dir.c_str(), 0755) != 0 && errno != EEXIST)
        fail("RunDir " + config.run_dir + " could not be made");
    std::string path = directory(config);
    if (mkdir(path.c_str(), 0711) != 0) {
        if (errno != EEXIST)
            fail(path + " could not be made");
    } else if (chmod(path.c_str(), 0711) != 0) { // the umask may have taken something away
        fail(path + " could not be opened to the users");
    }
}

void write_all(int fd, const std::string& text, const std::string& path) {
    for (std::size_t done = 0; done < text.size();) {
        ssize_t n = ::write(fd, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            fail(path + " could not be written");
        done += static_cast<std::size_t>(n);
    }
}

/// "PID START": names one process for good, as a pid alone does not.
std::string process_name(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text, field;
    std::getline(file, text);
    std::istringstream rest(text.substr(text.rfind(')') + 1));
    for (int i = 3; i <= 22 && rest >> field; ++i)
        ;
    return std::to_string(pid) + " " + field;
}

} // namespace

StepFile::StepFile(const Config& config, const StepId& step) {
    make_directory(config);
    path_ = directory(config) + "/" + std::to_string(step.job) + "." + std::to_string(step.step) + "." +
            step.node + ".step";
    owner_ = process_name(step.stepd);
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0)
        fail(path_ + " could not be opened");
    while (flock(fd_, LOCK_EX) != 0) {
        if (errno != EINTR) {
            int error = errno;
            close(fd_);
            errno = error;
            fail(path_ + " could not be locked");
        }
    }
    std::ifstream file(path_);
    std::string owner, state;
    std::getline(file, owner);
    std::getline(file, state);
    std::getline(file, claim_id_);
    if (owner != owner_)
        claim_id_.clear(); // of an earlier run that ended badly
    else if (state == "claimed")
        state_ = State::claimed;
    else if (state == "refused")
        state_ = State::refused;
}

bool StepFile::exists(const Config& config, const StepId& step) {
    return access(step_path(config, step).c_str(), F_OK) == 0;
}

StepFile::~StepFile() {
    close(fd_);
}

void StepFile::write(const std::string& text) {
    if (ftruncate(fd_, 0) != 0 || lseek(fd_, 0, SEEK_SET) != 0)
        fail(path_ + " could not be written");
    write_all(fd_, owner_ + "\n" + text + "\n", path_);
}

void StepFile::set_claimed(const std::string& claim_id) {
    write("claimed\n" + claim_id);
    state_ = State::claimed;
    claim_id_ = claim_id;
}

void StepFile::set_refused() {
    write("refused");
    state_ = State::refused;
}

void StepFile::remove() {
    unlink(path_.c_str());
}

std::string claim_path(const Config& config, const std::string& claim_id) {
    return directory(config) + "/" + claim_id + ".json";
}

void write_claim(const Config& config, const control::Claim& claim) {
    const nlohmann::json content{
        {"claim", claim},
        {"transport", config.transport},
        {"peer_timeout_ms", config.peer_timeout.count()},
        {"static_redirect", config.static_redirect},
        {"log_level", config.log_level},
    };
    const std::string path = claim_path(config, claim.id), new_path = path + ".new";
    unlink(new_path.c_str());
    int fd = open(new_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);
    if (fd < 0)
        fail(new_path + " could not be made");
    try {
        write_all(fd, content.dump(1) + "\n", new_path);
        // The secret is in it: the user's only after it is closed to all others.
        if (fchmod(fd, 0400) != 0 || fchown(fd, claim.request.uid, claim.request.gid) != 0)
            fail(new_path + " could not be given to the user");
        if (rename(new_path.c_str(), path.c_str()) != 0)
            fail(path + " could not be made");
    } catch (...) {
        close(fd);
        unlink(new_path.c_str());
        throw;
    }
    close(fd);
}

void remove_claim(const Config& config, const std::string& claim_id) noexcept {
    unlink(claim_path(config, claim_id).c_str());
}

void remove_job(const Config& config, std::uint32_t job, const std::string& node) {
    const std::string prefix = std::to_string(job) + ".", of_node = "." + node + ".";
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory(config), error)) {
        const std::string name = entry.path().filename();
        if (name.starts_with(prefix) && (node.empty() || name.find(of_node) != std::string::npos))
            std::filesystem::remove(entry.path(), error);
    }
}

} // namespace vgpu::spank
