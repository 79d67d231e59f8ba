// SPDX-License-Identifier: BSD-3-Clause
#include "ucx_forwarder/transport/ucx.h"

#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fstream>
#include <ifaddrs.h>
#include <memory>
#include <mutex>
#include <netdb.h>
#include <regex>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace vgpu::transport {
namespace {

/// UCX lives inside users' programs here: it must not write to their stderr, nor keep handlers for their
/// signals. Its library set both up when it was loaded. What the user asked of UCX by environment stays.
void quiet_ucx() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (getenv("UCX_LOG_LEVEL") == nullptr)
            ucs_global_opts_set_value("LOG_LEVEL", "fatal");
        if (getenv("UCX_HANDLE_ERRORS") == nullptr)
            for (int number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE})
                ucs_debug_disable_signal(number);
    });
}

/// Other processes of the same user can neither read this process's memory nor open its files through /proc:
/// what a worker is. UCX's cma and posix need that, sysv does not.
bool is_sealed() {
    return prctl(PR_GET_DUMPABLE) != 1;
}

std::string tls_for(const std::string& transport) {
    const bool sealed = is_sealed();
    if (transport == "tcp")
        return "tcp";
    if (transport == "shm")
        return sealed ? "sysv,tcp" : "sm,tcp"; // a listener needs tcp for the wire-up
    if (transport == "rdma")
        return "rc,ud,dc";
    if (transport == "auto")
        return sealed ? "^cma,posix" : "all";
    throw TransportError("transport \"" + transport + "\" is unknown: auto, tcp, shm or rdma would be right");
}

class UcpConfig {
public:
    UcpConfig() {
        if (ucs_status_t status = ucp_config_read(nullptr, nullptr, &config_); status != UCS_OK)
            throw TransportError(std::string("UCX cannot read its configuration: ") +
                                 ucs_status_string(status));
    }
    ~UcpConfig() { ucp_config_release(config_); }
    UcpConfig(const UcpConfig&) = delete;
    UcpConfig& operator=(const UcpConfig&) = delete;
    void set(const char* name, const std::string& value) {
        if (ucs_status_t status = ucp_config_modify(config_, name, value.c_str()); status != UCS_OK)
            throw TransportError(std::string("UCX does not take ") + name + "=" + value + ": " +
                                 ucs_status_string(status));
    }
    const ucp_config_t* get() const { return config_; }

private:
    ucp_config_t* config_ = nullptr;
};

bool same_host(const sockaddr* a, const SocketAddress& b) {
    if (a == nullptr || a->sa_family != b.storage.ss_family)
        return false;
    if (a->sa_family == AF_INET)
        return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
               reinterpret_cast<const sockaddr_in*>(&b.storage)->sin_addr.s_addr;
    return memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                  &reinterpret_cast<const sockaddr_in6*>(&b.storage)->sin6_addr, sizeof(in6_addr)) == 0;
}

std::vector<std::string> entries(const std::string& folder) {
    std::vector<std::string> names;
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
    while (const dirent* entry = dir ? readdir(dir.get()) : nullptr)
        if (entry->d_name[0] != '.')
            names.emplace_back(entry->d_name);
    return names;
}

/// "mlx5_0:1" of all ports that are up.
std::vector<std::string> rdma_ports() {
    std::vector<std::string> ports;
    const std::string root = "/sys/class/infiniband";
    for (const auto& device : entries(root))
        for (const auto& port : entries(root + "/" + device + "/ports")) {
            std::string state;
            std::ifstream(root + "/" + device + "/ports/" + port + "/state") >> state;
            if (state.starts_with("4"))
                ports.push_back(device + ":" + port);
        }
    return ports;
}

} // namespace

Ucx::Ucx(const Options& options, const std::string& net_devices) {
    quiet_ucx();
    UcpConfig config;
    config.set("TLS", tls_for(options.transport));
    config.set("NET_DEVICES", net_devices);
    // PEER error handling, by which a dead peer is noticed at once, would drop shared memory without this.
    // The key is the one of UCX's table of settings that posix and sysv have in common; the names that are
    // known from the environment, UCX_POSIX_ERROR_HANDLING and UCX_SYSV_ERROR_HANDLING, are taken by UCX 1.13
    // and have no effect.
    config.set("MM_ERROR_HANDLING", "y");
    if (options.transport == "rdma")
        config.set("SOCKADDR_TLS_PRIORITY", "rdmacm");
    else if (options.transport != "auto")
        config.set("SOCKADDR_TLS_PRIORITY", "tcp");

    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 0;
    if (ucs_status_t status = ucp_init(&params, config.get(), &context_); status != UCS_OK)
        throw TransportError(
            "UCX cannot start with transport \"" + options.transport + "\" on device " + net_devices + ": " +
            ucs_status_string(status) +
            "; vgpu.conf's Transport and NetDevices name what is not there (ucx_info -d lists all)");
    ucp_worker_params_t worker_params{};
    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucs_status_t status = ucp_worker_create(context_, &worker_params, &worker_);
    if (status == UCS_OK)
        status = ucp_worker_get_efd(worker_, &event_fd_);
    if (status != UCS_OK) {
        if (worker_ != nullptr)
            ucp_worker_destroy(worker_);
        ucp_cleanup(context_);
        throw TransportError(
            "UCX cannot use transport \"" + options.transport + "\" on device " + net_devices + ": " +
            ucs_status_string(status) +
            "; vgpu.conf's Transport and NetDevices name what is not there (ucx_info -d lists all)");
    }
}

