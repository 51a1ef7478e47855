// Receives from any of several ranks, and operations that are withdrawn.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "transport/link_mesh.h"
#include "unit/transport/pair.h"

namespace farandole::transport {
namespace {

using test::Bytes;
using test::exchange;
using test::Outcome;
using test::Pair;
using test::randomBytes;

// Three ranks that know each other.
struct Three {
  std::vector<std::unique_ptr<LinkMesh>> ranks;
  Three() {
    for (int i = 0; i < 3; ++i) ranks.push_back(test::startMesh(test::options(i, 3)));
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        if (i != j) {
          EXPECT_TRUE(ranks[size_t(i)]->introduce(j, ranks[size_t(j)]->card()).ok());
        }
      }
    }
  }
};

struct AnyOutcome {
  Outcome outcome;
  std::shared_ptr<std::atomic<int>> source = std::make_shared<std::atomic<int>>(-2);
  LinkMesh::AnyCallback callback() {
    return [done = outcome.callback(), from = source](const Status& status, int peer) {
      *from = peer;
      done(status);
    };
  }
};

TEST(LinkAny, TheFirstMessageOfAnyRankIsTakenWhateverItsSize) {
  Three three;
  const int peers[] = {1, 2};
  std::uint64_t slot = 1;
  for (const std::size_t bytes : {8u, 60000u, 500000u, 0u}) {
    for (const int sender : {1, 2}) {
      for (const bool early : {true, false}) {
        ++slot;
        const Bytes data = randomBytes(bytes, static_cast<unsigned>(slot));
        Bytes place(bytes);
        AnyOutcome got;
        Outcome sent;
        LinkMesh& from = *three.ranks[static_cast<std::size_t>(sender)];
        if (early) from.send(0, slot, data, sent.callback());
        three.ranks[0]->recvAny(peers, slot, place, got.callback());
        if (!early) from.send(0, slot, data, sent.callback());
        EXPECT_TRUE(got.outcome.wait().ok()) << got.outcome.wait().message();
        EXPECT_TRUE(sent.wait().ok());
        EXPECT_EQ(*got.source, sender);
        EXPECT_TRUE(place == data);
      }
    }
  }
}

TEST(LinkAny, SeveralAtOnceGetAMessageEach) {
  Three three;
  const int peers[] = {1, 2};
  constexpr std::size_t kEach = 50;
  for (const std::size_t bytes : {8u, 100000u}) {
    const std::uint64_t slot = 7 + bytes;
    std::vector<Bytes> places(2 * kEach, Bytes(bytes));
    std::vector<AnyOutcome> got(2 * kEach);
    std::vector<Bytes> data;
    std::vector<Outcome> sent(2 * kEach);
    for (std::size_t i = 0; i < 2 * kEach; ++i) {
      data.push_back(Bytes(bytes, static_cast<std::uint8_t>(i)));
    }
    std::thread receiver([&] {
      for (std::size_t i = 0; i < 2 * kEach; ++i) {
        three.ranks[0]->recvAny(peers, slot, places[i], got[i].callback());
      }
    });
    std::thread other([&] {
      for (std::size_t i = 0; i < kEach; ++i) {
        three.ranks[2]->send(0, slot, data[kEach + i], sent[kEach + i].callback());
      }
    });
    for (std::size_t i = 0; i < kEach; ++i) {
      three.ranks[1]->send(0, slot, data[i], sent[i].callback());
    }
    receiver.join();
    other.join();
    std::multiset<int> seen;
    for (std::size_t i = 0; i < 2 * kEach; ++i) {
      ASSERT_TRUE(got[i].outcome.wait().ok()) << i << ": " << got[i].outcome.wait().message();
      const int value = places[i].front();
      EXPECT_EQ(*got[i].source, value < static_cast<int>(kEach) ? 1 : 2);
      seen.insert(value);
    }
    for (int i = 0; i < static_cast<int>(2 * kEach); ++i) EXPECT_EQ(seen.count(i), 1u) << i;
  }
}

