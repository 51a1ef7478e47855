// Messages between two members.
#include <gtest/gtest.h>

#include "unit/collective/data.h"
#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace {

using collective::OperationPtr;

// Drives several operations together until all have ended.
std::vector<Status> waitAll(GroupMember& member, std::vector<OperationPtr>& operations) {
  std::vector<Status> result;
  for (const OperationPtr& operation : operations) result.push_back(member.wait(operation));
  return result;
}

TEST(PointToPoint, SizesAndMemories) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    int tag = 0;
    for (const bool shared : {false, true}) {
      for (const std::int64_t bytes : {0, 1, 100, 4096, 65535, 65536, 65537, 3'000'000}) {
        const Bytes data = makeData(DType::kUint8, bytes, 41, 0);
        auto* memory =
            static_cast<std::byte*>(member.memory(static_cast<std::size_t>(bytes) + 1, shared));
        ++tag;
        if (member.rank() == 0) {
          if (bytes > 0) std::memcpy(memory, data.data(), data.size());
          const Status status = member.wait(communicator->send(memory, data.size(), 1, tag));
          ASSERT_TRUE(status.ok()) << status.message();
          std::fill_n(memory, data.size(), std::byte{0});  // it may be reused at once
        } else {
          collective::Received received;
          const Status status = member.wait(communicator->receive(
              memory, data.size() + 1, collective::kAnyMember, tag, &received));
          ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_EQ(received.source, 0);
          ASSERT_EQ(received.bytes, data.size());
          ASSERT_EQ(firstDifference(memory, data.data(), data.size()), -1) << bytes;
        }
      }
    }
  });
}

TEST(PointToPoint, TagsDoNotBlockEachOther) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    constexpr int kMessages = 20;
    constexpr std::size_t kBytes = 200'000;  // more than a channel's stream holds
    std::vector<Bytes> buffers(kMessages);
    std::vector<OperationPtr> operations;
    for (int i = 0; i < kMessages; ++i) {
      auto& buffer = buffers[static_cast<std::size_t>(i)];
      if (member.rank() == 0) {
        buffer = makeData(DType::kUint8, kBytes, static_cast<std::uint64_t>(i), 0);
        operations.push_back(communicator->send(buffer.data(), kBytes, 1, i));
      } else {
        // Received in the opposite order, one after the other.
        buffer.resize(kBytes);
        const int tag = kMessages - 1 - i;
        ASSERT_TRUE(
            member.wait(communicator->receive(buffer.data(), kBytes, 0, tag, nullptr)).ok());
        const Bytes expected = makeData(DType::kUint8, kBytes, static_cast<std::uint64_t>(tag), 0);
        ASSERT_EQ(firstDifference(buffer.data(), expected.data(), kBytes), -1);
      }
    }
    for (const Status& status : waitAll(member, operations)) {
      ASSERT_TRUE(status.ok()) << status.message();
    }
  });
}

TEST(PointToPoint, EqualTagsKeepTheirOrderBeyondTheEnvelopes) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    constexpr int kMessages = 200;  // more than a pair has envelopes
    std::vector<std::int64_t> values(kMessages);
    std::vector<OperationPtr> operations;
    for (int i = 0; i < kMessages; ++i) {
      std::int64_t& value = values[static_cast<std::size_t>(i)];
      if (member.rank() == 0) {
        value = i;
        operations.push_back(communicator->send(&value, 8, 1, 5));
      } else {
        operations.push_back(communicator->receive(&value, 8, 0, 5, nullptr));
      }
    }
    for (const Status& status : waitAll(member, operations)) {
      ASSERT_TRUE(status.ok()) << status.message();
    }
    for (int i = 0; i < kMessages; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i);
  });
}

TEST(PointToPoint, TooLargeAMessageFailsBothSidesAndNothingElse) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    std::vector<char> buffer(1000);
    const OperationPtr bad = member.rank() == 0
                                 ? communicator->send(buffer.data(), 1000, 1, 3)
                                 : communicator->receive(buffer.data(), 999, 0, 3, nullptr);
    const Status status = member.wait(bad);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("1000"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("999"), std::string::npos) << status.message();
    EXPECT_EQ(bad->progress(), collective::Progress::kFailed);
    const OperationPtr good = member.rank() == 0
                                  ? communicator->send(buffer.data(), 1000, 1, 3)
                                  : communicator->receive(buffer.data(), 1000, 0, 3, nullptr);
    EXPECT_TRUE(member.wait(good).ok());
    EXPECT_TRUE(member.wait(communicator->barrier()).ok());
  });
}

