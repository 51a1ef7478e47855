// Gloo's algorithms on our connections: 2 to 4 ranks, each a thread with a mesh of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "collective/gloo/gloo_loader.h"
#include "paths.h"
#include "unit/transport/pair.h"

namespace farandole::collective::gloo {
namespace {

using ::testing::HasSubstr;

Result<GlooEngine> engine() { return GlooEngine::load(test::paths::kGlooEngine); }

Status finish(Operation& operation) {
  const Deadline deadline = Deadline::after(test::kWaitLimit);
  while (operation.progress() == Progress::kPending && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (operation.progress() == Progress::kPending) return Status::internal("it hangs");
  return operation.status();
}
Status finish(const OperationPtr& operation) { return finish(*operation); }

// Ranks that know each other; the set has them in reverse order, so that ranks and members differ.
class GlooRanks {
 public:
  explicit GlooRanks(int size, GlooAlgorithm algorithm = GlooAlgorithm::kAny) {
    Result<GlooEngine> loaded = engine();
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    for (int i = 0; i < size; ++i) meshes_.push_back(test::startMesh(test::options(i, size)));
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < size; ++j) {
        if (i == j) continue;
        EXPECT_TRUE(mesh(i).introduce(j, mesh(j).card()).ok());
      }
    }
    for (int member = 0; member < size; ++member) {
      GlooOptions options;
      for (int i = 0; i < size; ++i) options.ranks.push_back(size - 1 - i);
      options.me = member;
      options.key = 77;
      options.port = makeGlooPort(mesh(size - 1 - member));
      options.algorithm = algorithm;
      members_.push_back(loaded->make(std::move(options)));
    }
  }

