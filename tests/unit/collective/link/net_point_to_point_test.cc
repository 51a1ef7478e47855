// Messages between two members, matched by tag.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/collective/link/link_group.h"

namespace farandole::testing {
namespace {

using collective::kAnyMember;
using collective::OperationPtr;

using ::testing::HasSubstr;

Bytes message(std::int64_t bytes, int seed) { return makeData(DType::kUint8, bytes, 11, seed); }

TEST(LinkPointToPoint, EverySizeArrivesAndTheLengthIsTold) {
  LinkGroup group(2);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    for (const std::int64_t bytes : {0, 1, 1000, 32768, 32769, 65537, 1048576, 5000001}) {
      const Bytes data = message(bytes, 1);
      if (member.rank() == 0) {
        ASSERT_TRUE(member.wait(communicator->send(data.data(), data.size(), 1, 5)).ok());
        continue;
      }
      Bytes place(data.size() + 100);
      collective::Received received;
      ASSERT_TRUE(
          member.wait(communicator->receive(place.data(), place.size(), 0, 5, &received)).ok());
      ASSERT_EQ(received.source, 0);
      ASSERT_EQ(received.bytes, data.size());
      place.resize(data.size());
      ASSERT_TRUE(place == data) << bytes;
    }
  });
}

// Receives in the opposite order of the sends, beside a collective; equal tags keep their order.
TEST(LinkPointToPoint, TagsMatchInAnyOrderBesideACollective) {
  LinkGroup group(2);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    constexpr int kCount = 20;
    const auto data = [](int i) { return message(i % 2 == 0 ? 70000 + i : 10 + i, i); };
    std::vector<OperationPtr> operations;
    std::vector<Bytes> memory;
    for (int i = 0; i < kCount; ++i) {
      const int tag = member.rank() == 0 ? i / 2 : (kCount - 1 - i) / 2;
      memory.push_back(member.rank() == 0 ? data(i) : Bytes(80000));
      if (member.rank() == 0) {
        operations.push_back(
            communicator->send(memory.back().data(), memory.back().size(), 1, tag));
      } else {
        operations.push_back(communicator->receive(memory.back().data(), 80000, 0, tag, nullptr));
      }
    }
    std::vector<float> values(100000, 1.0F);
    const collective::Piece piece{values.data(), values.data(), 100000};
    operations.push_back(
        communicator->allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {}));
    const Status status = member.wait(operations);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(values[99999], 2.0F);
    if (member.rank() == 0) return;
    for (int i = 0; i < kCount; ++i) {
      const int tag = (kCount - 1 - i) / 2;
      const Bytes expected = data(2 * tag + i % 2);
      Bytes& place = memory[static_cast<std::size_t>(i)];
      place.resize(expected.size());
      ASSERT_TRUE(place == expected) << i;
    }
  });
}

TEST(LinkPointToPoint, FromAnybody) {
  LinkGroup group(4);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    if (member.rank() != 0) {
      const Bytes data = message(100000, member.rank());
      ASSERT_TRUE(member.wait(communicator->send(data.data(), data.size(), 0, 1)).ok());
      const int mine = member.rank();
      ASSERT_TRUE(member.wait(communicator->send(&mine, sizeof mine, 0, 2)).ok());
      return;
    }
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
      Bytes place(100000);
      collective::Received received;
      ASSERT_TRUE(
          member.wait(communicator->receive(place.data(), place.size(), kAnyMember, 1, &received))
              .ok());
      ASSERT_TRUE(place == message(100000, received.source));
      int who = 0;
      ASSERT_TRUE(
          member.wait(communicator->receive(&who, sizeof who, kAnyMember, 2, &received)).ok());
      ASSERT_EQ(who, received.source);
      sum += who;
    }
    EXPECT_EQ(sum, 6);
  });
}

TEST(LinkPointToPoint, TooLittleRoomFailsBothSidesAndNothingElse) {
  LinkGroup group(2);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{200000}}) {
      Bytes memory(bytes);
      const Status status =
          member.rank() == 0 ? member.wait(communicator->send(memory.data(), bytes, 1, 3))
                             : member.wait(communicator->receive(memory.data(), 60, 0, 3, nullptr));
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.message();
      EXPECT_THAT(status.message(), HasSubstr(std::to_string(bytes) + " bytes"));
      EXPECT_THAT(status.message(), HasSubstr("at most 60 bytes"));
      EXPECT_THAT(status.message(), HasSubstr(member.rank() == 0 ? "rank 1 on host1" : "rank 0"));
      ASSERT_TRUE(member.wait(communicator->barrier()).ok());
      int value = 7 + member.rank();
      const OperationPtr next = member.rank() == 0
                                    ? communicator->send(&value, sizeof value, 1, 3)
                                    : communicator->receive(&value, sizeof value, 0, 3, nullptr);
      ASSERT_TRUE(member.wait(next).ok());
      EXPECT_EQ(value, 7);
    }
  });
}

TEST(LinkPointToPoint, ToOneself) {
  LinkGroup group(1);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    const Bytes data = message(3000000, 1);
    Bytes place(data.size());
    Bytes tiny(10);
    std::vector<OperationPtr> both;
    both.push_back(communicator->send(data.data(), data.size(), 0, 1));
    both.push_back(communicator->receive(place.data(), place.size(), kAnyMember, 1, nullptr));
    ASSERT_TRUE(member.wait(both).ok());
    EXPECT_TRUE(place == data);
    both.clear();
    both.push_back(communicator->receive(tiny.data(), tiny.size(), 0, 1, nullptr));
    both.push_back(communicator->send(data.data(), data.size(), 0, 1));
    EXPECT_FALSE(member.wait(both).ok());
    for (const OperationPtr& one : both) EXPECT_EQ(one->status().code(), Code::kInvalidArgument);
  });
}

// What was never matched may be given up.
TEST(LinkPointToPoint, AReceiveThatIsGivenUpHarmsNobody) {
  LinkGroup group(2);
  group.run([](LinkMember& member) {
    auto communicator = member.world();
    int value = member.rank() == 0 ? 5 : 0;
    if (member.rank() == 1) {
      const OperationPtr never = communicator->receive(&value, sizeof value, 0, 99, nullptr);
      EXPECT_EQ(never->progress(), collective::Progress::kPending);
    }
    const OperationPtr next = member.rank() == 0
                                  ? communicator->send(&value, sizeof value, 1, 1)
                                  : communicator->receive(&value, sizeof value, 0, 1, nullptr);
    ASSERT_TRUE(member.wait(next).ok());
    EXPECT_EQ(value, 5);
    ASSERT_TRUE(member.wait(communicator->barrier()).ok());
  });
}

}  // namespace
}  // namespace farandole::testing