Ucx::~Ucx() {
    if (worker_ != nullptr)
        ucp_worker_destroy(worker_);
    if (context_ != nullptr)
        ucp_cleanup(context_);
}

void Ucx::leak() {
    worker_ = nullptr;
    context_ = nullptr;
}

std::string devices_for(const SocketAddress& local, const Options& options) {
    if (!options.net_devices.empty())
        return options.net_devices;
    std::string devices;
    if (options.transport == "auto" || options.transport == "rdma")
        for (const auto& port : rdma_ports())
            devices += (devices.empty() ? "" : ",") + port;
    if (options.transport == "rdma") {
        if (devices.empty())
            throw TransportError("transport \"rdma\" is demanded, but this machine has no active RDMA port "
                                 "(/sys/class/infiniband); see ibv_devinfo, or set Transport in vgpu.conf");
        return devices;
    }
    ifaddrs* interfaces = nullptr;
    if (getifaddrs(&interfaces) != 0)
        throw TransportError(std::string("getifaddrs: ") + strerror(errno));
    std::string name;
    for (const ifaddrs* i = interfaces; i != nullptr && name.empty(); i = i->ifa_next)
        if (same_host(i->ifa_addr, local))
            name = i->ifa_name;
    // 127.0.0.2 and the like are nobody's address but lo's.
    if (name.empty() && local.storage.ss_family == AF_INET &&
        (ntohl(reinterpret_cast<const sockaddr_in*>(&local.storage)->sin_addr.s_addr) >> 24) == 127)
        name = "lo";
    freeifaddrs(interfaces);
    if (name.empty())
        return "all";
    return name + (devices.empty() ? "" : "," + devices);
}

std::string lane_names(ucp_ep_h endpoint) {
    char* text = nullptr;
    std::size_t size = 0;
    FILE* stream = open_memstream(&text, &size);
    if (stream == nullptr)
        return "?";
    ucp_ep_print_info(endpoint, stream);
    fclose(stream);
    const std::string description(text, size);
    free(text);
    // "#                 lane[0]:  2:tcp/eth0.0 md[1]     -> md[1]/tcp/sysdev[255] rma_bw#0 am am_bw#0
    // wireup"
    static const std::regex lane(R"(lane\[\d+\]:\s+\d+:([a-z0-9_]+)/(\S+?)(?:\.\d+)?\s+md\[\d+\].*->(.*))");
    std::string first, rest;
    for (std::sregex_iterator i(description.begin(), description.end(), lane), end; i != end; ++i) {
        const std::string tl = (*i)[1], device = (*i)[2], uses = (*i)[3];
        const std::string name = device == "memory" ? tl : tl + "/" + device;
        if (uses.find(" am") == std::string::npos && uses.find("rma_bw") == std::string::npos)
            continue;
        if (std::regex_search(uses, std::regex(R"( am( |$))")))
            first = name;
        else if (rest.find(name) == std::string::npos)
            rest += "+" + name;
    }
    if (rest.find("+" + first) != std::string::npos && !first.empty())
        rest.erase(rest.find("+" + first), first.size() + 1);
    return first.empty() ? "?" : first + rest;
}

void check_demand(const Options& options, const std::string& in_use, const std::string& peer) {
    auto starts = [&](std::initializer_list<const char*> prefixes) {
        for (const char* prefix : prefixes)
            if (in_use.starts_with(prefix))
                return true;
        return false;
    };
    bool met = true;
    if (options.transport == "tcp")
        met = starts({"tcp"});
    else if (options.transport == "shm")
        met = starts({"posix", "sysv", "xpmem"});
    else if (options.transport == "rdma")
        met = starts({"rc_", "ud_", "dc_"});
    if (!met)
        throw TransportError("transport \"" + options.transport + "\" is demanded, but UCX found only " +
                             in_use + " to " + peer + "; set Transport or NetDevices in vgpu.conf");
}

} // namespace vgpu::transport
