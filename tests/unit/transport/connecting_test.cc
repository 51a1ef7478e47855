// How ranks find each other: who dials, which address, which port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "transport/link_mesh.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Bytes;
using test::exchange;
using test::Outcome;
using test::Pair;
using test::randomBytes;
using ::testing::HasSubstr;

TEST(LinkConnecting, BothSidesMayConnectAtOnce) {
  for (int i = 0; i < 15; ++i) {
    Pair pair;
    const Bytes data = randomBytes(1000, 1);
    Bytes atA(1000);
    Bytes atB(1000);
    Outcome outcomes[4];
    std::thread other([&] {
      std::this_thread::sleep_for(milliseconds(i * 2));
      pair.a->send(1, 1, data, outcomes[0].callback());
      pair.a->recv(1, 1, atA, outcomes[1].callback());
    });
    pair.b->send(0, 1, data, outcomes[2].callback());
    pair.b->recv(0, 1, atB, outcomes[3].callback());
    other.join();
    for (const Outcome& outcome : outcomes) {
      EXPECT_TRUE(outcome.wait().ok()) << i << ": " << outcome.wait().message();
    }
    EXPECT_TRUE(atA == data && atB == data);
  }
}

TEST(LinkConnecting, TheHigherRankConnectsIfOnlyThatDirectionWorks) {
  Pair pair;
  // Rank 0 knows no way to rank 1, and tries.
  const LinkCard nowhere = test::cardAt("host1", {"127.0.0.1:1"});
  ASSERT_TRUE(pair.a->introduce(1, encodeLinkCard(nowhere)).ok());
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
}

TEST(LinkConnecting, ADeadAddressIsFollowedByAGoodOne) {
  Pair pair;
  Result<LinkCard> card = decodeLinkCard(pair.b->card());
  ASSERT_TRUE(card.ok());
  // Nobody listens there; a listener that never answers; a machine that does not exist.
  const auto silent = openLinkPort({"127.0.0.1", 0, 0});
  ASSERT_TRUE(silent.ok());
  const std::string trap = "127.0.0.1:" + std::to_string(silent.value().port);
  LinkCard mixed = test::cardAt("host1", {"127.0.0.1:1", trap, "192.0.2.1:9"});
  mixed.addresses.push_back(card->addresses.front());
  ASSERT_TRUE(pair.a->introduce(1, encodeLinkCard(mixed)).ok());
  Outcome heard;
  pair.b->onControl([done = heard.callback()](int, std::string_view) { done({}); });
  const TimePoint start = Clock::now();
  ASSERT_TRUE(pair.a->sendControl(1, "x").ok());
  EXPECT_TRUE(heard.wait().ok()) << heard.wait().message();
  EXPECT_LT(Clock::now() - start, seconds(3));
}

TEST(LinkConnecting, ARankThatCannotBeReachedIsNamedWithItsAddresses) {
  LinkMeshOptions impatient = test::options(0, 2);
  impatient.connectTime = milliseconds(500);
  const auto a = test::startMesh(impatient);
  ASSERT_TRUE(a->introduce(1, encodeLinkCard(test::cardAt("beta", {"127.0.0.1:1"}))).ok());
  const Bytes data(1);
  Outcome sent;
  a->send(1, 1, data, sent.callback());
  const Status status = sent.wait();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.rank(), 1);
  EXPECT_EQ(status.host(), "beta");
  EXPECT_THAT(status.message(),
              HasSubstr("cannot connect to rank 1 on beta: 127.0.0.1:1: cannot connect: "
                        "Connection refused"));
  EXPECT_FALSE(a->sendControl(1, "x").ok());
  EXPECT_EQ(a->sendControl(0, "x").code(), Code::kInvalidArgument);
  EXPECT_EQ(a->sendControl(7, "x").code(), Code::kInvalidArgument);
}

TEST(LinkConnecting, TalksOverIpv6) {
  LinkMeshOptions first = test::options(0, 2);
  LinkMeshOptions second = test::options(1, 2);
  first.ports.bind = second.ports.bind = "::1";
  Result<std::unique_ptr<LinkMesh>> a = LinkMesh::start(first);
  if (!a.ok()) GTEST_SKIP() << "no IPv6 here: " << a.status().message();
  const auto b = test::startMesh(second);
  ASSERT_TRUE((*a)->introduce(1, b->card()).ok());
  ASSERT_TRUE(b->introduce(0, (*a)->card()).ok());
  EXPECT_TRUE(exchange(**a, 0, *b, 1, 1, 100000).ok());
}

TEST(LinkConnecting, WithoutABindAddressIpv4AndIpv6BothLeadToIt) {
  LinkMeshOptions second = test::options(1, 2);
  second.ports.bind.clear();
  second.advertise = {"127.0.0.1"};
  Pair pair(test::options(0, 2), second);
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
}

TEST(LinkConnecting, APortRangeIsKeptToAndItsEndIsAClearError) {
  // Two neighbouring ports that are free right now.
  for (int attempt = 0; attempt < 20; ++attempt) {
    Result<LinkSocket> any = openLinkPort({"127.0.0.1", 0, 0});
    ASSERT_TRUE(any.ok());
    LinkMeshOptions ranged = test::options(0, 3);
    ranged.ports.low = any->port;
    ranged.ports.high = static_cast<std::uint16_t>(any->port + 1);
    any->fd.reset();
    Result<std::unique_ptr<LinkMesh>> first = LinkMesh::start(ranged);
    Result<std::unique_ptr<LinkMesh>> second = LinkMesh::start(ranged);
    if (!first.ok() || !second.ok()) continue;
    EXPECT_EQ((*first)->port(), ranged.ports.low);
    EXPECT_EQ((*second)->port(), ranged.ports.high);
    const Result<std::unique_ptr<LinkMesh>> third = LinkMesh::start(ranged);
    ASSERT_FALSE(third.ok());
    EXPECT_EQ(third.status().message(),
              "every port from " + std::to_string(ranged.ports.low) + " to " +
                  std::to_string(ranged.ports.high) +
                  " of 127.0.0.1 is in use: give a wider range, at least one port for each rank "
                  "of a machine");
    return;
  }
  FAIL() << "no two neighbouring free ports";
}

}  // namespace
}  // namespace farandole::transport
