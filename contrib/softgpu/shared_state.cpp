// SPDX-License-Identifier: BSD-3-Clause
#include "contrib/softgpu/shared_state.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace softgpu {
namespace {

// The most processes that can have one device open.
constexpr unsigned slot_count = 1024;
using Table = std::array<std::uint64_t, slot_count>;

// What is locked are numbers beyond the end of the file, not its contents.
constexpr off_t accounting_lock = off_t{1} << 40;
constexpr off_t queue_lock = accounting_lock + 1;
constexpr off_t kernel_lock = accounting_lock + 2;
constexpr off_t slot_locks = off_t{1} << 41;

bool lock(int file, off_t byte, int command, short type) {
    struct flock request {};
    request.l_type = type;
    request.l_whence = SEEK_SET;
    request.l_start = byte;
    request.l_len = 1;
    while (::fcntl(file, command, &request) != 0) {
        if (errno == EINTR)
            continue;
        if (command == F_OFD_SETLK && (errno == EAGAIN || errno == EACCES))
            return false;
        throw std::system_error(errno, std::generic_category(), "locking the shared state of a device");
    }
    // F_OFD_GETLK answers in the request itself.
    return command != F_OFD_GETLK || request.l_type == F_UNLCK;
}

void lock_wait(int file, off_t byte) {
    lock(file, byte, F_OFD_SETLKW, F_WRLCK);
}
bool lock_now(int file, off_t byte) {
    return lock(file, byte, F_OFD_SETLK, F_WRLCK);
}
bool is_unlocked(int file, off_t byte) {
    return lock(file, byte, F_OFD_GETLK, F_WRLCK);
}
void unlock(int file, off_t byte) noexcept {
    struct flock request {};
    request.l_type = F_UNLCK;
    request.l_whence = SEEK_SET;
    request.l_start = byte;
    request.l_len = 1;
    ::fcntl(file, F_OFD_SETLK, &request); // cannot fail for a lock that is held
}

class Accounting {
public:
    Accounting(std::mutex& mutex, int file) : guard_(mutex), file_(file) {
        lock_wait(file_, accounting_lock);
    }
    ~Accounting() { unlock(file_, accounting_lock); }
    Accounting(const Accounting&) = delete;
    Accounting& operator=(const Accounting&) = delete;

private:
    std::lock_guard<std::mutex> guard_;
    int file_;
};

int open_shared(const std::string& directory, const std::string& name) {
    // Each user's umask would narrow the modes.
    if (::mkdir(directory.c_str(), 01777) == 0)
        ::chmod(directory.c_str(), 01777);
    else if (errno != EEXIST)
        throw std::system_error(errno, std::generic_category(), "SOFTGPU_DIR=" + directory);
    const auto path = directory + "/" + name;
    for (;;) {
        // Not O_CREAT at once: fs.protected_regular refuses that for another user's file in a sticky
        // directory.
        int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (file >= 0)
            return file;
        if (errno == ENOENT) {
            file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
            if (file >= 0) {
                ::fchmod(file, 0666);
                return file;
            }
            if (errno == EEXIST)
                continue;
        }
        // Between its creation and the fchmod, another user's file may be closed to us for a moment; a second
        // cuInit finds it open.
        throw std::system_error(errno, std::generic_category(), path);
    }
}

} // namespace

SharedState::SharedState(const std::string& directory, const std::string& name, std::uint64_t total)
    : file_(open_shared(directory, name)), total_(total) {
    try {
        const Accounting accounting(mutex_, file_);
        while (slot_ < slot_count && !lock_now(file_, slot_locks + slot_))
            ++slot_;
        if (slot_ == slot_count)
            throw std::runtime_error(directory + "/" + name + ": " + std::to_string(slot_count) +
                                     " processes use this device already");
        write_slot(0);
    } catch (...) {
        ::close(file_);
        throw;
    }
}

SharedState::~SharedState() {
    abandon();
}

void SharedState::abandon() noexcept {
    if (file_ >= 0)
        ::close(file_);
    file_ = -1;
}

void SharedState::write_slot(std::uint64_t bytes) {
    const auto offset = static_cast<off_t>(slot_ * sizeof bytes);
    if (::pwrite(file_, &bytes, sizeof bytes, offset) != sizeof bytes)
        throw std::system_error(errno, std::generic_category(), "writing the shared state of a device");
}

std::uint64_t SharedState::used_by_others() {
    Table table{};
    if (::pread(file_, table.data(), sizeof table, 0) < 0)
        throw std::system_error(errno, std::generic_category(), "reading the shared state of a device");
    std::uint64_t used = 0;
    for (unsigned i = 0; i < slot_count; ++i)
        if (i != slot_ && table[i] != 0 && !is_unlocked(file_, slot_locks + i))
            used += table[i];
    return used;
}

bool SharedState::take(std::uint64_t bytes) {
    const Accounting accounting(mutex_, file_);
    const auto used = used_by_others() + held_;
    if (used > total_ || bytes > total_ - used)
        return false;
    write_slot(held_ + bytes);
    held_ += bytes;
    return true;
}

void SharedState::give(std::uint64_t bytes) {
    const Accounting accounting(mutex_, file_);
    held_ -= bytes;
    write_slot(held_);
}

std::uint64_t SharedState::free() {
    const Accounting accounting(mutex_, file_);
    const auto used = used_by_others() + held_;
    return used < total_ ? total_ - used : 0;
}

void SharedState::begin_kernel() {
    // Two locks: whoever waits for the second holds the first, so that one process that launches kernel after
    // kernel has to queue behind those that wait. The mutexes do the same among our own threads.
    const std::lock_guard queue(kernel_queue_);
    kernel_.lock();
    try {
        lock_wait(file_, queue_lock);
        try {
            lock_wait(file_, kernel_lock);
        } catch (...) {
            unlock(file_, queue_lock);
            throw;
        }
        unlock(file_, queue_lock);
    } catch (...) {
        kernel_.unlock();
        throw;
    }
}

void SharedState::end_kernel() {
    unlock(file_, kernel_lock);
    kernel_.unlock();
}

} // namespace softgpu
