// The engine among other things: several communicators at once, many ranks, and ranks that die.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <thread>

#include "unit/collective/data.h"
#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace {

using collective::OperationPtr;
using collective::Piece;
using collective::Progress;

using namespace std::chrono_literals;

Status sum(GroupMember& member, collective::Communicator& communicator,
           std::vector<float>& values) {
  const Piece piece{values.data(), values.data(), static_cast<std::int64_t>(values.size())};
  return member.wait(
      communicator.allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {}));
}

TEST(Group, OverlappingSetsProgressIndependently) {
  runGroup(3, [](GroupMember& member) {
    // The ring {0,1}, {1,2}, {2,0}: everybody starts both of its operations before driving any.
    const int next = (member.rank() + 1) % 3;
    const int previous = (member.rank() + 2) % 3;
    auto right = member.communicator({member.rank(), next}, member.rank());
    auto left = member.communicator({previous, member.rank()}, previous);
    for (int round = 0; round < 50; ++round) {
      std::vector<float> a(70000, 1.0F);
      std::vector<float> b(70000, 2.0F);
      const Piece pieceA{a.data(), a.data(), 70000};
      const Piece pieceB{b.data(), b.data(), 70000};
      const Scale none;
      OperationPtr one =
          right->allreduce(std::span(&pieceA, 1), DType::kFloat32, ReduceOp::kSum, none);
      OperationPtr two =
          left->allreduce(std::span(&pieceB, 1), DType::kFloat32, ReduceOp::kSum, none);
      const Deadline deadline = Deadline::after(30s);
      for (;;) {
        const Progress p = one->progress();
        const Progress q = two->progress();
        if (p != Progress::kPending && q != Progress::kPending) break;
        ASSERT_FALSE(deadline.passed());
        std::this_thread::yield();
      }
      ASSERT_TRUE(one->status().ok() && two->status().ok());
      ASSERT_EQ(a[69999], 3.0F);
      ASSERT_EQ(b[0], 3.0F);
    }
  });
}

TEST(Group, MembersInAnyOrder) {
  runGroup(3, [](GroupMember& member) {
    auto communicator = member.communicator({2, 0, 1}, 0);
    EXPECT_EQ(communicator->member(), (member.rank() + 1) % 3);
    std::int64_t value = communicator->member();
    std::int64_t all[3] = {-1, -1, -1};
    const std::int64_t counts[3] = {1, 1, 1};
    ASSERT_TRUE(member.wait(communicator->allgather(&value, all, counts, DType::kInt64)).ok());
    EXPECT_EQ(all[0], 0);
    EXPECT_EQ(all[1], 1);
    EXPECT_EQ(all[2], 2);
  });
}

class ManyRanks : public ::testing::TestWithParam<int> {};

TEST_P(ManyRanks, EveryOperationWorks) {
  GroupOptions options;
  options.arenaBytes = std::size_t{96} << 20;
  runGroup(
      GetParam(),
      [](GroupMember& member) {
        auto communicator = member.world();
        const int ranks = member.size();
        const auto me = static_cast<std::size_t>(member.rank());
        for (const std::size_t count : {std::size_t{4}, std::size_t{300}, std::size_t{40000}}) {
          std::vector<float> values(count, 1.0F);
          ASSERT_TRUE(sum(member, *communicator, values).ok());
          ASSERT_EQ(values.front(), static_cast<float>(ranks));
          ASSERT_EQ(values.back(), static_cast<float>(ranks));
        }
        auto* shared = static_cast<float*>(member.memory(40000 * 4, true));
        std::fill_n(shared, 40000, 1.0F);
        const Piece piece{shared, shared, 40000};
        ASSERT_TRUE(member
                        .wait(communicator->allreduce(std::span(&piece, 1), DType::kFloat32,
                                                      ReduceOp::kSum, {}))
                        .ok());
        ASSERT_EQ(shared[39999], static_cast<float>(ranks));
        std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), 100);
        std::vector<std::int32_t> out(static_cast<std::size_t>(ranks) * 100, member.rank());
        std::vector<std::int32_t> in(out.size());
        ASSERT_TRUE(
            member
                .wait(communicator->alltoall(out.data(), counts, in.data(), counts, DType::kInt32))
                .ok());
        for (std::size_t i = 0; i < in.size(); ++i) {
          ASSERT_EQ(in[i], static_cast<std::int32_t>(i / 100));
        }
        ASSERT_TRUE(member
                        .wait(communicator->reducescatter(out.data(), in.data(), counts,
                                                          DType::kInt32, ReduceOp::kMax, {}))
                        .ok());
        ASSERT_EQ(in[0], ranks - 1);
        ASSERT_TRUE(
            member.wait(communicator->allgather(out.data(), in.data(), counts, DType::kInt32))
                .ok());
        ASSERT_EQ(in.back(), ranks - 1);
        // A token round the ring.
        std::int64_t token = 0;
        if (member.rank() != 0) {
          ASSERT_TRUE(
              member.wait(communicator->receive(&token, 8, member.rank() - 1, 0, nullptr)).ok());
        }
        ++token;
        const OperationPtr pass = communicator->send(
            &token, 8, static_cast<int>((me + 1) % out.size() * (member.rank() + 1 < ranks)), 0);
        if (member.rank() == 0) {
          std::int64_t last = 0;
          ASSERT_TRUE(member.wait(communicator->receive(&last, 8, ranks - 1, 0, nullptr)).ok());
          ASSERT_EQ(last, ranks);
        }
        ASSERT_TRUE(member.wait(pass).ok());
        ASSERT_TRUE(member.wait(communicator->barrier()).ok());
      },
      options);
}
INSTANTIATE_TEST_SUITE_P(Ranks, ManyRanks, ::testing::Values(16, 64));

