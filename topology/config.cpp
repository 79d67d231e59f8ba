// SPDX-License-Identifier: BSD-3-Clause
#include "topology/config.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <system_error>

#include "topology/parse.h"

namespace vgpu {
namespace {

/// What NodeName lines may set, and the file outside of them for all nodes.
struct NodeDefaults {
    std::string cuda_library = "libcuda.so.1";
    std::map<std::string, std::string> cuda_env;
    std::string net_devices;
};

void replace_all(std::string& text, const std::string& what, const std::string& with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
}

std::string absolute_path(const std::string& value) {
    if (value.empty() || value[0] != '/')
        throw ParseError('"' + value + "\" is not an absolute path: it must begin with a /");
    return value;
}

std::string not_empty(const std::string& value) {
    if (value.empty())
        throw ParseError("the value is empty");
    return value;
}

std::string library_name(const std::string& value) {
    if (value.empty() || (value[0] != '/' && value.find('/') != std::string::npos))
        throw ParseError('"' + value +
                         "\" is not a library: write its absolute path, or a bare name such as libcuda.so.1");
    return value;
}

std::string program_name(const std::string& value) {
    if (value.empty() || (value[0] != '/' && value.find('/') != std::string::npos))
        throw ParseError('"' + value +
                         "\" is not a program: write its absolute path, or a bare name to be found in PATH");
    return value;
}

std::string one_of(const std::string& value, const std::vector<std::string>& words) {
    for (const auto& word : words)
        if (same_key(value, word))
            return word;
    std::string all;
    for (std::size_t i = 0; i < words.size(); ++i)
        all += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    throw ParseError('"' + value + "\" is not one of " + all);
}

std::uint16_t port(const std::string& value) {
    return static_cast<std::uint16_t>(parse_number(value, 1, 65535));
}

class Reader {
public:
    explicit Reader(std::string path);
    Config read();

private:
    using Setter = std::function<void(const std::string&)>;
    using Keys = std::vector<std::pair<std::string, Setter>>;

    [[noreturn]] void fail(const std::string& sentence) const {
        throw ConfigError(config_.path + " line " + std::to_string(line_) + ": " + sentence);
    }
    std::vector<std::string> known_keys() const;
    void line(const std::string& text);
    void global(const std::string& key, const std::string& value);
    void node_line(const std::vector<std::pair<std::string, std::string>>& pairs);
    void finish();