TEST(PointToPoint, EverybodyToEverybodyBesideCollectives) {
  runGroup(5, [](GroupMember& member) {
    auto communicator = member.world();
    const int ranks = member.size();
    for (int round = 0; round < 20; ++round) {
      constexpr std::int64_t kCount = 3000;
      std::vector<Bytes> out;
      std::vector<Bytes> in(static_cast<std::size_t>(ranks), Bytes(kCount * 4));
      std::vector<collective::Received> received(static_cast<std::size_t>(ranks));
      std::vector<OperationPtr> operations;
      for (int peer = 0; peer < ranks; ++peer) {
        out.push_back(makeData(DType::kFloat32, kCount, static_cast<std::uint64_t>(round),
                               member.rank() * ranks + peer));
        operations.push_back(communicator->send(out.back().data(), kCount * 4, peer, round));
        operations.push_back(communicator->receive(in[static_cast<std::size_t>(peer)].data(),
                                                   kCount * 4, collective::kAnyMember, round,
                                                   &received[static_cast<std::size_t>(peer)]));
      }
      std::vector<float> values(50000, 1.0F);
      const collective::Piece piece{values.data(), values.data(), 50000};
      ASSERT_TRUE(member
                      .wait(communicator->allreduce(std::span(&piece, 1), DType::kFloat32,
                                                    ReduceOp::kSum, {}))
                      .ok());
      ASSERT_EQ(values[49999], static_cast<float>(ranks));
      for (const Status& status : waitAll(member, operations)) {
        ASSERT_TRUE(status.ok()) << status.message();
      }
      std::vector<bool> seen(static_cast<std::size_t>(ranks));
      for (int i = 0; i < ranks; ++i) {
        const int source = received[static_cast<std::size_t>(i)].source;
        ASSERT_GE(source, 0);
        ASSERT_FALSE(seen[static_cast<std::size_t>(source)]);
        seen[static_cast<std::size_t>(source)] = true;
        const Bytes expected = makeData(DType::kFloat32, kCount, static_cast<std::uint64_t>(round),
                                        source * ranks + member.rank());
        ASSERT_EQ(firstDifference(in[static_cast<std::size_t>(i)].data(), expected.data(),
                                  expected.size()),
                  -1);
      }
    }
  });
}

TEST(PointToPoint, GivenUpOperationsLeaveTheChannelUsable) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    std::vector<char> large(500'000, 'a');
    std::vector<char> buffer(500'000);
    const Deadline deadline = Deadline::after(std::chrono::seconds(20));
    if (member.rank() == 0) {
      // Withdrawn before anybody looked; and given up in the middle.
      communicator->send(large.data(), large.size(), 1, 1)->progress();
      OperationPtr half = communicator->send(large.data(), large.size(), 1, 2);
      const OperationPtr begun = communicator->barrier();
      while (begun->progress() == collective::Progress::kPending && !deadline.passed())
        half->progress();
      half.reset();
      ASSERT_TRUE(member.wait(communicator->send("done", 4, 1, 3)).ok());
    } else {
      OperationPtr half = communicator->receive(buffer.data(), buffer.size(), 0, 2, nullptr);
      while (buffer[0] != 'a' && !deadline.passed()) half->progress();  // it has begun
      ASSERT_TRUE(member.wait(communicator->barrier()).ok());
      EXPECT_EQ(member.wait(half).code(), Code::kCancelled);
      ASSERT_TRUE(member.wait(communicator->receive(buffer.data(), 4, 0, 3, nullptr)).ok());
      EXPECT_EQ(std::string(buffer.data(), 4), "done");
    }
    // The other way round: the receiver gives up.
    if (member.rank() == 0) {
      ASSERT_TRUE(member.wait(communicator->send(large.data(), large.size(), 1, 4)).ok());
      ASSERT_TRUE(member.wait(communicator->send("more", 4, 1, 5)).ok());
    } else {
      OperationPtr half = communicator->receive(buffer.data(), buffer.size(), 0, 4, nullptr);
      std::fill(buffer.begin(), buffer.end(), 'b');
      while (buffer[0] == 'b' && !deadline.passed()) half->progress();  // it has begun
      half.reset();
      ASSERT_TRUE(member.wait(communicator->receive(buffer.data(), 4, 0, 5, nullptr)).ok());
      EXPECT_EQ(std::string(buffer.data(), 4), "more");
    }
  });
}

}  // namespace
}  // namespace farandole::testing
