// SPDX-License-Identifier: BSD-3-Clause
#define BOOST_TEST_DYN_LINK
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fstream>
#include <string>

#include <unistd.h>

#include "topology/config.h"

using namespace vgpu;
using namespace std::chrono_literals;

namespace {

/// A vgpu.conf with this text, gone at the end of the scope.
class File {
public:
    explicit File(const std::string& text) {
        int fd = mkstemp(path_.data());
        BOOST_REQUIRE(fd >= 0);
        close(fd);
        std::ofstream(path_) << text;
    }
    ~File() { unlink(path_.c_str()); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_ = "/tmp/vgpu-test-conf-XXXXXX";
};

Config read(const std::string& text) {
    File file(text);
    return load_config(file.path());
}

/// What the reader says of the text, with the file's name replaced by FILE.
std::string complaint(const std::string& text) {
    File file(text);
    try {
        load_config(file.path());
    } catch (const ConfigError& error) {
        std::string what = error.what();
        BOOST_REQUIRE(what.rfind(file.path(), 0) == 0);
        return "FILE" + what.substr(file.path().size());
    }
    return "(accepted)";
}

const std::string base = "VgpuctldHost=ctl\nNodeName=g1\n";

} // namespace

BOOST_AUTO_TEST_SUITE(config)

BOOST_AUTO_TEST_CASE(defaults) {
    auto c = read(base);
    BOOST_TEST(c.controller_host == "ctl");
    BOOST_TEST(c.controller_address == "ctl");
    BOOST_TEST(c.controller_port == 6830);
    BOOST_TEST(c.node_port == 6831);
    BOOST_TEST(c.shares_per_gpu == 100u);
    BOOST_TEST(c.slurm_user == "slurm");
    BOOST_TEST(c.transport == "auto");
    BOOST_TEST(c.static_redirect);
    BOOST_CHECK(c.peer_timeout == 4s);
    BOOST_TEST(c.client_dir.find("slurm-vgpu") != std::string::npos);
    BOOST_TEST(c.worker_program.find("/vgpu-worker") != std::string::npos);
    BOOST_REQUIRE(c.nodes.size() == 1u);
    BOOST_TEST(c.nodes[0].address == "g1");
    BOOST_TEST(c.nodes[0].cuda_library == "libcuda.so.1");
    BOOST_TEST(c.node("g1") == &c.nodes[0]);
    BOOST_TEST(c.node("c1") == nullptr);
}

BOOST_AUTO_TEST_CASE(everything) {
    auto c =
        read("# the pool\n"
             "vgpuctldhost=ctl VgpuctldAddr=10.77.0.1   # two on a line\n"
             "VgpuctldPort=7000\nVGPUDPORT=7001\nSharesPerGPU=10\n"
             "MungeSocket=/run/munge.s\nSlurmUser=alice\nStateDir=/var/lib/%n\nRunDir=\"/run/with blank\"\n"
             "ClientDir=/opt/c\nWorkerProgram=/opt/w\nTransport=RDMA\nStaticRedirect=no\nLogLevel=Debug\n"
             "PeerTimeout=2500ms\nNodeTimeout=20\nStartGrace=5s\nReconcileInterval=1s\nJobGrace=2m\n"
             "SqueueProgram=/usr/bin/squeue\n"
             "NodeName=g[1-2] NodeAddr=10.77.0.[21-22] \\\n"
             "  CudaEnv=SOFTGPU_NAME=%n,X=1\n"
             "NodeName=big NetDevices=mlx5_0:1\n"
             "CudaLibrary=/opt/%n/libcuda.so.1\nCudaEnv=Y=2\nNetDevices=eth0\n");
    BOOST_TEST(c.controller_address == "10.77.0.1");
    BOOST_TEST(c.controller_port == 7000);
    BOOST_TEST(c.node_port == 7001);
    BOOST_TEST(c.shares_per_gpu == 10u);
    BOOST_TEST(c.munge_socket == "/run/munge.s");
    BOOST_TEST(c.slurm_user == "alice");
    BOOST_TEST(c.run_dir == "/run/with blank");
    BOOST_TEST(c.state_dir == "/var/lib/%n");
    BOOST_TEST(c.on("g2").state_dir == "/var/lib/g2");
    BOOST_TEST(c.client_dir == "/opt/c");
    BOOST_TEST(c.worker_program == "/opt/w");
    BOOST_TEST(c.transport == "rdma");
    BOOST_TEST(!c.static_redirect);
    BOOST_TEST(c.log_level == "debug");
    BOOST_CHECK(c.peer_timeout == 2500ms);
    BOOST_CHECK(c.node_timeout == 20s);
    BOOST_CHECK(c.start_grace == 5s);
    BOOST_CHECK(c.reconcile_interval == 1s);
    BOOST_CHECK(c.job_grace == 120s);
    BOOST_TEST(c.squeue_program == "/usr/bin/squeue");
    BOOST_REQUIRE(c.nodes.size() == 3u);
    BOOST_TEST(c.nodes[1].name == "g2");
    BOOST_TEST(c.nodes[1].address == "10.77.0.22");
    BOOST_TEST(c.nodes[1].cuda_env.at("SOFTGPU_NAME") == "g2");
    BOOST_TEST(c.nodes[1].cuda_env.at("X") == "1");
    BOOST_TEST(c.nodes[1].net_devices == "eth0"); // from the whole file, though it stands below
    BOOST_TEST(c.nodes[1].cuda_library == "/opt/g2/libcuda.so.1");
    BOOST_TEST(c.nodes[2].net_devices == "mlx5_0:1");
    BOOST_TEST(c.nodes[2].cuda_env.at("Y") == "2");
}

BOOST_AUTO_TEST_CASE(path_from_the_environment) {
    File file(base);
    setenv("VGPU_CONF", file.path().c_str(), 1);
    BOOST_TEST(load_config().path == file.path());
    unsetenv("VGPU_CONF");
}

BOOST_AUTO_TEST_CASE(sentences) {
    BOOST_TEST(complaint("VgpuctldHost=ctl\n\nSharesPerGpus=10\nNodeName=g1\n") ==
               "FILE line 3: SharesPerGpus is not a known key: did you mean SharesPerGPU?");
    BOOST_TEST(complaint(base + "Colour=red\n") ==
               "FILE line 3: Colour is not a known key, see vgpu.conf(5)");
    BOOST_TEST(complaint(base + "VgpudPort=70000\n") ==
               "FILE line 3: VgpudPort: \"70000\" is not a whole number from 1 to 65535");
    BOOST_TEST(complaint(base + "Transport=ib\n") ==
               "FILE line 3: Transport: \"ib\" is not one of auto, tcp, shm or rdma");
    BOOST_TEST(complaint(base + "StaticRedirect=maybe\n") ==
               "FILE line 3: StaticRedirect: \"maybe\" is neither yes nor no");
    BOOST_TEST(complaint(base + "StateDir=var/lib\n") ==
               "FILE line 3: StateDir: \"var/lib\" is not an absolute path: it must begin with a /");
    BOOST_TEST(complaint(base + "vgpuctldhost=b\n") ==
               "FILE line 3: VgpuctldHost is set here and already on line 1: leave one of them");
    BOOST_TEST(complaint(base + "NodeName=g[1-2]\n") ==
               "FILE line 3: the node g1 is already on another NodeName line: name each node once");
    BOOST_TEST(complaint("VgpuctldHost=ctl\nNodeName=g[1-3] NodeAddr=a,b\n") ==
               "FILE line 2: NodeName names 3 nodes and NodeAddr 2: there must be one address for each node");
    BOOST_TEST(complaint("VgpuctldHost=ctl\nNodeName=g1 NodeAdr=a\n") ==
               "FILE line 2: NodeAdr is not a key of a NodeName line: did you mean NodeAddr?");
    BOOST_TEST(
        complaint("VgpuctldHost=ctl\nNodeName=g1 SharesPerGPU=2\n") ==
        "FILE line 2: SharesPerGPU is not a key of a NodeName line: these are NodeAddr, CudaLibrary, CudaEnv "
        "and NetDevices");
    BOOST_TEST(complaint("VgpuctldHost=ctl\nNodeAddr=g1 NodeName=g1\n") ==
               "FILE line 2: NodeAddr must stand on a line that begins with NodeName");
    BOOST_TEST(complaint("VgpuctldHost=ctl\nNodeName=g1 CudaEnv=oops\n") ==
               "FILE line 2: CudaEnv: \"oops\" is not a setting of an environment variable: write "
               "NAME=VALUE, several "
               "with commas between");
    BOOST_TEST(complaint("NodeName=g1\n") ==
               "FILE: VgpuctldHost is missing: name the machine that vgpuctld runs on, "
               "as in VgpuctldHost=ctl");
    BOOST_TEST(complaint("VgpuctldHost=ctl\n") ==
               "FILE: there is no NodeName line: name the nodes with GPUs, as in NodeName=g[1-4]");
    BOOST_TEST(complaint(base + "PeerTimeout\n") ==
               "FILE line 3: \"PeerTimeout\" stands alone: a line holds Key=Value");
    BOOST_TEST(complaint(base + "CudaLibrary=lib/x.so\n") ==
               "FILE line 3: CudaLibrary: \"lib/x.so\" is not a library: write its absolute path, or a bare "
               "name such as "
               "libcuda.so.1");
}

BOOST_AUTO_TEST_CASE(no_file) {
    try {
        load_config("/nonexistent/vgpu.conf");
        BOOST_ERROR("accepted");
    } catch (const ConfigError& error) {
        BOOST_TEST(std::string(error.what()) ==
                   "/nonexistent/vgpu.conf cannot be read: No such file or directory; it is "
                   "the cluster's vgpu.conf, see vgpu.conf(5)");
    }
}

BOOST_AUTO_TEST_SUITE_END()
