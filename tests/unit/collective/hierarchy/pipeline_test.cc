// What the hierarchy starts, in which order, and what it says of itself: with communicators that
// only note it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "collective/hierarchy/hierarchy.h"
#include "unit/collective/hierarchy/scripted_communicator.h"

namespace farandole::testing {
namespace {

using collective::OperationPtr;
using collective::Piece;
using collective::Progress;
using collective::hierarchy::HierarchyParts;
using collective::hierarchy::makeHierarchy;

using Names = std::vector<std::string>;

// Two machines of two; this member is the second on machine 1.
class HierarchyPipeline : public ::testing::Test {
 protected:
  HierarchyParts parts() {
    HierarchyParts result;
    result.machineOf = {0, 1, 0, 1};
    result.me = 3;
    result.local = std::make_unique<ScriptedCommunicator>(local_, 1, 2);
    result.between = std::make_unique<ScriptedCommunicator>(between_, 1, 2);
    result.flat = std::make_unique<ScriptedCommunicator>(flat_, 3, 4);
    result.allocate = [this](std::size_t bytes) -> Result<void*> {
      ++allocations_;
      if (memoryIsOut_) return Status::outOfMemory("none");
      return std::aligned_alloc(64, bytes);
    };
    result.free = [this](void* memory) {
      ++frees_;
      std::free(memory);
    };
    result.tuning = {1024, 4096, 4096};
    return result;
  }
  // Of chunks of 4096 bytes.
  OperationPtr allreduce(collective::Communicator& hierarchy, int chunks) {
    const Piece piece{values_, values_, chunks * 1024};
    return hierarchy.allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {});
  }
  static Progress drive(collective::Operation& operation) {
    Progress progress = Progress::kPending;
    for (int i = 0; i < 1000 && progress == Progress::kPending; ++i) {
      progress = operation.progress();
      if (progress == Progress::kPending && !operation.moved()) break;
    }
    return progress;
  }

