// Reductions between machines, against plain references: all ranks must have the reference's bits,
// whichever algorithm was chosen.
#include <gtest/gtest.h>

#include "collective/link/chunks.h"
#include "unit/collective/link/link_group.h"

namespace farandole::testing {
namespace {

using collective::Piece;
using transport::WireSecurity;

struct Case {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Scale scale;
  std::vector<std::int64_t> counts;  // of the pieces
  bool inPlace = true;
};

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

std::vector<Bytes> inputsOf(int ranks, const Case& one) {
  std::vector<Bytes> inputs;
  for (int rank = 0; rank < ranks; ++rank) {
    inputs.push_back(makeData(one.dtype, sum(one.counts), 7, rank));
  }
  return inputs;
}

std::string describe(const Case& one) {
  return std::string(name(one.dtype)) + " " + std::string(name(one.op)) + " of " +
         std::to_string(sum(one.counts)) + " in " + std::to_string(one.counts.size()) +
         (one.inPlace ? " in place" : "");
}

// Every piece in memory of its own, not adjacent and not aligned.
struct Tensors {
  std::vector<Bytes> in;
  std::vector<Bytes> out;
  std::vector<Piece> pieces;

  Tensors(const Case& one, const Bytes& data) {
    const std::size_t element = sizeOf(one.dtype);
    std::size_t at = 0;
    for (const std::int64_t count : one.counts) {
      const std::size_t bytes = static_cast<std::size_t>(count) * element;
      Bytes piece(element + bytes);
      if (bytes > 0) std::memcpy(piece.data() + element, data.data() + at, bytes);
      at += bytes;
      out.emplace_back(element + bytes);
      in.push_back(std::move(piece));
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      std::byte* const from = in[i].data() + element;
      pieces.push_back({from, one.inPlace ? from : out[i].data() + element, one.counts[i]});
    }
  }
  Bytes result(std::size_t element) const {
    Bytes all;
    for (const Piece& piece : pieces) {
      const auto* from = static_cast<const std::byte*>(piece.out);
      all.insert(all.end(), from, from + static_cast<std::size_t>(piece.count) * element);
    }
    return all;
  }
};

void allreduceAll(int ranks, const std::vector<Case>& cases, int lanes = 1,
                  WireSecurity security = WireSecurity::kHandshake) {
  LinkGroup group(ranks, security, lanes);
  // Once, not by every rank.
  std::vector<std::vector<Bytes>> data;
  std::vector<Bytes> results;
  for (const Case& one : cases) {
    data.push_back(inputsOf(ranks, one));
    results.push_back(reduced(data.back(), sum(one.counts), one.dtype, one.op, one.scale));
  }
  group.run([&](LinkMember& member) {
    auto communicator = member.world();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& one = cases[i];
      const std::vector<Bytes>& inputs = data[i];
      const Bytes& expected = results[i];
      Tensors tensors(one, inputs[static_cast<std::size_t>(member.rank())]);
      const Status status =
          member.wait(communicator->allreduce(tensors.pieces, one.dtype, one.op, one.scale));
      ASSERT_TRUE(status.ok()) << describe(one) << ": " << status.message();
      ASSERT_TRUE(tensors.result(sizeOf(one.dtype)) == expected)
          << describe(one) << ", rank " << member.rank() << " of " << ranks;
    }
  });
}

class LinkRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LinkRanks, ::testing::ValuesIn(rankCounts()));

// Sizes around every threshold of choose.cc and of the mesh.
TEST_P(LinkRanks, AllreduceOfEverySize) {
  std::vector<Case> cases;
  bool inPlace = false;
  for (const std::int64_t bytes : {0, 4, 64, 4096, 8188, 8192, 10920, 13104, 13108, 16380, 16384,
                                   16388, 65532, 65536, 65540, 262140, 262144, 262148, 1100004}) {
    inPlace = !inPlace;
    cases.push_back({DType::kFloat32, ReduceOp::kSum, {}, {bytes / 4}, inPlace});
  }
  cases.push_back({DType::kFloat32, ReduceOp::kAverage, {}, {400000}, true});
  allreduceAll(GetParam(), cases);
}

TEST_P(LinkRanks, AllreduceOfEveryTypeAndOperator) {
  std::vector<Case> cases;
  for (int d = 0; d < kDTypeCount; ++d) {
    for (int o = 0; o < kReduceOpCount; ++o) {
      const auto dtype = static_cast<DType>(d);
      const auto op = static_cast<ReduceOp>(o);
      if (op == ReduceOp::kAdasum || !supports(op, dtype)) continue;
      const bool scaled = (d + o) % 2 == 1 && dtype != DType::kBool;
      const Scale scale = scaled ? Scale{0.5, 3.0, 1} : Scale{};
      cases.push_back({dtype, op, scale, {17}, true});
      cases.push_back({dtype, op, scale, {9001}, false});
    }
  }
  allreduceAll(GetParam(), cases);
}

TEST_P(LinkRanks, FusedPieces) {
  std::vector<Case> cases;
  for (const bool inPlace : {true, false}) {
    cases.push_back({DType::kFloat32, ReduceOp::kSum, {}, {1, 0, 5, 3}, inPlace});
    cases.push_back({DType::kFloat16, ReduceOp::kAverage, {}, {}, inPlace});
    cases.push_back({DType::kFloat32,
                     ReduceOp::kSum,
                     {},
                     {64, 100000, 3, 0, 777, 12, 300001, 9000, 9000, 9000, 1, 40000},
                     inPlace});
    Case many{DType::kBfloat16, ReduceOp::kSum, {}, {}, inPlace};
    for (int i = 0; i < 400; ++i) many.counts.push_back(i * 7 % 1900);
    cases.push_back(many);
  }
  allreduceAll(GetParam(), cases);
}

// More than 2^32 elements: cut, not touched.
TEST(LinkReduce, ChunksOfHugeArraysCoverThemExactly) {
  float anchor = 0;
  constexpr std::int64_t kHuge = (std::int64_t{1} << 33) + 5;
  const Piece pieces[] = {
      {&anchor, &anchor, 10}, {&anchor, &anchor, kHuge}, {&anchor, &anchor, 100}};
  const collective::Segments segments(pieces, sizeof(float));
  const std::vector<collective::link::Chunk> chunks =
      collective::link::cutIntoChunks(segments, 3, segments.total() - 1, std::int64_t{1} << 20);
  std::int64_t at = 3;
  for (const collective::link::Chunk& chunk : chunks) {
    ASSERT_EQ(chunk.begin, at);
    ASSERT_GT(chunk.count(), 0);
    ASSERT_LE(chunk.count(), std::int64_t{1} << 20);
    at = chunk.end;
  }
  EXPECT_EQ(at, segments.total() - 1);
}

TEST(LinkReduce, SeveralLanesAndEncryption) {
  const std::vector<Case> cases = {
      {DType::kFloat32, ReduceOp::kSum, {}, {3}, true},
      {DType::kFloat32, ReduceOp::kSum, {}, {700001}, true},
      {DType::kFloat32, ReduceOp::kSum, {}, {50000, 3, 200000}, false},
  };
  allreduceAll(3, cases, 4);
  allreduceAll(3, cases, 2, WireSecurity::kEncrypt);
  allreduceAll(2, cases, 1, WireSecurity::kIntegrity);
}

}  // namespace
}  // namespace farandole::testing
