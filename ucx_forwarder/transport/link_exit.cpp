// SPDX-License-Identifier: BSD-3-Clause
// Link: the end of the process. The client's connections live in a singleton that is never destroyed, so
// their helper threads would still call UCX while exit() takes UCX's libraries down.
#include "ucx_forwarder/transport/link.h"

#include <algorithm>
#include <cstdlib>

namespace vgpu::transport {
namespace {

struct Registry {
    std::mutex mutex;
    std::vector<Link*> links;
};

Registry& registry() {
    static auto& leaked = *new Registry; // outlives every destructor at exit
    return leaked;
}

} // namespace

void Link::enrol() {
    static const int registered = std::atexit([] {
        std::vector<Link*> links;
        {
            std::lock_guard lock(registry().mutex);
            links = registry().links;
        }
        for (Link* link : links)
            link->at_exit();
    });
    (void)registered;
    std::lock_guard lock(registry().mutex);
    registry().links.push_back(this);
}

void Link::strike_off() {
    std::lock_guard lock(registry().mutex);
    std::erase(registry().links, this);
}

void Link::at_exit() {
    using namespace std::chrono_literals;
    if (forked() || !helper_)
        return;
    if (!lost())
        close(500ms);
    stop_helper();
    std::lock_guard lock(mutex_);
    dead_ = true;
}

void Link::stop_helper() {
    if (!helper_)
        return;
    stop_helper_ = true;
    kick_helper();
    if (helper_->get_id() == std::this_thread::get_id())
        helper_->detach(); // exit() was called by a function of the receiver
    else
        helper_->join();
    helper_.reset();
}

} // namespace vgpu::transport