TEST(Group, AreasStaySmall) {
  EXPECT_LE(collective::shm::shmCommunicatorBytes(2), std::size_t{16} << 20);
  EXPECT_LE(collective::shm::shmCommunicatorBytes(8), std::size_t{48} << 20);
  EXPECT_LE(collective::shm::shmCommunicatorBytes(64), std::size_t{64} << 20);
}

// Who waits sleeps: the others' half second of absence costs this process next to no time.
TEST(Group, WaitingCostsNoProcessorTime) {
  runGroup(2, [](GroupMember& member) {
    auto communicator = member.world();
    ASSERT_TRUE(member.wait(communicator->barrier()).ok());
    if (member.rank() == 1) std::this_thread::sleep_for(500ms);
    rusage before{};
    ::getrusage(RUSAGE_THREAD, &before);
    std::vector<float> values(100000, 1.0F);
    ASSERT_TRUE(sum(member, *communicator, values).ok());
    rusage after{};
    ::getrusage(RUSAGE_THREAD, &after);
    EXPECT_EQ(values[5], 2.0F);
    const auto microseconds = [](const timeval& t) { return t.tv_sec * 1'000'000 + t.tv_usec; };
    const auto used = microseconds(after.ru_utime) - microseconds(before.ru_utime) +
                      microseconds(after.ru_stime) - microseconds(before.ru_stime);
    if (member.rank() == 0) {
      EXPECT_LT(used, 250'000);  // spinning would be 500'000
    }
  });
}

// A rank is killed in the middle of its work; the others end with its name.
void killRound(int round, bool shared) {
  GroupOptions options;
  options.mayBeKilled = {1};
  options.limit = 30s;
  runGroup(
      3,
      [&](GroupMember& member) {
        auto communicator = member.world();
        Dice dice(static_cast<std::uint64_t>(round));
        const auto count = static_cast<std::size_t>(1 + dice.upTo(400000));
        auto* values = static_cast<float*>(member.memory(count * 4, shared));
        const Piece piece{values, values, static_cast<std::int64_t>(count)};
        std::thread killer;
        if (member.rank() == 1) {
          killer = std::thread([&] {
            std::this_thread::sleep_for(std::chrono::microseconds(500 + 977 * (round % 10)));
            ::kill(::getpid(), SIGKILL);
          });
        }
        const Deadline deadline = Deadline::after(20s);
        Status status;
        while (status.ok() && !deadline.passed()) {
          status = member.wait(
              communicator->allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kMax, {}));
        }
        if (killer.joinable()) killer.join();
        EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
        EXPECT_EQ(status.rank(), 1);
        // Later operations say the same, at once.
        const Status later = member.wait(communicator->barrier());
        EXPECT_EQ(later.code(), Code::kPeerLost);
        std::byte nothing{};
        EXPECT_EQ(member.wait(communicator->receive(&nothing, 1, 0, 9, nullptr)).code(),
                  Code::kPeerLost);
      },
      options);
}

TEST(Group, AKilledRankEndsEverybodysOperation) {
  for (int round = 0; round < 20; ++round) killRound(round, round % 2 == 1);
}

}  // namespace
}  // namespace farandole::testing
