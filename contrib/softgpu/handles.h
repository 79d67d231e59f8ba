// SPDX-License-Identifier: BSD-3-Clause
// The handles that programs hold: the address of the object, valid while it is listed here. A stale or
// made-up handle is found out, not followed.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace softgpu {

// Thread-safe.
template <class Object>
class Handles {
public:
    template <class Handle>
    Handle add(std::shared_ptr<Object> object) {
        const void* key = object.get();
        const std::unique_lock guard(mutex_);
        const auto handle = (Handle)(object.get()); // a pointer, or a number as wide
        objects_[key] = std::move(object);
        return handle;
    }

    // nullptr where the handle is none of ours.
    [[nodiscard]] std::shared_ptr<Object> find(const void* handle) const {
        const std::shared_lock guard(mutex_);
        const auto found = objects_.find(handle);
        return found != objects_.end() ? found->second : nullptr;
    }

    // Ends the handle's validity; nullptr where it was not valid.
    std::shared_ptr<Object> remove(const void* handle) {
        const std::unique_lock guard(mutex_);
        const auto found = objects_.find(handle);
        if (found == objects_.end())
            return nullptr;
        auto object = std::move(found->second);
        objects_.erase(found);
        return object;
    }

    template <class Predicate>
    std::vector<std::shared_ptr<Object>> remove_if(Predicate predicate) {
        std::vector<std::shared_ptr<Object>> removed;
        const std::unique_lock guard(mutex_);
        for (auto i = objects_.begin(); i != objects_.end();) {
            if (predicate(*i->second)) {
                removed.push_back(std::move(i->second));
                i = objects_.erase(i);
            } else {
                ++i;
            }
        }
        return removed;
    }

    [[nodiscard]] std::vector<std::shared_ptr<Object>> all() const {
        const std::shared_lock guard(mutex_);
        std::vector<std::shared_ptr<Object>> result;
        result.reserve(objects_.size());
        for (const auto& [key, object] : objects_)
            result.push_back(object);
        return result;
    }

private:
    mutable std::shared_mutex mutex_;
    std::unordered_map<const void*, std::shared_ptr<Object>> objects_;
};

} // namespace softgpu
