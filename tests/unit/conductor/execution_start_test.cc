// What an execution gives to the engine, and what it makes of the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conductor/execution.h"
#include "unit/conductor/fake_engine.h"

namespace farandole::test {
namespace {

using collective::Progress;
using conductor::Execution;
using conductor::kNoLimit;
using control::Kind;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Member 1 of 3, with 4 rows of 2 float32.
class ExecutionStartTest : public ::testing::Test {
 protected:
  ExecutionStartTest() {
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = static_cast<float>(i);
    add(Kind::kAllreduce);
  }
  void add(Kind kind) {
    auto entry = std::make_shared<conductor::Entry>();
    entry->request.meta.kind = kind;
    entry->request.meta.shape = {4, 2};
    entry->request.input = input_.data();
    entry->request.output = output_.data();
    entries_.push_back(std::move(entry));
  }
  conductor::Request& request(std::size_t i = 0) { return entries_[i]->request; }
  conductor::Outcome& outcome(std::size_t i = 0) { return entries_[i]->outcome; }
  // joinedHere: this member brings neutral elements.
  Progress run(int joined = 0, bool joinedHere = false) {
    std::vector<conductor::EntryPtr> batch;
    for (const auto& entry : entries_) {
      batch.push_back(joinedHere ? std::make_shared<conductor::Entry>() : entry);
      batch.back()->neutral = joinedHere;
      batch.back()->agreed = std::make_shared<control::Meta>(entry->request.meta);
    }
    execution_ = std::make_unique<Execution>(engine_, std::move(batch), joined, TimePoint{});
    return execution_->progress();
  }

