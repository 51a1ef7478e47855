// The skeleton of all engines' operations, with an engine whose turns are written down.
#include "collective/operation.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace farandole::testing {
namespace {

using collective::Advance;
using collective::EngineOperation;
using collective::Progress;
using collective::reductionOf;

struct ScriptContext {
  Status failure;
};

class ScriptOperation final : public EngineOperation<ScriptOperation, ScriptContext> {
 public:
  using Turn = std::function<Advance(ScriptOperation&)>;
  ScriptOperation(ScriptContext& shared, std::vector<Turn> turns)
      : EngineOperation(shared), turns_(std::move(turns)) {}

  using EngineOperation::fail;
  using EngineOperation::failForGood;
  using EngineOperation::unfinished;
  std::size_t turnsTaken() const { return taken_; }

 private:
  friend EngineOperation;
  Advance turn() { return turns_.at(taken_++)(*this); }

  std::vector<Turn> turns_;
  std::size_t taken_ = 0;
};

ScriptOperation::Turn answer(Advance result) {
  return [result](ScriptOperation&) { return result; };
}

TEST(EngineOperation, SaysWhatATurnHasDone) {
  ScriptContext context;
  ScriptOperation operation(
      context, {answer(Advance::kNothing), answer(Advance::kSomething), answer(Advance::kDone)});
  EXPECT_EQ(operation.progress(), Progress::kPending);
  EXPECT_FALSE(operation.moved());
  EXPECT_EQ(operation.progress(), Progress::kPending);
  EXPECT_TRUE(operation.moved());
  EXPECT_TRUE(operation.unfinished());
  EXPECT_EQ(operation.progress(), Progress::kDone);
  EXPECT_FALSE(operation.unfinished());
  EXPECT_TRUE(operation.status().ok());
}

TEST(EngineOperation, IsNotAskedAgainWhenItIsDone) {
  ScriptContext context;
  ScriptOperation operation(context, {answer(Advance::kDone)});
  EXPECT_EQ(operation.progress(), Progress::kDone);
  // Not even when the communicator has failed since.
  context.failure = Status::internal("later");
  EXPECT_EQ(operation.progress(), Progress::kDone);
  EXPECT_TRUE(operation.status().ok());
  EXPECT_EQ(operation.turnsTaken(), 1U);
}

TEST(EngineOperation, MayFailAlone) {
  ScriptContext context;
  ScriptOperation operation(context, {[](ScriptOperation& self) {
                              self.fail(Status::internal("alone"));
                              return Advance::kSomething;
                            }});
  EXPECT_EQ(operation.progress(), Progress::kFailed);
  EXPECT_EQ(operation.status().message(), "alone");
  EXPECT_FALSE(operation.unfinished());
  EXPECT_TRUE(context.failure.ok());
  EXPECT_EQ(operation.progress(), Progress::kFailed);
  EXPECT_EQ(operation.turnsTaken(), 1U);
}

TEST(EngineOperation, FailureForGoodIsThatOfAllLaterOnes) {
  ScriptContext context;
  ScriptOperation first(context, {[](ScriptOperation& self) {
                          self.failForGood(Status::internal("for good"));
                          return Advance::kNothing;
                        }});
  ScriptOperation second(context, {});
  EXPECT_EQ(first.progress(), Progress::kFailed);
  EXPECT_EQ(context.failure.message(), "for good");
  EXPECT_EQ(second.progress(), Progress::kFailed);
  EXPECT_EQ(second.status().message(), "for good");
  EXPECT_EQ(second.turnsTaken(), 0U);
}

TEST(EngineOperation, TheFirstReasonCounts) {
  ScriptContext context;
  context.failure = Status();
  ScriptOperation operation(context, {[](ScriptOperation& self) {
                              self.fail(Status::internal("first"));
                              self.failForGood(Status::internal("second"));
                              self.failForGood(Status::internal("third"));
                              return Advance::kDone;
                            }});
  EXPECT_EQ(operation.progress(), Progress::kFailed);
  EXPECT_EQ(operation.status().message(), "first");
  EXPECT_EQ(context.failure.message(), "second");
}

TEST(EndedOperation, IsDoneOrFailedFromTheBeginning) {
  const collective::OperationPtr done = collective::makeEnded({});
  EXPECT_EQ(done->progress(), Progress::kDone);
  EXPECT_TRUE(done->status().ok());
  const collective::OperationPtr failed = collective::makeEnded(Status::unavailable("no"));
  EXPECT_EQ(failed->progress(), Progress::kFailed);
  EXPECT_EQ(failed->progress(), Progress::kFailed);
  EXPECT_FALSE(failed->moved());
  EXPECT_EQ(failed->status().code(), Code::kUnavailable);
}

TEST(Budget, IsSpentByWhatIsCharged) {
  collective::Budget budget;
  EXPECT_FALSE(budget.spent());
  budget.charge(collective::Budget::kBytes - 1);
  EXPECT_FALSE(budget.spent());
  budget.charge(1);
  EXPECT_TRUE(budget.spent());
  budget.charge(std::size_t{1} << 40);  // one large step may exceed it
  EXPECT_TRUE(budget.spent());
}

TEST(ReductionOf, AveragesAreDividedSums) {
  const collective::Reduction average =
      reductionOf(DType::kInt32, ReduceOp::kAverage, Scale{0.5, 3.0, 2}, 4);
  EXPECT_EQ(average.op, ReduceOp::kSum);
  EXPECT_EQ(average.dtype, DType::kInt32);
  EXPECT_EQ(average.scale.divisor, 8);
  EXPECT_EQ(average.scale.pre, 0.5);
  EXPECT_EQ(average.scale.post, 3.0);
  const collective::Reduction most = reductionOf(DType::kFloat32, ReduceOp::kMax, {}, 4);
  EXPECT_EQ(most.op, ReduceOp::kMax);
  EXPECT_TRUE(most.scale.identity());
}

TEST(ReductionOf, AdasumOfOneIsItself) {
  EXPECT_EQ(reductionOf(DType::kFloat32, ReduceOp::kAdasum, {}, 1).op, ReduceOp::kSum);
  EXPECT_EQ(reductionOf(DType::kFloat32, ReduceOp::kAdasum, {}, 2).op, ReduceOp::kAdasum);
}

}  // namespace
}  // namespace farandole::testing
