// The engine between machines among other things: several sets at once, ranks that go away, what is
// given up half-way.
#include "unit/collective/link/link_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "collective/link/choose.h"

namespace farandole::testing {
namespace {

using collective::OperationPtr;
using collective::Progress;
using collective::link::name;

using ::testing::HasSubstr;

OperationPtr sum(collective::Communicator& communicator, std::vector<float>& values) {
  const collective::Piece piece{values.data(), values.data(),
                                static_cast<std::int64_t>(values.size())};
  return communicator.allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {});
}

// The ring {0,1}, {1,2}, {2,0}: everybody starts both of its operations before driving any.
TEST(LinkGroup, OverlappingSetsProgressIndependently) {
  LinkGroup group(3);
  group.run([](LinkMember& member) {
    const int next = (member.rank() + 1) % 3;
    const int previous = (member.rank() + 2) % 3;
    auto right = member.communicator({member.rank(), next}, 10U + unsigned(member.rank()));
    auto left = member.communicator({previous, member.rank()}, 10U + unsigned(previous));
    for (int round = 0; round < 30; ++round) {
      const std::size_t count = round % 2 == 0 ? 10 : 100000;
      std::vector<float> a(count, 1.0F);
      std::vector<float> b(count, 2.0F);
      std::vector<OperationPtr> both;
      both.push_back(sum(*right, a));
      both.push_back(sum(*left, b));
      const Status status = member.wait(both);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(a.back(), 3.0F);
      ASSERT_EQ(b.front(), 3.0F);
    }
  });
}

// Without an order that all members share.
TEST(LinkGroup, ManyOperationsOfEveryKindOneAfterAnother) {
  LinkGroup group(3);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    Dice dice(5);
    for (int round = 0; round < 150; ++round) {
      std::vector<float> values(1 + static_cast<std::size_t>(dice.upTo(6000)), 1.0F);
      const collective::Piece piece{values.data(), values.data(),
                                    static_cast<std::int64_t>(values.size())};
      switch (dice.upTo(2)) {
        case 0: ASSERT_TRUE(member.wait(communicator->barrier()).ok()); break;
        case 1:
          ASSERT_TRUE(member.wait(sum(*communicator, values)).ok());
          ASSERT_EQ(values.back(), 3.0F);
          break;
        default:
          if (member.rank() == round % 3) values.back() = 9.0F;
          ASSERT_TRUE(
              member.wait(communicator->broadcast(std::span(&piece, 1), DType::kFloat32, round % 3))
                  .ok());
          ASSERT_EQ(values.back(), 9.0F);
      }
    }
  });
}

// The message that everybody must get when rank 1 is gone, and that later operations repeat.
void expectEnd(LinkMember& member, collective::Communicator& communicator, const Status& status,
               Code code) {
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_EQ(status.rank(), 1) << status.message();
  EXPECT_EQ(status.host(), "host1") << status.message();
  EXPECT_THAT(status.message(), HasSubstr("rank 1 on host1"));
  EXPECT_EQ(member.wait(communicator.barrier()).message(), status.message());
  std::byte nothing{};
  EXPECT_EQ(member.wait(communicator.receive(&nothing, 1, 0, 9, nullptr)).message(),
            status.message());
  EXPECT_EQ(member.wait(communicator.send(&nothing, 1, 0, 9)).message(), status.message());
}

// Rank 1 ends in the middle of its work, with or without a goodbye.
void rankGoesAway(int ranks, std::size_t count, bool goodbye) {
  LinkGroup group(ranks);
  std::latch heard(ranks);
  group.run([&](LinkMember& member) {
    auto communicator = member.world();
    std::vector<float> values(count, 1.0F);
    const int rounds = member.rank() == 1 ? 5 : 1000000;
    Status status;
    for (int round = 0; round < rounds && status.ok(); ++round) {
      status = member.wait(sum(*communicator, values));
    }
    if (member.rank() != 1) {
      expectEnd(member, *communicator, status, goodbye ? Code::kShutdown : Code::kPeerLost);
      heard.arrive_and_wait();
      return member.dropEverybody();
    }
    EXPECT_TRUE(status.ok());
    const OperationPtr last = sum(*communicator, values);
    last->progress();
    if (goodbye) {
      member.mesh().stop();
    } else {
      member.dropEverybody();
    }
    EXPECT_NE(member.wait(last).code(), Code::kTimeout);
    heard.arrive_and_wait();
  });
}

TEST(LinkGroup, ARankThatGoesAwayEndsEverybodysOperationWithItsName) {
  for (const bool goodbye : {true, false}) {
    rankGoesAway(2, 1, goodbye);
    rankGoesAway(2, 300000, goodbye);
    rankGoesAway(4, 100, goodbye);
    rankGoesAway(5, 200000, goodbye);
  }
}