TEST(LinkAny, TheEndOfAPeerIsItsEnd) {
  Three three;
  ASSERT_TRUE(exchange(*three.ranks[0], 0, *three.ranks[2], 2, 1, 10).ok());
  const int peers[] = {1, 2};
  Bytes place(8);
  AnyOutcome got;
  three.ranks[0]->recvAny(peers, 5, place, got.callback());
  three.ranks[2]->stop();
  EXPECT_EQ(got.outcome.wait().code(), Code::kShutdown);
  EXPECT_EQ(*got.source, 2);
  EXPECT_EQ(got.outcome.wait().rank(), 2);
  AnyOutcome none;
  three.ranks[0]->recvAny({}, 5, place, none.callback());
  EXPECT_EQ(none.outcome.wait().code(), Code::kInvalidArgument);
}

TEST(LinkAny, AWithdrawnAnyReceiveTakesNoMessage) {
  Three three;
  const int peers[] = {1, 2};
  Bytes place(8);
  AnyOutcome got;
  const LinkHandle handle = three.ranks[0]->recvAny(peers, 5, place, got.callback());
  EXPECT_TRUE(three.ranks[0]->cancel(handle));
  EXPECT_EQ(got.outcome.wait().code(), Code::kCancelled);
  EXPECT_EQ(*got.source, -1);
  EXPECT_FALSE(three.ranks[0]->cancel(handle));
  EXPECT_TRUE(exchange(*three.ranks[1], 1, *three.ranks[0], 0, 5, 8).ok());
}

TEST(LinkCancel, AReceiveKeepsItsPlaceAndItsMemoryIsLeftAlone) {
  Pair pair;
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 10).ok());
  for (const std::size_t bytes : {8u, 500000u}) {
    const Bytes first = randomBytes(bytes, 1);
    const Bytes second = randomBytes(bytes, 2);
    Bytes untouched(bytes, 0x55);
    Bytes place(bytes);
    Outcome withdrawn;
    Outcome got;
    Outcome sent[2];
    const LinkHandle handle = pair.b->recv(0, bytes, untouched, withdrawn.callback());
    pair.b->recv(0, bytes, place, got.callback());
    EXPECT_TRUE(pair.b->cancel(handle));
    EXPECT_EQ(withdrawn.wait().code(), Code::kCancelled);
    EXPECT_FALSE(pair.b->cancel(handle));
    pair.a->send(1, bytes, first, sent[0].callback());
    pair.a->send(1, bytes, second, sent[1].callback());
    EXPECT_TRUE(got.wait().ok()) << got.wait().message();
    EXPECT_TRUE(sent[0].wait().ok() && sent[1].wait().ok());
    EXPECT_TRUE(place == second);
    EXPECT_TRUE(untouched == Bytes(bytes, 0x55));
  }
}

TEST(LinkCancel, ASendCanBeWithdrawnUntilTheOtherSideKnowsOfIt) {
  // Nobody to connect to: everything waits.
  const auto a = test::startMesh(test::options(0, 2));
  ASSERT_TRUE(a->introduce(1, encodeLinkCard(test::cardAt("beta", {"127.0.0.1:1"}))).ok());
  const Bytes small(8);
  const Bytes large(500000);
  Outcome outcomes[3];
  const LinkHandle first = a->send(1, 5, small, outcomes[0].callback());
  const LinkHandle second = a->send(1, 5, large, outcomes[1].callback());
  EXPECT_FALSE(a->cancel(first)) << "another one follows";
  EXPECT_TRUE(a->cancel(second));
  EXPECT_TRUE(a->cancel(first));
  EXPECT_EQ(outcomes[0].wait().code(), Code::kCancelled);
  EXPECT_EQ(outcomes[1].wait().code(), Code::kCancelled);
  // What was sent cannot.
  Pair pair;
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 10).ok());
  const LinkHandle gone = pair.a->send(1, 5, small, outcomes[2].callback());
  EXPECT_TRUE(outcomes[2].wait().ok());
  EXPECT_FALSE(pair.a->cancel(gone));
}

}  // namespace
}  // namespace farandole::transport
