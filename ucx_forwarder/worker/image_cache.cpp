// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/worker/image_cache.h"

#include <sodium.h>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace vgpu::worker {

namespace {

class File {
public:
    explicit File(int fd) : fd_(fd) {}
    ~File() {
        if (fd_ >= 0) {
            ::close(fd_);
        }
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int fd() const { return fd_; }

private:
    const int fd_;
};

bool has_hash(Bytes image, const ImageHash& hash) {
    ImageHash actual;
    crypto_generichash(reinterpret_cast<unsigned char*>(actual.data()), actual.size(),
                       reinterpret_cast<const unsigned char*>(image.data()), image.size(), nullptr, 0);
    return actual == hash;
}

bool read_all(int fd, std::span<std::byte> to) {
    while (!to.empty()) {
        const ssize_t got = ::read(fd, to.data(), to.size());
        if (got <= 0) {
            return false;
        }
        to = to.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

bool write_all(int fd, Bytes from) {
    while (!from.empty()) {
        const ssize_t put = ::write(fd, from.data(), from.size());
        if (put <= 0) {
            return false;
        }
        from = from.subspan(static_cast<std::size_t>(put));
    }
    return true;
}

} // namespace

ImageCache::ImageCache(std::string directory) : directory_(std::move(directory)) {
    if (directory_.empty()) {
        return;
    }
    struct stat status {};
    if (::lstat(directory_.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
        spdlog::warn("image cache {} is not used: it must be a directory of uid {} with mode 0700",
                     directory_, ::geteuid());
        directory_.clear();
    }
}

std::string ImageCache::path_of(const ImageHash& hash) const {
    char hex[2 * sizeof(ImageHash) + 1];
    sodium_bin2hex(hex, sizeof hex, reinterpret_cast<const unsigned char*>(hash.data()), hash.size());
    return directory_ + "/" + hex;
}

ImageCache::Image ImageCache::find(const ImageHash& hash) {
    const auto found = images_.find(hash);
    if (found != images_.end()) {
        return found->second;
    }
    return directory_.empty() ? nullptr : read_file(hash);
}

ImageCache::Image ImageCache::read_file(const ImageHash& hash) {
    const std::string path = path_of(hash);
    const File file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (file.fd() < 0 || ::fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != ::geteuid() || static_cast<std::uint64_t>(status.st_size) > max_image) {
        return nullptr;
    }
    const auto size = static_cast<std::size_t>(status.st_size);
    auto image = std::make_shared<std::vector<std::byte>>(size + padding);
    if (!read_all(file.fd(), std::span(*image).first(size)) || !has_hash(Bytes(*image).first(size), hash)) {
        spdlog::warn("image cache: {} is damaged and is removed", path);
        ::unlink(path.c_str());
        return nullptr;
    }
    (void)::futimens(file.fd(), nullptr); // used now: prune() takes the oldest
    return image;
}

bool ImageCache::add_part(const ImageHash& hash, std::uint64_t size, std::uint64_t offset, Bytes part) {
    if (size == 0 || size > max_image || offset > size || part.size() > size - offset) {
        return false;
    }
    if (offset == 0) {
        std::uint64_t held = size;
        for (const auto& [other, partial] : partial_) {
            held += partial.size;
        }
        if (held > max_partial) {
            return false;
        }
        Partial& fresh =
            partial_[hash]; // two threads of the client may send the same image; the later begin wins
        fresh.bytes.clear();
        fresh.bytes.reserve(size + padding);
        fresh.size = size;
    }
    const auto found = partial_.find(hash);
    if (found == partial_.end()) {
        return find(hash) != nullptr; // the other thread's copy was complete first
    }
    Partial& partial = found->second;
    if (partial.size != size || partial.bytes.size() != offset) {
        return partial.size == size && offset < partial.bytes.size();
    }
    partial.bytes.insert(partial.bytes.end(), part.begin(), part.end());
    if (partial.bytes.size() < size) {
        return true;
    }
    auto bytes = std::move(partial.bytes);
    partial_.erase(found);
    if (!has_hash(bytes, hash)) {
        return false;
    }
    if (!directory_.empty()) {
        write_file(hash, bytes);
    }
    bytes.resize(size + padding);
    if (held_ + size > max_partial) {
        images_.clear(); // what is still needed will be sent again, or is in the directory
        held_ = 0;
    }
    held_ += size;
    images_[hash] = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return true;
}

void ImageCache::write_file(const ImageHash& hash, Bytes image) {
    prune();
    const std::string path = path_of(hash);
    const std::string temporary = path + "." + std::to_string(::getpid());
    bool written = false;
    {
        const File file(
            ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        written = file.fd() >= 0 && write_all(file.fd(), image);
    }
    if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
        spdlog::warn("image cache: {} cannot be written ({}); the image will be sent again", path,
                     std::strerror(errno));
        ::unlink(temporary.c_str());
    }
}

void ImageCache::prune() {
    namespace fs = std::filesystem;
    struct Found {
        fs::file_time_type time;
        std::uint64_t size;
        fs::path path;
    };
    std::vector<Found> files;
    std::uint64_t total = 0;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory_, error)) {
        std::error_code ignored;
        if (entry.is_regular_file(ignored)) {
            files.push_back({entry.last_write_time(ignored), entry.file_size(ignored), entry.path()});
            total += files.back().size;
        }
    }
    std::sort(files.begin(), files.end(), [](const Found& a, const Found& b) { return a.time < b.time; });
    for (const Found& file : files) {
        if (total <= max_directory) {
            return;
        }
        std::error_code ignored;
        fs::remove(file.path, ignored);
        total -= file.size;
    }
}

} // namespace vgpu::worker
