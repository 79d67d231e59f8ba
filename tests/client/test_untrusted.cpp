// SPDX-License-Identifier: BSD-3-Clause
// What a client may send that is not ours: the worker ends the session, and never crashes.
#include "tests/client/worker_process.h"
#include "ucx_forwarder/protocol/message.h"

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <random>

using namespace vgpu;
using protocol::Call;
using protocol::RecordHeader;
using protocol::WireId;

namespace {

/// A client that writes its records itself.
class RawClient : public transport::Receiver {
public:
    RawClient() : connection_(worker_.connect()) { connection_->start(*this); }

    std::span<std::byte> body_buffer(std::span<const std::byte>, std::size_t) override { return {}; }
    void message(std::span<const std::byte>, std::span<std::byte>) override { ++replies_; }
    void lost(const std::string&) override {}

    template <class... T>
    void send(RecordHeader header, const T&... parameters) {
        std::byte buffer[protocol::max_head];
        protocol::Encoder out{std::span<std::byte>(buffer)};
        out.put(header);
        (out.put(parameters), ...);
        connection_->send(out.written());
    }
    void hello() {
        send({Call::hello, 0, 1, {}}, protocol::table_hash);
        BOOST_TEST(connection_->wait_until([this] { return replies_ > 0; }));
    }
    void send_raw(std::span<const std::byte> head, std::span<const std::byte> body = {}) {
        connection_->send(head, body);
    }
    /// The worker's exit status once it has ended the session.
    int ended() {
        (void)connection_->wait_until([] { return false; });
        return worker_.process().wait();
    }
    int close() {
        connection_->close(std::chrono::seconds(5));
        return worker_.process().wait();
    }

private:
    test::WorkerProcess worker_;
    std::atomic<int> replies_{0};
    std::unique_ptr<transport::Connection> connection_;
};

constexpr int refused = 1; ///< run_session's status after a protocol error

} // namespace

BOOST_AUTO_TEST_SUITE(untrusted)

BOOST_AUTO_TEST_CASE(hello_comes_first) {
    RawClient client;
    client.send({Call::cuCtxSynchronize, 0, 1, {}});
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(a_call_that_does_not_exist) {
    RawClient client;
    client.hello();
    client.send({static_cast<Call>(60000), 0, 1, {}});
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(half_a_head) {
    RawClient client;
    client.hello();
    const std::byte few[3]{};
    client.send_raw(few);
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(too_few_parameters) {
    RawClient client;
    client.hello();
    client.send({Call::cuMemAlloc_v2, 0, 1, {}}, std::uint32_t{1});
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(too_many_parameters) {
    RawClient client;
    client.hello();
    client.send({Call::cuMemFree_v2, 0, 0, {}}, std::uint64_t{1}, std::uint64_t{1});
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(the_wrong_way_of_reply) {
    RawClient client;
    client.hello();
    client.send({Call::cuCtxSynchronize, 0, 0, {}});
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(a_box_that_is_not_its_body) {
    RawClient client;
    client.hello();
    protocol::CopyShape shape;
    shape.to.memory = protocol::CopyShape::Memory::device;
    shape.width_bytes = std::uint64_t{1} << 33;
    shape.height = std::uint64_t{1} << 33;
    client.send({Call::copy_3d_to_device, RecordHeader::body_in_head, 0, {}}, shape, WireId{},
                std::uint64_t{1});
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(an_image_that_is_not_its_hash) {
    RawClient client;
    client.hello();
    const protocol::ImageHash hash{};
    client.send({Call::image_part, RecordHeader::body_in_head, 0, {}}, std::uint32_t{32}, hash,
                std::uint64_t{4}, std::uint64_t{0}, std::uint32_t{7});
    BOOST_TEST(client.ended() == refused);
}

BOOST_AUTO_TEST_CASE(noise) {
    // Whatever comes, the worker is alive until it says that it has had enough.
    std::mt19937 random(4711);
    for (int round = 0; round < 20; ++round) {
        RawClient client;
        client.hello();
        for (int i = 0; i < 50; ++i) {
            std::byte head[200];
            for (std::byte& byte : head) {
                byte = static_cast<std::byte>(random());
            }
            RecordHeader header;
            header.call = static_cast<Call>(random() % protocol::call_count);
            header.flags = static_cast<std::uint16_t>(random() % 4);
            header.slot = protocol::info(header.call).how == protocol::How::awaited ? 5 : 0;
            header.context = WireId{random() % 20};
            std::memcpy(head, &header, sizeof header);
            client.send_raw(std::span(head).first(sizeof header + random() % (sizeof head - sizeof header)));
        }
        const int status = client.close();
        BOOST_TEST((status == 0 || status == refused), "exit status " << status);
    }
}

BOOST_AUTO_TEST_SUITE_END()
