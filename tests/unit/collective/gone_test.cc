// A member whose process has ended, whatever it had said before: what waits for it fails, and what
// it has left complete is used. And flags that were overwritten after they had been looked at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "collective/shm/layout.h"
#include "collective/shm/shm_communicator.h"
#include "unit/collective/one_process.h"

namespace farandole::testing {
namespace {

using collective::Operation;
using collective::OperationPtr;
using collective::Progress;

using ::testing::Each;

constexpr int kMembers = 3;

class GoneTest : public ::testing::Test {
 protected:
  GoneTest() : neighbours_(neighboursInOneProcess(kMembers)) {
    std::vector<int> members(kMembers);
    std::iota(members.begin(), members.end(), 0);
    const std::size_t bytes = collective::shm::shmCommunicatorBytes(kMembers);
    void* memory = std::move(neighbours_[0]->arena().allocate(bytes)).value();
    area_ = neighbours_[0]->offsetOf(memory);
    for (int i = 0; i < kMembers; ++i) {
      communicators_.push_back(
          collective::shm::makeShmCommunicator(neighbour(i), areaOf(i), members, i));
    }
  }

  machine::Neighbourhood& neighbour(int member) {
    return *neighbours_[static_cast<std::size_t>(member)];
  }
  std::byte* areaOf(int member) {
    return neighbour(member).at(0, area_, collective::shm::shmCommunicatorBytes(kMembers));
  }
  collective::shm::MemberFlags& flags(int member) {
    return *reinterpret_cast<collective::shm::MemberFlags*>(
        areaOf(0) + collective::shm::AreaLayout(kMembers).flags(member));
  }
  // To the others its process has ended.
  void end(int member) {
    for (int i = 0; i < kMembers; ++i) {
      if (i != member) neighbour(i).noteGone(member, Status(Code::kPeerLost, "gone").withRank(7));
    }
  }
  // The sum of everybody's values, as that member computes it.
  OperationPtr sum(int member, std::vector<float>& values) {
    const collective::Piece piece{values.data(), values.data(),
                                  static_cast<std::int64_t>(values.size())};
    return communicators_[static_cast<std::size_t>(member)]->allreduce(
        std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {});
  }
  // Each in turn, as often as something can still move.
  static void drive(const std::vector<Operation*>& operations) {
    for (int i = 0; i < 10'000; ++i) {
      for (Operation* each : operations) each->progress();
    }
  }

  std::vector<std::unique_ptr<machine::Neighbourhood>> neighbours_;
  std::uint64_t area_ = 0;
  std::vector<std::unique_ptr<collective::Communicator>> communicators_;
};

// Every way of an allreduce: in a line, in a slot, in rounds.
class GoneWays : public GoneTest, public ::testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Elements, GoneWays, ::testing::Values(1, 200, 400'000));

TEST_P(GoneWays, WhatItHasNotDoneFails) {
  std::vector<float> zero(GetParam(), 1);
  std::vector<float> one(GetParam(), 1);
  auto first = sum(0, zero);
  auto second = sum(1, one);
  drive({first.get(), second.get()});
  EXPECT_EQ(first->progress(), Progress::kPending);
  end(2);
  for (Operation* each : {first.get(), second.get()}) {
    EXPECT_EQ(each->progress(), Progress::kFailed);
    EXPECT_EQ(each->status().code(), Code::kPeerLost);
    EXPECT_EQ(each->status().rank(), 7);
  }
  EXPECT_EQ(sum(0, zero)->progress(), Progress::kFailed) << "the next one, too";
}

TEST_P(GoneWays, WhatItHasDoneIsUsed) {
  std::vector<float> values[kMembers];
  OperationPtr sums[kMembers];
  for (int i = 0; i < kMembers; ++i) {
    values[i].assign(GetParam(), 1);
    sums[i] = sum(i, values[i]);
  }
  // The last one is done before the others have looked at what it brings.
  Progress last = Progress::kPending;
  for (int i = 0; i < 10'000 && last != Progress::kDone; ++i) {
    for (int other : {0, 1}) ASSERT_EQ(sums[other]->progress(), Progress::kPending);
    last = sums[2]->progress();
  }
  ASSERT_EQ(last, Progress::kDone);
  end(2);
  drive({sums[0].get(), sums[1].get()});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(sums[i]->progress(), Progress::kDone) << sums[i]->status().message();
    EXPECT_THAT(values[i], Each(3.0F));
  }
}

// Who is gone is no reason while it is another one that is late.
TEST_F(GoneTest, WhatOthersOweIsWaitedFor) {
  std::vector<float> values(1, 1);
  std::vector<float> twos(1, 1);
  auto late = sum(2, twos);
  late->progress();  // its line is written
  end(2);
  auto first = sum(0, values);
  drive({first.get()});
  EXPECT_EQ(first->progress(), Progress::kPending) << first->status().message();
  std::vector<float> ones(1, 1);
  auto second = sum(1, ones);
  drive({second.get(), first.get()});
  EXPECT_EQ(first->progress(), Progress::kDone);
  EXPECT_EQ(values[0], 3.0F);
}

TEST_F(GoneTest, ALineThatIsOverwrittenAfterItWasSeenHarmsNobody) {
  std::vector<float> values[kMembers];
  OperationPtr sums[kMembers];
  for (int i = 0; i < kMembers; ++i) values[i].assign(1, 1);
  sums[1] = sum(1, values[1]);
  sums[1]->progress();
  sums[0] = sum(0, values[0]);
  drive({sums[0].get()});  // has seen member 1's line, and waits for member 2's
  flags(1).tiny[0].sequence.store(0);
  sums[2] = sum(2, values[2]);
  sums[2]->progress();
  EXPECT_EQ(sums[0]->progress(), Progress::kDone);
  EXPECT_EQ(values[0][0], 3.0F);
}

}  // namespace
}  // namespace farandole::testing
