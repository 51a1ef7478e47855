// What is done with the sizes that the other members tell, true or not.
#include "conductor/execution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/conductor/fake_engine.h"

namespace farandole::test {
namespace {

using collective::Progress;
using conductor::Execution;
using conductor::kNoLimit;
using control::Kind;

using ::testing::ElementsAre;

constexpr std::int64_t kRowBytes = 8;  // 2 float32

class ExecutionTest : public ::testing::Test {
 protected:
  // Member 1 of 3 has 4 rows and an output of that many rows.
  Execution& run(Kind kind, std::int64_t outputRows, std::vector<std::int64_t> told) {
    engine_.told = std::move(told);
    entry_ = std::make_shared<conductor::Entry>();
    conductor::Request& request = entry_->request;
    request.meta.kind = kind;
    request.meta.shape = {4, 2};
    request.input = input_.data();
    output_.assign(static_cast<std::size_t>(outputRows * 2) + 1, 0.0F);
    request.output = output_.data();
    request.outputBytes = outputRows * kRowBytes;
    if (kind == Kind::kAlltoall) request.splits = {1, 1, 2};
    entry_->agreed = std::make_shared<control::Meta>(request.meta);
    execution_ = std::make_unique<Execution>(engine_, std::vector{entry_}, 0, TimePoint{});
    end_ = execution_->progress();
    return *execution_;
  }
  void expectTooSmall(int member, std::int64_t rows, std::int64_t needed) {
    EXPECT_EQ(end_, Progress::kDone);
    ASSERT_TRUE(execution_->tooSmall());
    EXPECT_EQ(execution_->tooSmall()->member, member);
    EXPECT_EQ(execution_->tooSmall()->room, rows * kRowBytes);
    EXPECT_EQ(execution_->tooSmall()->needed, needed * kRowBytes);
    EXPECT_THAT(engine_.started, ElementsAre("exchange"));
  }
  void expectRun(const char* what) {
    EXPECT_EQ(end_, Progress::kDone) << execution_->status().message();
    EXPECT_FALSE(execution_->tooSmall());
    EXPECT_THAT(engine_.started, ElementsAre("exchange", what));
  }
  void expectFailed() {
    EXPECT_EQ(end_, Progress::kFailed);
    EXPECT_EQ(execution_->status().code(), Code::kInternal);
    EXPECT_THAT(engine_.started, ElementsAre("exchange"));
  }

  FakeEngine engine_{1, 3};
  std::vector<float> input_ = std::vector<float>(8);
  std::vector<float> output_;
  conductor::EntryPtr entry_;
  std::unique_ptr<Execution> execution_;
  Progress end_ = Progress::kPending;
};

// Room and rows of each member.
TEST_F(ExecutionTest, AllgatherNeedsRoomForEverybodysRowsEverywhere) {
  run(Kind::kAllgather, 12, {kNoLimit, 3, 12 * kRowBytes, 4, kNoLimit, 5});
  expectRun("allgather");
  EXPECT_THAT(engine_.lastCounts, ElementsAre(6, 8, 10));
}
TEST_F(ExecutionTest, AllgatherIsRefusedIfOnesOwnOutputIsTooSmall) {
  run(Kind::kAllgather, 12, {kNoLimit, 1000, 12 * kRowBytes, 4, kNoLimit, 5});
  expectTooSmall(1, 12, 1009);
}
TEST_F(ExecutionTest, AllgatherIsRefusedIfAnothersOutputIsTooSmall) {
  run(Kind::kAllgather, 12, {kNoLimit, 3, 12 * kRowBytes, 4, 11 * kRowBytes, 5});
  expectTooSmall(2, 11, 12);
}
TEST_F(ExecutionTest, GatherNeedsRoomAtTheRootOnly) {
  run(Kind::kGather, 0, {12 * kRowBytes, 3, 0, 4, 0, 5});
  expectRun("gather");
  engine_.started.clear();
  run(Kind::kGather, 0, {11 * kRowBytes, 3, 0, 4, 0, 5});
  expectTooSmall(0, 11, 12);
}
TEST_F(ExecutionTest, AlltoallNeedsRoomForWhatEachReceives) {
  run(Kind::kAlltoall, 6, {kNoLimit, 1, 2, 3, 6 * kRowBytes, 1, 1, 2, kNoLimit, 0, 3, 0});
  expectRun("alltoall");
  EXPECT_THAT(engine_.lastCounts, ElementsAre(4, 2, 6));
  engine_.started.clear();
  run(Kind::kAlltoall, 6, {kNoLimit, 1, 2, 3, 6 * kRowBytes, 1, 1, 2, 4 * kRowBytes, 0, 3, 0});
  expectTooSmall(2, 4, 5);
}
TEST_F(ExecutionTest, ScatterNeedsRoomForTheRootsSplits) {
  // The root's room, its splits, and the others' rooms.
  run(Kind::kScatter, 4, {kNoLimit, 1, 4, 9, 4 * kRowBytes, 9 * kRowBytes});
  expectRun("scatter");
  EXPECT_THAT(engine_.lastCounts, ElementsAre(2, 8, 18));
  engine_.started.clear();
  run(Kind::kScatter, 4, {kNoLimit, 1, 5, 9, 4 * kRowBytes, 9 * kRowBytes});
  expectTooSmall(1, 4, 5);
}

// What can only be a lie, or another rank's scribbling.
TEST_F(ExecutionTest, NumbersThatCannotBeEndIt) {
  run(Kind::kAllgather, 12, {kNoLimit, -1, 12 * kRowBytes, 4, kNoLimit, 5});
  expectFailed();
  engine_.started.clear();
  run(Kind::kAllgather, 12, {kNoLimit, INT64_MAX / 8, 12 * kRowBytes, 4, kNoLimit, 5});
  expectFailed();
  engine_.started.clear();
  run(Kind::kAllgather, 12, {kNoLimit, 3, kNoLimit, 5, kNoLimit, 5});  // this member has 4 rows
  expectFailed();
}
TEST_F(ExecutionTest, NothingIsWrittenBehindTheOutputEvenIfItsRoomIsGarbled) {
  run(Kind::kAllgather, 12, {kNoLimit, 1000, kNoLimit, 4, kNoLimit, 5});
  expectFailed();
  engine_.started.clear();
  run(Kind::kAlltoall, 6, {kNoLimit, 0, 1000, 0, kNoLimit, 1, 1, 2, kNoLimit, 0, 0, 0});
  expectFailed();
  engine_.started.clear();
  run(Kind::kScatter, 4, {kNoLimit, 0, 1000, 0, kNoLimit, kNoLimit});
  expectFailed();
}

}  // namespace
}  // namespace farandole::test
