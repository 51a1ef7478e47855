// Scaled copies of sets with one member, without an engine.
#include "collective/local.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace farandole::testing {
namespace {

using collective::Advance;
using collective::Budget;
using collective::EngineOperation;
using collective::Piece;
using collective::ScaledCopy;

// Drives a copy to its end; returns the calls it took.
int drive(ScaledCopy& copy) {
  for (int calls = 1; calls < 1000; ++calls) {
    Budget budget;
    const Advance result = copy.advance(budget);
    if (result == Advance::kDone) return calls;
    EXPECT_EQ(result, Advance::kSomething);
  }
  ADD_FAILURE() << "does not end";
  return 0;
}

TEST(ScaledCopy, ScalesEveryPiece) {
  std::vector<float> a(1000, 3.0F);
  std::vector<float> b(5, -1.0F);
  std::vector<float> out(5, 0.0F);
  const Piece pieces[] = {
      {a.data(), a.data(), 1000}, {nullptr, nullptr, 0}, {b.data(), out.data(), 5}};
  ScaledCopy copy(pieces, {DType::kFloat32, ReduceOp::kSum, Scale{2.0, 5.0, 4}});
  EXPECT_EQ(drive(copy), 1);
  EXPECT_EQ(a, std::vector<float>(1000, 7.5F));
  EXPECT_EQ(out, std::vector<float>(5, -2.5F));
  EXPECT_EQ(b, std::vector<float>(5, -1.0F));
}

TEST(ScaledCopy, StopsWhenTheBudgetIsSpentAndGoesOnThere) {
  std::vector<std::uint32_t> in(5 << 20);
  std::iota(in.begin(), in.end(), 7U);
  std::vector<std::uint32_t> out(in.size(), 0U);
  const Piece piece{in.data(), out.data(), static_cast<std::int64_t>(in.size())};
  ScaledCopy copy(std::span(&piece, 1), {DType::kInt32, ReduceOp::kSum, {}});
  // 20 MiB, 8 at a time.
  EXPECT_EQ(drive(copy), 3);
  EXPECT_EQ(in, out);
}

TEST(ScaledCopy, NothingIsDoneAtOnce) {
  ScaledCopy copy({}, collective::kPlainCopy);
  EXPECT_EQ(drive(copy), 1);
}

TEST(ScaledCopy, LeavesInPlaceDataAloneThatItDoesNotChange) {
  // Read-only memory: a write would end the test.
  static const std::uint8_t kConstant[] = {1, 2, 3, 4};
  const Piece piece{kConstant, const_cast<std::uint8_t*>(kConstant), 4};
  ScaledCopy copy(std::span(&piece, 1), collective::kPlainCopy);
  EXPECT_EQ(drive(copy), 1);
}

TEST(ScaledCopy, TruthIsOneInPlaceToo) {
  std::vector<std::uint8_t> truths = {0, 1, 2, 255};
  const Piece piece{truths.data(), truths.data(), 4};
  ScaledCopy copy(std::span(&piece, 1), {DType::kBool, ReduceOp::kMax, {}});
  EXPECT_EQ(drive(copy), 1);
  EXPECT_EQ(truths, (std::vector<std::uint8_t>{0, 1, 1, 1}));
}

struct NoContext {
  Status failure;
};

// The least that an engine's operations are.
class PlainOperation : public EngineOperation<PlainOperation, NoContext> {
 protected:
  PlainOperation(NoContext& shared, std::string name)
      : EngineOperation(shared), name_(std::move(name)) {}
  virtual Advance advance(Budget& budget) = 0;

 private:
  friend EngineOperation;
  Advance turn() {
    Budget budget;
    return advance(budget);
  }
  const std::string name_;
};

TEST(LocalReduction, IsAnOperationOfItsEngine) {
  NoContext context;
  std::vector<double> values(10, 4.0);
  const Piece piece{values.data(), values.data(), 10};
  const collective::Reduction half{DType::kFloat64, ReduceOp::kSum, Scale{1.0, 0.5, 1}};
  collective::LocalReduction<PlainOperation> operation(std::span(&piece, 1), half, context, "copy");
  EXPECT_EQ(operation.progress(), collective::Progress::kDone);
  EXPECT_EQ(values, std::vector<double>(10, 2.0));
  context.failure = Status::internal("over");
  collective::LocalReduction<PlainOperation> late(std::span(&piece, 1), half, context, "copy");
  EXPECT_EQ(late.progress(), collective::Progress::kFailed);
  EXPECT_EQ(values, std::vector<double>(10, 2.0));
}

}  // namespace
}  // namespace farandole::testing