  Script local_;
  Script between_;
  Script flat_;
  int allocations_ = 0;
  int frees_ = 0;
  bool memoryIsOut_ = false;
  float values_[16 * 1024] = {};
};

TEST_F(HierarchyPipeline, StagesAlternate) {
  auto hierarchy = makeHierarchy(parts());
  const OperationPtr operation = allreduce(*hierarchy, 5);
  EXPECT_EQ(drive(*operation), Progress::kDone);
  EXPECT_EQ(operation->progress(), Progress::kDone);
  EXPECT_TRUE(operation->status().ok());
  const std::string a = "reducescatter";
  const std::string c = "allgather";
  EXPECT_EQ(local_.started, (Names{a, a, a, c, a, c, a, c, c, c}));
  EXPECT_EQ(between_.started, Names(5, "allreduce"));
  EXPECT_EQ(local_.mostLive, 1);
  EXPECT_EQ(between_.mostLive, 1);
  EXPECT_TRUE(flat_.started.empty());
}

TEST_F(HierarchyPipeline, WorksInsideWhileAChunkTravels) {
  auto hierarchy = makeHierarchy(parts());
  const OperationPtr operation = allreduce(*hierarchy, 8);
  between_.answer = Progress::kPending;
  EXPECT_EQ(drive(*operation), Progress::kPending);
  EXPECT_FALSE(operation->moved());  // and says that it waits
  EXPECT_EQ(local_.started, Names(3, "reducescatter"));
  EXPECT_EQ(between_.started, Names(1, "allreduce"));
  // What moves between machines is movement.
  between_.moves = true;
  EXPECT_EQ(operation->progress(), Progress::kPending);
  EXPECT_TRUE(operation->moved());
  // The next travels although nothing inside gets on.
  between_.moves = false;
  between_.answer = Progress::kDone;
  local_.answer = Progress::kPending;
  EXPECT_EQ(drive(*operation), Progress::kPending);
  EXPECT_EQ(between_.started.size(), 3u);
  EXPECT_EQ(local_.started.size(), 4u);
  local_.answer = Progress::kDone;
  EXPECT_EQ(drive(*operation), Progress::kDone);
}

TEST_F(HierarchyPipeline, OneCallIsBounded) {
  auto hierarchy = makeHierarchy([this] {
    HierarchyParts result = parts();
    result.tuning.oneCarrierBelow = 0;
    result.tuning.smallestChunk = result.tuning.largestChunk = 64;
    return result;
  }());
  const OperationPtr operation = allreduce(*hierarchy, 16);  // 1024 chunks of 64 bytes
  EXPECT_EQ(operation->progress(), Progress::kPending);
  EXPECT_TRUE(operation->moved());
  EXPECT_LT(local_.started.size(), 200u);
}

TEST_F(HierarchyPipeline, SmallOnesTravelWithTheFirstCarrier) {
  auto hierarchy = makeHierarchy(parts());
  const Piece piece{values_, values_, 100};
  const OperationPtr operation =
      hierarchy->allreduce(std::span(&piece, 1), DType::kFloat32, ReduceOp::kSum, {});
  EXPECT_EQ(operation->progress(), Progress::kDone);  // in one call if nothing is missing
  EXPECT_EQ(local_.started, (Names{"reducescatter", "broadcast"}));
  EXPECT_TRUE(between_.started.empty());
}

TEST_F(HierarchyPipeline, NothingToDoIsDone) {
  auto hierarchy = makeHierarchy(parts());
  const Piece none{nullptr, nullptr, 0};
  EXPECT_EQ(
      hierarchy->allreduce(std::span(&none, 1), DType::kFloat32, ReduceOp::kSum, {})->progress(),
      Progress::kDone);
  EXPECT_EQ(hierarchy->broadcast({}, DType::kFloat32, 0)->progress(), Progress::kDone);
  const std::vector<std::int64_t> zeros(4, 0);
  EXPECT_EQ(hierarchy->allgather(nullptr, nullptr, zeros, DType::kInt8)->progress(),
            Progress::kDone);
  EXPECT_EQ(hierarchy->reducescatter(nullptr, nullptr, zeros, DType::kInt8, ReduceOp::kSum, {})
                ->progress(),
            Progress::kDone);
  EXPECT_TRUE(local_.started.empty());
  EXPECT_TRUE(between_.started.empty());
}

class HierarchyFailure : public HierarchyPipeline, public ::testing::WithParamInterface<bool> {};

TEST_P(HierarchyFailure, StaysForEveryLaterOperation) {
  auto hierarchy = makeHierarchy(parts());
  Script& broken = GetParam() ? between_ : local_;
  broken.answer = Progress::kFailed;
  broken.failure = Status(Code::kPeerLost, "rank 7 ended").withRank(7);
  const OperationPtr operation = allreduce(*hierarchy, 4);
  EXPECT_EQ(drive(*operation), Progress::kFailed);
  EXPECT_EQ(operation->progress(), Progress::kFailed);
  EXPECT_EQ(operation->status().rank(), 7);
  EXPECT_EQ(local_.live, 0);
  EXPECT_EQ(between_.live, 0);
  const std::size_t startedBefore = local_.started.size();
  broken.answer = Progress::kDone;
  const std::vector<std::int64_t> ones(4, 1);
  std::vector<OperationPtr> later;
  later.push_back(allreduce(*hierarchy, 1));
  later.push_back(hierarchy->barrier());
  later.push_back(hierarchy->broadcast({}, DType::kFloat32, 0));
  later.push_back(hierarchy->allgather(values_, values_, ones, DType::kFloat32));
  later.push_back(hierarchy->gather(values_, values_, ones, DType::kFloat32, 0));
  later.push_back(hierarchy->send(values_, 4, 0, 0));
  later.push_back(hierarchy->receive(values_, 4, 0, 0, nullptr));
  for (const OperationPtr& each : later) {
    EXPECT_EQ(each->progress(), Progress::kFailed);
    EXPECT_EQ(each->status().rank(), 7);
  }
  EXPECT_EQ(local_.started.size(), startedBefore);
  EXPECT_TRUE(flat_.started.empty());
}
INSTANTIATE_TEST_SUITE_P(Where, HierarchyFailure, ::testing::Bool());

TEST_F(HierarchyPipeline, FailureOfTheFlatOneIsTheHierarchys) {
  auto hierarchy = makeHierarchy(parts());
  const std::vector<std::int64_t> ones(4, 1);
  flat_.failure = Status(Code::kPeerLost, "rank 7 ended").withRank(7);
  flat_.answer = Progress::kFailed;
  // A message may fail alone.
  EXPECT_EQ(hierarchy->send(values_, 4, 0, 0)->progress(), Progress::kFailed);
  EXPECT_EQ(drive(*hierarchy->barrier()), Progress::kDone);
  EXPECT_EQ(hierarchy->alltoall(values_, ones, values_, ones, DType::kFloat32)->progress(),
            Progress::kFailed);
  EXPECT_EQ(hierarchy->barrier()->progress(), Progress::kFailed);
}

TEST_F(HierarchyPipeline, BuffersAreKept) {
  {
    auto hierarchy = makeHierarchy(parts());
    EXPECT_EQ(drive(*allreduce(*hierarchy, 16)), Progress::kDone);
    const int before = allocations_;
    EXPECT_GT(before, 0);
    for (int i = 1; i <= 16; ++i) EXPECT_EQ(drive(*allreduce(*hierarchy, i)), Progress::kDone);
    EXPECT_EQ(allocations_, before);
  }
  EXPECT_EQ(frees_, allocations_);
}

TEST_F(HierarchyPipeline, OrdinaryMemoryWillDo) {
  memoryIsOut_ = true;
  {
    auto hierarchy = makeHierarchy(parts());
    EXPECT_EQ(drive(*allreduce(*hierarchy, 16)), Progress::kDone);
  }
  EXPECT_GT(allocations_, 0);
  EXPECT_EQ(frees_, 0);
}

TEST_F(HierarchyPipeline, PartsThatDoNotFitAreRefused) {
  const auto refuses = [&](const char* reason, auto change) {
    HierarchyParts wrong = parts();
    change(wrong);
    auto hierarchy = makeHierarchy(std::move(wrong));
    const OperationPtr operation = hierarchy->barrier();
    EXPECT_EQ(operation->progress(), Progress::kFailed) << reason;
    EXPECT_NE(operation->status().message().find(reason), std::string::npos)
        << operation->status().message();
  };
  refuses("without gaps", [](HierarchyParts& p) { p.machineOf = {0, 2, 0, 2}; });
  refuses("without gaps", [](HierarchyParts& p) { p.machineOf = {0, -1, 0, 1}; });
  refuses("without gaps", [](HierarchyParts& p) { p.me = 4; });
  refuses("inside the machine", [](HierarchyParts& p) { p.machineOf = {0, 0, 0, 1}; });
  refuses("inside the machine", [](HierarchyParts& p) { p.local.reset(); });
  refuses("between machines", [](HierarchyParts& p) { p.between.reset(); });
  refuses("all members", [](HierarchyParts& p) { p.flat.reset(); });
}

}  // namespace
}  // namespace farandole::testing