  transport::LinkMesh& mesh(int rank) { return *meshes_[static_cast<std::size_t>(rank)]; }
  std::unique_ptr<Communicator>& member(int index) {
    return members_[static_cast<std::size_t>(index)];
  }
  // Runs it for every member at once.
  void all(const std::function<void(Communicator&)>& work) {
    std::vector<std::thread> threads;
    for (const auto& one : members_) threads.emplace_back([&] { work(*one); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<std::unique_ptr<transport::LinkMesh>> meshes_;
  std::vector<std::unique_ptr<Communicator>> members_;
};

class Gloo : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Gloo, ::testing::Values(1, 2, 3, 4));

TEST_P(Gloo, ReducesEverywhere) {
  for (const GlooAlgorithm algorithm : {GlooAlgorithm::kRing, GlooAlgorithm::kBcube}) {
    GlooRanks ranks(GetParam(), algorithm);
    ranks.all([](Communicator& me) {
      const int n = me.size();
      for (const std::size_t count : {1u, 7u, 1000u, 300001u}) {
        std::vector<float> in(count);
        std::vector<float> out(count);
        for (std::size_t i = 0; i < count; ++i) {
          in[i] = static_cast<float>((i % 1000) * static_cast<std::size_t>(me.member() + 1));
        }
        const Piece pieces[] = {{in.data(), out.data(), static_cast<std::int64_t>(count)}};
        Status status = finish(me.allreduce(pieces, DType::kFloat32, ReduceOp::kSum, {}));
        ASSERT_TRUE(status.ok()) << status.message();
        bool right = true;
        for (std::size_t i = 0; i < count; ++i) {
          right = right &&
                  out[i] == static_cast<float>((i % 1000)) * static_cast<float>(n * (n + 1) / 2);
        }
        EXPECT_TRUE(right) << count;
        // Several pieces, in place, averaged.
        std::vector<double> a(count, me.member());
        std::vector<double> b(3, 2.0 * me.member());
        const Piece two[] = {{a.data(), a.data(), static_cast<std::int64_t>(count)},
                             {b.data(), b.data(), 3}};
        status = finish(me.allreduce(two, DType::kFloat64, ReduceOp::kAverage, {}));
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(a.back(), (n - 1) / 2.0);
        EXPECT_EQ(b.front(), n - 1.0);
      }
      std::vector<std::int32_t> values(5, me.member());
      const Piece piece[] = {{values.data(), values.data(), 5}};
      ASSERT_TRUE(finish(me.allreduce(piece, DType::kInt32, ReduceOp::kMax, {})).ok());
      EXPECT_EQ(values, std::vector<std::int32_t>(5, n - 1));
    });
  }
}

TEST_P(Gloo, MovesDataAround) {
  GlooRanks ranks(GetParam());
  ranks.all([](Communicator& me) {
    const int n = me.size();
    const auto size = static_cast<std::size_t>(n);
    const auto mine = static_cast<std::size_t>(me.member());
    // allgather of uneven parts
    std::vector<std::int64_t> counts(size);
    std::vector<std::int32_t> expected;
    for (std::size_t i = 0; i < size; ++i) {
      counts[i] = static_cast<std::int64_t>(i * 1000);
      expected.insert(expected.end(), i * 1000, static_cast<std::int32_t>(i));
    }
    const std::vector<std::int32_t> part(mine * 1000, me.member());
    std::vector<std::int32_t> whole(expected.size());
    EXPECT_TRUE(finish(me.allgather(part.data(), whole.data(), counts, DType::kInt32)).ok());
    EXPECT_EQ(whole, expected);
    for (int root = 0; root < n; ++root) {
      // broadcast
      std::vector<std::int64_t> words(40000, me.member() == root ? root + 5 : 0);
      const Piece pieces[] = {{words.data(), words.data(), 40000}};
      EXPECT_TRUE(finish(me.broadcast(pieces, DType::kInt64, root)).ok());
      EXPECT_EQ(words, std::vector<std::int64_t>(40000, root + 5));
      // reduce
      const std::vector<float> in(1000, 1.5f);
      std::vector<float> out(me.member() == root ? 1000 : 0);
      EXPECT_TRUE(
          finish(me.reduce(in.data(), out.data(), 1000, DType::kFloat32, ReduceOp::kSum, {}, root))
              .ok());
      if (me.member() == root) {
        EXPECT_EQ(out, std::vector<float>(1000, 1.5f * static_cast<float>(n)));
      }
      // gather and scatter
      const std::vector<std::int64_t> even(size, 2);
      const std::uint8_t two[] = {static_cast<std::uint8_t>(mine), 9};
      std::vector<std::uint8_t> gathered(2 * size);
      EXPECT_TRUE(finish(me.gather(two, gathered.data(), even, DType::kUint8, root)).ok());
      std::vector<std::uint8_t> scattered(2);
      EXPECT_TRUE(
          finish(me.scatter(gathered.data(), scattered.data(), even, DType::kUint8, root)).ok());
      EXPECT_EQ(scattered, (std::vector<std::uint8_t>{two[0], two[1]}));
    }
    // alltoall: member i sends i + j elements to member j
    std::vector<std::int64_t> sends(size);
    std::vector<std::int64_t> receives(size);
    std::vector<std::int16_t> in;
    std::vector<std::int16_t> wanted;
    for (std::size_t j = 0; j < size; ++j) {
      sends[j] = receives[j] = static_cast<std::int64_t>(mine + j);
      in.insert(in.end(), mine + j, static_cast<std::int16_t>(mine * 10 + j));
      wanted.insert(wanted.end(), mine + j, static_cast<std::int16_t>(j * 10 + mine));
    }
    std::vector<std::int16_t> out(wanted.size());
    EXPECT_TRUE(finish(me.alltoall(in.data(), sends, out.data(), receives, DType::kInt16)).ok());
    EXPECT_EQ(out, wanted);
    EXPECT_TRUE(finish(me.barrier()).ok());
  });
}

TEST(GlooEngine, WhatItHasNotIsAClearError) {
  GlooRanks ranks(2);
  const std::vector<std::int64_t> counts{1, 2};
  float values[3] = {};
  const Status status = finish(
      ranks.member(0)->reducescatter(values, values, counts, DType::kFloat32, ReduceOp::kSum, {}));
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("the gloo engine has no reducescatter"));
  EXPECT_FALSE(GlooEngine::load("/nowhere/libfarandole_gloo.so").ok());
}

TEST(GlooEngine, ALostRankFailsEverybodyWithItsName) {
  GlooRanks ranks(4);
  // Member 0 is rank 3. It takes part in nothing, and then it is gone.
  ranks.all([](Communicator& me) { ASSERT_TRUE(finish(me.barrier()).ok()); });
  std::vector<std::thread> threads;
  for (int i = 1; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::vector<float> values(100000, 1);
      const Piece pieces[] = {{values.data(), values.data(), 100000}};
      const Status status =
          finish(ranks.member(i)->allreduce(pieces, DType::kFloat32, ReduceOp::kSum, {}));
      EXPECT_FALSE(status.ok());
      EXPECT_NE(status.code(), Code::kInternal) << status.message();
      EXPECT_EQ(status.rank(), 3) << status.message();
      // And so does every later operation.
      EXPECT_EQ(finish(ranks.member(i)->barrier()).rank(), 3);
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ranks.mesh(3).stop();
  for (std::thread& thread : threads) thread.join();
}

TEST(GlooEngine, AnOperationThatIsGivenUpTouchesNothingAnyMore) {
  GlooRanks ranks(2);
  {
    auto values = std::make_unique<std::vector<float>>(1000000, 1.0f);
    const Piece pieces[] = {{values->data(), values->data(), 1000000}};
    const OperationPtr operation =
        ranks.member(0)->allreduce(pieces, DType::kFloat32, ReduceOp::kSum, {});
    EXPECT_EQ(operation->progress(), Progress::kPending);
  }
  EXPECT_FALSE(finish(ranks.member(0)->barrier()).ok());
  EXPECT_FALSE(finish(ranks.member(1)->barrier()).ok());
}

}  // namespace
}  // namespace farandole::collective::gloo