    Config config_;
    unsigned line_ = 0;
    Keys globals_;
    std::map<std::string, unsigned> seen_; ///< global key -> line
    std::set<std::string> node_names_;
    NodeDefaults defaults_;
    /// Applied at the end, when the defaults are known: what each NodeName line said.
    std::vector<std::function<void(NodeConfig&)>> node_settings_;
    const std::vector<std::string> node_keys_{"NodeName", "NodeAddr", "CudaLibrary", "CudaEnv", "NetDevices"};
};

Reader::Reader(std::string path) {
    config_.path = std::move(path);
    config_.client_dir = VGPU_CLIENT_DIR;
    config_.worker_program = VGPU_WORKER_PROGRAM;
    auto& c = config_;
    auto& d = defaults_;
    globals_ = {
        {"VgpuctldHost", [&c](const std::string& v) { c.controller_host = not_empty(v); }},
        {"VgpuctldAddr", [&c](const std::string& v) { c.controller_address = not_empty(v); }},
        {"VgpuctldPort", [&c](const std::string& v) { c.controller_port = port(v); }},
        {"VgpudPort", [&c](const std::string& v) { c.node_port = port(v); }},
        {"SharesPerGPU",
         [&c](const std::string& v) { c.shares_per_gpu = static_cast<unsigned>(parse_number(v, 1, 10000)); }},
        {"MungeSocket", [&c](const std::string& v) { c.munge_socket = absolute_path(v); }},
        {"SlurmUser", [&c](const std::string& v) { c.slurm_user = not_empty(v); }},
        {"StateDir", [&c](const std::string& v) { c.state_dir = absolute_path(v); }},
        {"RunDir", [&c](const std::string& v) { c.run_dir = absolute_path(v); }},
        {"ClientDir", [&c](const std::string& v) { c.client_dir = absolute_path(v); }},
        {"WorkerProgram", [&c](const std::string& v) { c.worker_program = absolute_path(v); }},
        {"Transport",
         [&c](const std::string& v) {
             c.transport = one_of(v, {"auto", "tcp", "shm", "rdma"});
         }},
        {"StaticRedirect", [&c](const std::string& v) { c.static_redirect = parse_flag(v); }},
        {"LogLevel",
         [&c](const std::string& v) {
             c.log_level = one_of(v, {"error", "warn", "info", "debug", "trace"});
         }},
        {"PeerTimeout", [&c](const std::string& v) { c.peer_timeout = parse_duration(v); }},
        {"NodeTimeout", [&c](const std::string& v) { c.node_timeout = parse_duration(v); }},
        {"StartGrace", [&c](const std::string& v) { c.start_grace = parse_duration(v); }},
        {"ReconcileInterval", [&c](const std::string& v) { c.reconcile_interval = parse_duration(v); }},
        {"JobGrace", [&c](const std::string& v) { c.job_grace = parse_duration(v); }},
        {"SqueueProgram", [&c](const std::string& v) { c.squeue_program = program_name(v); }},
        {"CudaLibrary", [&d](const std::string& v) { d.cuda_library = library_name(v); }},
        {"CudaEnv", [&d](const std::string& v) { d.cuda_env = parse_environment(v); }},
        {"NetDevices", [&d](const std::string& v) { d.net_devices = v; }},
    };
}

std::vector<std::string> Reader::known_keys() const {
    std::vector<std::string> keys{"NodeName", "NodeAddr"};
    for (const auto& [key, setter] : globals_)
        keys.push_back(key);
    return keys;
}

Config Reader::read() {
    std::ifstream file(config_.path);
    if (!file)
        throw ConfigError(config_.path + " cannot be read: " + std::generic_category().message(errno) +
                          "; it is the cluster's vgpu.conf, see vgpu.conf(5)");
    std::string text, joined;
    unsigned first = 0, at = 0;
    while (std::getline(file, text)) {
        ++at;
        if (joined.empty())
            first = at;
        while (!text.empty() && text.back() == '\r')
            text.pop_back();
        if (!text.empty() && text.back() == '\\') { // the line goes on in the next
            text.back() = ' ';
            joined += text;
            continue;
        }
        line_ = first;
        line(joined + text);
        joined.clear();
    }
    if (file.bad())
        throw ConfigError(config_.path + " cannot be read: " + std::generic_category().message(errno));
    if (!joined.empty()) {
        line_ = first;
        line(joined);
    }
    finish();
    return std::move(config_);
}

void Reader::line(const std::string& text) {
    std::vector<std::pair<std::string, std::string>> pairs;
    try {
        pairs = parse_pairs(text);
    } catch (const ParseError& error) {
        fail(error.what());
    }
    if (pairs.empty())
        return;
    if (same_key(pairs[0].first, "NodeName"))
        return node_line(pairs);
    for (const auto& [key, value] : pairs)
        global(key, value);
}

void Reader::global(const std::string& key, const std::string& value) {
    for (const auto& [name, setter] : globals_) {
        if (!same_key(key, name))
            continue;
        auto [seen, first] = seen_.emplace(name, line_);
        if (!first)
            fail(name + " is set here and already on line " + std::to_string(seen->second) +
                 ": leave one of them");
        try {
            setter(value);
        } catch (const ParseError& error) {
            fail(name + ": " + error.what());
        }
        return;
    }
    if (same_key(key, "NodeName") || same_key(key, "NodeAddr"))
        fail(key + " must stand on a line that begins with NodeName");
    auto near = nearest(key, known_keys());
    fail(key + " is not a known key" +
         (near.empty() ? ", see vgpu.conf(5)" : ": did you mean " + near + "?"));
}

void Reader::node_line(const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::vector<std::string> names, addresses;
    std::vector<std::function<void(NodeConfig&)>> settings;
    std::set<std::string> given;
    for (const auto& [key, value] : pairs) {
        auto known = std::find_if(node_keys_.begin(), node_keys_.end(),
                                  [&key = key](const std::string& name) { return same_key(key, name); });
        if (known == node_keys_.end()) {
            auto near = nearest(key, node_keys_);
            fail(key + " is not a key of a NodeName line" +
                 (near.empty() ? ": these are NodeAddr, CudaLibrary, CudaEnv and NetDevices"
                               : ": did you mean " + near + "?"));
        }
        if (!given.insert(*known).second)
            fail(*known + " stands twice on this line");
        try {
            if (*known == "NodeName")
                names = expand_hostlist(value);
            else if (*known == "NodeAddr")
                addresses = expand_hostlist(value);
            else if (*known == "CudaLibrary")
                settings.push_back([v = library_name(value)](NodeConfig& n) { n.cuda_library = v; });
            else if (*known == "CudaEnv")
                settings.push_back([v = parse_environment(value)](NodeConfig& n) { n.cuda_env = v; });
            else
                settings.push_back([v = value](NodeConfig& n) { n.net_devices = v; });
        } catch (const ParseError& error) {
            fail(*known + ": " + error.what());
        }
    }
    if (!addresses.empty() && addresses.size() != names.size())
        fail("NodeName names " + std::to_string(names.size()) + " nodes and NodeAddr " +
             std::to_string(addresses.size()) + ": there must be one address for each node");
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (same_key(names[i], "DEFAULT"))
            fail("NodeName=DEFAULT is not used here: a key on a line without NodeName holds for all nodes");
        if (!node_names_.insert(names[i]).second)
            fail("the node " + names[i] + " is already on another NodeName line: name each node once");
        NodeConfig node;
        node.name = names[i];
        node.address = addresses.empty() ? names[i] : addresses[i];
        config_.nodes.push_back(std::move(node));
        node_settings_.push_back([settings](NodeConfig& n) {
            for (const auto& set : settings)
                set(n);
        });
    }
}

void Reader::finish() {
    if (config_.controller_host.empty())
        throw ConfigError(
            config_.path +
            ": VgpuctldHost is missing: name the machine that vgpuctld runs on, as in VgpuctldHost=ctl");
    if (config_.controller_address.empty())
        config_.controller_address = config_.controller_host;
    if (config_.nodes.empty())
        throw ConfigError(config_.path +
                          ": there is no NodeName line: name the nodes with GPUs, as in NodeName=g[1-4]");
    for (std::size_t i = 0; i < config_.nodes.size(); ++i) {
        auto& node = config_.nodes[i];
        node.cuda_library = defaults_.cuda_library;
        node.cuda_env = defaults_.cuda_env;
        node.net_devices = defaults_.net_devices;
        node_settings_[i](node);
        for (auto& [name, value] : node.cuda_env)
            replace_all(value, "%n", node.name);
        replace_all(node.cuda_library, "%n", node.name);
    }
}

} // namespace

const NodeConfig* Config::node(const std::string& name) const {
    for (const auto& node : nodes)
        if (node.name == name)
            return &node;
    return nullptr;
}

Config Config::on(const std::string& name) const {
    Config out = *this;
    replace_all(out.state_dir, "%n", name);
    replace_all(out.run_dir, "%n", name);
    return out;
}

Config load_config(const std::string& path) {
    std::string file = path;
    if (file.empty()) {
        const char* from_environment = std::getenv("VGPU_CONF");
        file = from_environment != nullptr && *from_environment != '\0' ? from_environment
                                                                        : VGPU_SYSCONF_DIR "/slurm/vgpu.conf";
    }
    return Reader(file).read();
}

} // namespace vgpu
