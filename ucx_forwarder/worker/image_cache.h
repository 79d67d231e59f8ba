// SPDX-License-Identifier: BSD-3-Clause
// Module images that this worker has, by their BLAKE2b hash: in memory for the session, and, where vgpud gave
// a directory, as files for later workers of the same user on this node. A file counts only if it belongs to
// that user and its content has the hash that its name says.
#pragma once

#include "ucx_forwarder/protocol/codec.h"
#include "ucx_forwarder/protocol/shapes.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace vgpu::worker {

using protocol::Bytes;
using protocol::ImageHash;

class ImageCache {
public:
    /// No image is larger.
    static constexpr std::uint64_t max_image = std::uint64_t{1} << 30;
    /// What a session may have in transfer at once, and what it keeps in memory.
    static constexpr std::uint64_t max_partial = std::uint64_t{2} << 30;
    /// The directory is cut down to this, oldest first.
    static constexpr std::uint64_t max_directory = std::uint64_t{4} << 30;
    /// Behind each image lie so many zero bytes, so that text which lacks its end has one.
    static constexpr std::size_t padding = 64;

    /// `directory`: "" for none. It must belong to this process's user and be closed to others, else it is
    /// not used.
    explicit ImageCache(std::string directory);

    using Image = std::shared_ptr<const std::vector<std::byte>>; ///< image and padding

    /// Null: the node does not have it.
    Image find(const ImageHash& hash);

    /// One part of an image that the client sends. False: it makes no sense (sizes, order).
    [[nodiscard]] bool add_part(const ImageHash& hash, std::uint64_t size, std::uint64_t offset, Bytes part);

private:
    std::string path_of(const ImageHash& hash) const;
    Image read_file(const ImageHash& hash);
    void write_file(const ImageHash& hash, Bytes image);
    void prune();

    std::string directory_;
    struct Partial {
        std::vector<std::byte> bytes;
        std::uint64_t size = 0;
    };
    std::map<ImageHash, Partial> partial_;
    std::map<ImageHash, Image> images_;
    std::uint64_t held_ = 0; ///< bytes in images_
};

} // namespace vgpu::worker