// The runtime has heard of a death, and drops the rank: that status is what the operation gets.
TEST(LinkGroup, WhatTheRuntimeSaysOfADroppedRankIsWhatTheOperationSays) {
  LinkGroup group(3);
  std::latch heard(2);
  group.run([&](LinkMember& member) {
    auto communicator = member.world();
    ASSERT_TRUE(member.wait(communicator->barrier()).ok());
    if (member.rank() == 1) return;
    std::vector<float> values(400000, 1.0F);
    const OperationPtr operation = sum(*communicator, values);
    EXPECT_EQ(operation->progress(), Progress::kPending);
    int place = 0;
    const OperationPtr receive =
        communicator->receive(&place, sizeof place, collective::kAnyMember, 4, nullptr);
    EXPECT_EQ(receive->progress(), Progress::kPending);
    const Status why =
        Status(Code::kPeerLost, "rank 1 on host1 was killed by signal 9").withRank(1, "host1");
    member.mesh().drop(1, why);
    EXPECT_EQ(member.wait(operation).message(), why.message());
    EXPECT_EQ(member.wait(receive).message(), why.message());
    expectEnd(member, *communicator, operation->status(), Code::kPeerLost);
    heard.arrive_and_wait();
    member.dropEverybody();
  });
}

// Given up half-way and dropped: the memory is the caller's again, whatever the others still send.
TEST(LinkGroup, AnOperationGivenUpLeavesMemoryAloneOnceItsPeersAreDropped) {
  for (const std::size_t count : {std::size_t{100}, std::size_t{1000000}}) {
    LinkGroup group(3);
    std::atomic<bool> dropped{false};
    std::latch heard(2);
    group.run([&](LinkMember& member) {
      auto communicator = member.world();
      ASSERT_TRUE(member.wait(communicator->barrier()).ok());
      std::vector<float> values(count, 1.0F);
      if (member.rank() != 0) {
        while (!dropped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        // Little may have come through before the end.
        const Status status = member.wait(sum(*communicator, values));
        EXPECT_NE(status.code(), Code::kTimeout);
        EXPECT_TRUE(!status.ok() || count == 100);
        heard.arrive_and_wait();
        return member.dropEverybody();
      }
      OperationPtr operation = sum(*communicator, values);
      EXPECT_EQ(operation->progress(), Progress::kPending);
      operation.reset();
      member.dropEverybody();
      std::fill(values.begin(), values.end(), 5.0F);
      dropped = true;
      EXPECT_EQ(member.wait(communicator->barrier()).code(), Code::kCancelled);
      communicator.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (const float value : values) ASSERT_EQ(value, 5.0F);
    });
  }
}

// A receive that waits for whoever is left does not mind one that left in good order.
TEST(LinkGroup, ReceivingFromAnybodyOutlivesAGoodbye) {
  LinkGroup group(3);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    ASSERT_TRUE(member.wait(communicator->barrier()).ok());
    int value = 42;
    if (member.rank() == 1) return member.mesh().stop();
    if (member.rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      ASSERT_TRUE(member.wait(communicator->send(&value, sizeof value, 0, 1)).ok());
      return;
    }
    int place = 0;
    const Status status = member.wait(
        communicator->receive(&place, sizeof place, collective::kAnyMember, 1, nullptr));
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(place, 42);
  });
}

TEST(LinkAlgorithms, TheTableSaysWhatIsChosen) {
  using collective::link::Algorithm;
  for (const collective::link::AlgorithmRow& row : collective::link::netAlgorithms()) {
    EXPECT_FALSE(row.description.empty());
    const int members = row.most == 0 ? row.fewest : row.most;
    const std::size_t share =
        row.operation == "allreduce" && row.fewest > 4 ? static_cast<std::size_t>(members) : 1;
    for (const std::size_t bytes :
         {row.least / share,
          row.below == 0 ? row.least / share + (1 << 24) : row.below / share - 1}) {
      const std::string what =
          std::string(row.operation) + " " + std::to_string(members) + " " + std::to_string(bytes);
      if (row.operation == "allreduce") {
        EXPECT_EQ(name(collective::link::chooseAllreduce(members, bytes)), row.algorithm) << what;
      } else if (row.operation == "reduce") {
        EXPECT_EQ(name(collective::link::chooseReduce(members, bytes)), row.algorithm) << what;
      } else if (row.operation == "allgather") {
        EXPECT_EQ(name(collective::link::chooseAllgather(members, bytes)), row.algorithm) << what;
      } else if (row.operation == "broadcast") {
        EXPECT_EQ(name(collective::link::chooseBroadcast(members, bytes)), row.algorithm) << what;
      } else if (row.operation == "barrier") {
        EXPECT_EQ(name(collective::link::chooseBarrier(members)), row.algorithm) << what;
      }
    }
  }
}

}  // namespace
}  // namespace farandole::testing