  FakeEngine engine_{1, 3};
  std::vector<float> input_ = std::vector<float>(8);
  std::vector<float> output_ = std::vector<float>(32);
  std::vector<conductor::EntryPtr> entries_;
  std::unique_ptr<Execution> execution_;
};

TEST_F(ExecutionStartTest, EntriesAreOneOperationOfTheEngine) {
  add(Kind::kAllreduce);
  request(1).output = output_.data() + 8;
  EXPECT_EQ(run(), Progress::kDone);
  EXPECT_THAT(engine_.started, ElementsAre("allreduce"));
  ASSERT_EQ(engine_.lastPieces.size(), 2U);
  EXPECT_EQ(engine_.lastPieces[1].in, input_.data());
  EXPECT_EQ(engine_.lastPieces[1].out, output_.data() + 8);
  EXPECT_EQ(engine_.lastPieces[1].count, 8);
  EXPECT_EQ(execution_->bytes(), 64);
  EXPECT_EQ(outcome().data, output_.data());
  EXPECT_EQ(outcome().bytes, 32U);
  EXPECT_THAT(outcome().shape, ElementsAre(4, 2));
}
TEST_F(ExecutionStartTest, AnAverageIsOverThoseWhoBringData) {
  request().meta.op = ReduceOp::kAverage;
  request().meta.prescale = 0.5;
  run(1);
  EXPECT_EQ(engine_.lastOp, ReduceOp::kSum);
  EXPECT_EQ(engine_.lastScale.divisor, 2);
  EXPECT_EQ(engine_.lastScale.pre, 0.5);
}
TEST_F(ExecutionStartTest, OneThatHasJoinedBringsNeutralElements) {
  request().meta.op = ReduceOp::kProduct;
  EXPECT_EQ(run(1, true), Progress::kDone);
  ASSERT_EQ(engine_.lastPieces.size(), 1U);
  const auto* neutral = static_cast<const float*>(engine_.lastPieces[0].in);
  EXPECT_EQ(neutral[0], 1.0F);
  EXPECT_EQ(neutral[7], 1.0F);
  EXPECT_EQ(output_[0], 0.0F);
}
TEST_F(ExecutionStartTest, ARootsOwnOutputIsCopiedAtTheEnd) {
  request().meta.kind = Kind::kBroadcast;
  request().meta.root = 1;
  engine_.progress = Progress::kPending;
  EXPECT_EQ(run(), Progress::kPending);
  EXPECT_EQ(engine_.lastPieces[0].in, input_.data());
  EXPECT_EQ(engine_.lastPieces[0].out, input_.data()) << "only read";
  EXPECT_EQ(output_[7], 0.0F);
  engine_.progress = Progress::kDone;
  EXPECT_EQ(execution_->progress(), Progress::kDone);
  EXPECT_EQ(output_[7], 7.0F);
}
TEST_F(ExecutionStartTest, OthersReceiveABroadcastInTheirOutput) {
  request().meta.kind = Kind::kBroadcast;
  request().meta.root = 0;
  run();
  EXPECT_EQ(engine_.lastPieces[0].out, output_.data());
}
TEST_F(ExecutionStartTest, RowsAreDividedEvenlyTheFirstPartsBeingLarger) {
  request().meta.kind = Kind::kReducescatter;
  run();
  EXPECT_THAT(engine_.lastCounts, ElementsAre(4, 2, 2));
  EXPECT_THAT(outcome().shape, ElementsAre(1, 2));
}
TEST_F(ExecutionStartTest, RowsAreDividedAsTheSplitsSay) {
  request().meta.kind = Kind::kReducescatter;
  request().meta.splits = {0, 3, 1};
  run();
  EXPECT_THAT(engine_.lastCounts, ElementsAre(0, 6, 2));
  EXPECT_THAT(outcome().shape, ElementsAre(3, 2));
  EXPECT_EQ(outcome().bytes, 24U);
}
TEST_F(ExecutionStartTest, ScalarsThatAreGatheredAreAVector) {
  request().meta.kind = Kind::kAllgather;
  request().meta.shape = {};
  engine_.told = {kNoLimit, 1, kNoLimit, 1, kNoLimit, 1};
  EXPECT_EQ(run(), Progress::kDone);
  EXPECT_THAT(outcome().shape, ElementsAre(3));
  EXPECT_THAT(outcome().splits, ElementsAre(1, 1, 1));
}
TEST_F(ExecutionStartTest, AReductionToTheRootNeedsNoOutputElsewhere) {
  request().meta.kind = Kind::kReduce;
  request().meta.root = 0;
  request().output = nullptr;
  EXPECT_EQ(run(), Progress::kDone);
  EXPECT_EQ(outcome().data, nullptr);
}

// Engines write outputs while they still send inputs.
TEST_F(ExecutionStartTest, AnInputInsideOfTheOutputIsCopied) {
  request().meta.kind = Kind::kAlltoall;
  request().splits = {1, 1, 2};
  engine_.told = {kNoLimit, 1, 1, 2, kNoLimit, 1, 1, 2, kNoLimit, 1, 1, 2};
  run();
  EXPECT_EQ(engine_.lastInput, input_.data());
  request().output = input_.data();
  request().outputBytes = 32;
  run();
  ASSERT_NE(engine_.lastInput, input_.data());
  EXPECT_EQ(static_cast<const float*>(engine_.lastInput)[7], 7.0F);
}

TEST_F(ExecutionStartTest, TheLibraryProvidesAnOutputWhereThereIsNone) {
  request().output = nullptr;
  run();
  EXPECT_NE(outcome().data, nullptr);
  EXPECT_EQ(outcome().owned.get(), outcome().data);
}
TEST_F(ExecutionStartTest, AnAllocatorIsAskedBeforeThat) {
  request().output = nullptr;
  request().allocate = [this](std::size_t bytes, const std::vector<std::int64_t>& shape) {
    EXPECT_EQ(bytes, 32U);
    EXPECT_THAT(shape, ElementsAre(4, 2));
    return static_cast<void*>(output_.data());
  };
  run();
  EXPECT_EQ(outcome().data, output_.data());
  EXPECT_EQ(outcome().owned, nullptr);
}
TEST_F(ExecutionStartTest, AnAllocatorThatGivesNothingFailsIt) {
  request().output = nullptr;
  request().allocate = [](std::size_t, const std::vector<std::int64_t>&) -> void* {
    return nullptr;
  };
  EXPECT_EQ(run(), Progress::kFailed);
  EXPECT_EQ(execution_->status().code(), Code::kOutOfMemory);
  EXPECT_THAT(engine_.started, IsEmpty());
}
TEST_F(ExecutionStartTest, AFailureOfTheEngineIsItsOwn) {
  engine_.progress = Progress::kFailed;
  engine_.failure = Status(Code::kPeerLost, "gone").withRank(2);
  EXPECT_EQ(run(), Progress::kFailed);
  EXPECT_EQ(execution_->status().rank(), 2);
  EXPECT_EQ(execution_->progress(), Progress::kFailed) << "the same answer again";
}
TEST_F(ExecutionStartTest, AFailureOfTheExchangeIsToo) {
  request().meta.kind = Kind::kAllgather;
  engine_.progress = Progress::kFailed;
  engine_.failure = Status(Code::kPeerLost, "gone").withRank(2);
  EXPECT_EQ(run(), Progress::kFailed);
  EXPECT_EQ(execution_->settle(), Progress::kFailed);
  EXPECT_EQ(execution_->status().rank(), 2);
  EXPECT_THAT(engine_.started, ElementsAre("exchange"));
}

}  // namespace
}  // namespace farandole::test
