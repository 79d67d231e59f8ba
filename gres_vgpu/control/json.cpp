// SPDX-License-Identifier: BSD-3-Clause
#include "gres_vgpu/control/json.h"

namespace vgpu::control {
namespace {

// One list of the fields for both directions; `T` is const for writing.
template <class T, class U>
concept Is = std::is_same_v<std::remove_const_t<T>, U>;

template <Is<Gpu> T, class F>
void fields(T& x, F field) {
    field("index", x.index);
    field("uuid", x.uuid);
    field("name", x.name);
    field("pci_bus_id", x.pci_bus_id);
    field("memory_mib", x.memory_mib);
}

template <Is<Job> T, class F>
void fields(T& x, F field) {
    field("id", x.id);
    field("submit_time", x.submit_time);
    field("restarts", x.restarts);
}

template <Is<Request> T, class F>
void fields(T& x, F field) {
    field("job", x.job);
    field("uid", x.uid);
    field("gid", x.gid);
    field("user", x.user);
    field("node", x.node);
    field("step", x.step);
    field("shares", x.shares);
    field("devices", x.devices);
    field("memory_mib", x.memory_mib);
}

template <Is<Vgpu> T, class F>
void fields(T& x, F field) {
    field("node", x.node);
    field("address", x.address);
    field("port", x.port);
    field("gpu", x.gpu);
    field("uuid", x.uuid);
    field("gpu_name", x.gpu_name);
    field("shares", x.shares);
    field("memory_mib", x.memory_mib);
}

template <Is<Lease> T, class F>
void fields(T& x, F field) {
    field("id", x.id);
    field("request", x.request);
    field("vgpus", x.vgpus);
}

template <Is<Claim> T, class F>
void fields(T& x, F field) {
    field("id", x.id);
    field("lease", x.lease);
    field("secret", x.secret);
    field("request", x.request);
    field("vgpus", x.vgpus);
}

template <Is<Session> T, class F>
void fields(T& x, F field) {
    field("id", x.id);
    field("claim", x.claim);
    field("lease", x.lease);
    field("pid", x.pid);
    field("client", x.client);
    field("transport", x.transport);
    field("calls_sent", x.calls_sent);
    field("calls_awaited", x.calls_awaited);
    field("memory_used", x.memory_used);
}

template <Is<NodeStatus> T, class F>
void fields(T& x, F field) {
    field("node", x.node);
    field("address", x.address);
    field("port", x.port);
    field("gpus", x.gpus);
    field("leases", x.leases);
    field("claims", x.claims);
    field("sessions", x.sessions);
    field("version", x.version);
    field("state", x.state);
}

template <Is<PoolStatus> T, class F>
void fields(T& x, F field) {
    field("shares_per_gpu", x.shares_per_gpu);
    field("nodes", x.nodes);
}

template <class T>
void write(nlohmann::json& json, const T& x) {
    json = nlohmann::json::object();
    fields(x, [&json](const char* name, const auto& value) { json[name] = value; });
}

template <class T>
void read(const nlohmann::json& json, T& x) {
    fields(x, [&json](const char* name, auto& value) {
        // at() names the type error when json is no object.
        if (!json.is_object())
            json.at(name);
        if (auto found = json.find(name); found != json.end())
            found->get_to(value);
    });
}

} // namespace

void to_json(nlohmann::json& json, const Gpu& gpu) {
    write(json, gpu);
}
void from_json(const nlohmann::json& json, Gpu& gpu) {
    read(json, gpu);
}
void to_json(nlohmann::json& json, const Job& job) {
    write(json, job);
}
void from_json(const nlohmann::json& json, Job& job) {
    read(json, job);
}
void to_json(nlohmann::json& json, const Request& request) {
    write(json, request);
}
void from_json(const nlohmann::json& json, Request& request) {
    read(json, request);
}
void to_json(nlohmann::json& json, const Vgpu& vgpu) {
    write(json, vgpu);
}
void from_json(const nlohmann::json& json, Vgpu& vgpu) {
    read(json, vgpu);
}
void to_json(nlohmann::json& json, const Lease& lease) {
    write(json, lease);
}
void from_json(const nlohmann::json& json, Lease& lease) {
    read(json, lease);
}
void to_json(nlohmann::json& json, const Claim& claim) {
    write(json, claim);
    if (claim.secret.empty())
        json.erase("secret");
}
void from_json(const nlohmann::json& json, Claim& claim) {
    read(json, claim);
}
void to_json(nlohmann::json& json, const Session& session) {
    write(json, session);
}
void from_json(const nlohmann::json& json, Session& session) {
    read(json, session);
}
void to_json(nlohmann::json& json, const NodeStatus& status) {
    write(json, status);
}
void from_json(const nlohmann::json& json, NodeStatus& status) {
    read(json, status);
}
void to_json(nlohmann::json& json, const PoolStatus& status) {
    write(json, status);
}
void from_json(const nlohmann::json& json, PoolStatus& status) {
    read(json, status);
}

} // namespace vgpu::control
