// A single connection over a socket pair, in clear, so that the test can say what it likes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <vector>

#include "transport/link_connection.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using test::Bytes;
using test::Outcome;
using ::testing::HasSubstr;

class LinkConnections : public ::testing::Test {
 protected:
  LinkConnections() : loop_(LinkLoop::start().value()) {}
  ~LinkConnections() override {
    for (const auto& connection : connections_) connection->fail(Status::internal("over"));
    EXPECT_TRUE(loop_->stop(Deadline::after(std::chrono::seconds(5))));
  }

  // A connection of this epoch; its end goes to `ended`.
  std::shared_ptr<LinkConnection> open(UniqueFd fd, std::uint32_t epoch, const Outcome& ended) {
    auto connection = std::make_shared<LinkConnection>(
        loop_, 3, epoch, WireSecurity::kHandshake, LinkLimits{},
        LinkConnection::Events{[](std::string) {}, nullptr, Outcome(ended).callback(), [] {}});
    Established established;
    established.fd = std::move(fd);
    established.peer = 3;
    established.window = kDefaultWindow;
    established.host = "alpha";
    established.address = "10.0.0.3:4711";
    connection->attach(std::move(established));
    connections_.push_back(connection);
    return connection;
  }

  // What a connection says about a peer that sends this.
  Status hears(const FrameHeader& header, const std::string& payload = {}) {
    auto [mine, its] = ends();
    Outcome ended;
    open(std::move(its), 0, ended);
    const FrameHeaderBytes bytes = encodeFrameHeader(header);
    std::string all(bytes.begin(), bytes.end());
    all += payload;
    EXPECT_EQ(::send(mine.get(), all.data(), all.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(all.size()));
    return ended.wait();
  }

  static std::pair<UniqueFd, UniqueFd> ends() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    return {UniqueFd(fds[0]), UniqueFd(fds[1])};
  }

  std::shared_ptr<LinkLoop> loop_;
  std::vector<std::shared_ptr<LinkConnection>> connections_;
};

TEST_F(LinkConnections, AFrameOfAnotherEpochEndsIt) {
  auto [first, second] = ends();
  Outcome endOld;
  Outcome endNew;
  const auto old = open(std::move(first), 1, endOld);
  const auto fresh = open(std::move(second), 2, endNew);
  Bytes place(8);
  const Bytes data(8, 0x77);
  Outcome got;
  fresh->recv(1, place, got.callback());
  Outcome sent;
  old->send(1, data, sent.callback());
  EXPECT_EQ(got.wait().code(), Code::kMismatch);
  EXPECT_THAT(endNew.wait().message(),
              HasSubstr("rank 3 on alpha (10.0.0.3:4711): it is in epoch 1, this rank in epoch 2"));
  EXPECT_EQ(place, Bytes(8));
}

TEST_F(LinkConnections, WhatBreaksTheProtocolEndsItWithAReason) {
  EXPECT_THAT(hears({static_cast<FrameType>(99), 0, 0, 0, 0, 0}).message(),
              HasSubstr("a type that does not exist"));
  EXPECT_THAT(hears({FrameType::kData, 0, 0xffffffff, 1, 1ULL << 40, 0}).message(),
              HasSubstr("a fragment that is too long"));
  EXPECT_THAT(hears({FrameType::kData, 0, 100, 1, 1 << 20, 0}).message(),
              HasSubstr("a large message unasked"));
  EXPECT_THAT(hears({FrameType::kCredit, 0, 0, 0, 1, 0}).message(), HasSubstr("more credit"));
  EXPECT_THAT(hears({FrameType::kControl, 0, 0xffffff, 0, 0, 0}).message(),
              HasSubstr("a control message that is too long"));
  EXPECT_EQ(hears({FrameType::kGoodbye, 0, 0, 0, 0, 0}).code(), Code::kShutdown);
}

TEST_F(LinkConnections, OperationsQueueBeforeThereIsASocketAndFailWithIt) {
  const auto connection = std::make_shared<LinkConnection>(loop_, 3, 0, WireSecurity::kHandshake,
                                                           LinkLimits{}, LinkConnection::Events{});
  const Bytes data(8);
  Bytes place(8);
  Outcome sent;
  Outcome got;
  connection->send(1, data, sent.callback());
  connection->recv(1, place, got.callback());
  EXPECT_FALSE(sent.done() || got.done());
  connection->fail(Status::unavailable("no way"));
  EXPECT_EQ(sent.wait().message(), "rank 3: no way");
  EXPECT_EQ(got.wait().rank(), 3);
  EXPECT_EQ(connection->control("x").code(), Code::kUnavailable);
}

}  // namespace
}  // namespace farandole::transport
