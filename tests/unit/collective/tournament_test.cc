// Adasum's tournament without an engine: its bits against the definition carried out plainly, alone
// and in teams whose members take turns in any order.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <random>
#include <string>

#include "collective/adasum.h"
#include "unit/collective/data.h"

namespace farandole::testing {
namespace {

using collective::AdasumGroups;
using collective::AdasumTournament;
using collective::adasumWeights;
using collective::Budget;

const std::vector<std::int64_t> kCounts = {5, 40'000, 0, 333, AdasumTournament::kBlockElements};
const Scale kScale{0.5, 3.0, 2};

std::size_t bytesOf(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * sizeOf(dtype);
}

void scaled(std::byte* to, const std::byte* from, std::int64_t count, DType dtype,
            const Scale& scale) {
  void* const out = to;
  const void* const in = from;
  reduce(std::span(&out, 1), std::span(&in, 1), count, dtype, ReduceOp::kSum, scale,
         Store::kCached);
}

// One pair of one piece: dot products in blocks, in order.
void plainPair(std::byte* a, const std::byte* b, std::int64_t count, DType dtype) {
  double sums[3] = {0, 0, 0};
  for (std::int64_t at = 0; at < count; at += AdasumTournament::kBlockElements) {
    const std::int64_t block = std::min(AdasumTournament::kBlockElements, count - at);
    double dots[3] = {0, 0, 0};
    dot3(a + bytesOf(at, dtype), b + bytesOf(at, dtype), block, dtype, dots);
    for (int i = 0; i < 3; ++i) sums[i] += dots[i];
  }
  const collective::AdasumWeights weights = adasumWeights(sums);
  combine(a, a, weights.a, b, weights.b, count, dtype);
}

// What every member must get of one piece.
Bytes plainResult(std::int64_t count, DType dtype, std::uint64_t salt, int members) {
  std::vector<Bytes> vectors;
  for (int member = 0; member < members; ++member) {
    vectors.push_back(makeData(dtype, count, salt, member));
    scaled(vectors.back().data(), vectors.back().data(), count, dtype, Scale{kScale.pre, 1.0, 1});
  }
  for (std::size_t distance = 1; distance < vectors.size(); distance *= 2) {
    for (std::size_t a = 0; a + distance < vectors.size(); a += 2 * distance) {
      plainPair(vectors[a].data(), vectors[a + distance].data(), count, dtype);
    }
  }
  scaled(vectors[0].data(), vectors[0].data(), count, dtype,
         Scale{1.0, kScale.post, kScale.divisor});
  return vectors[0];
}

// One member's tensors.
struct Tensors {
  Tensors(DType dtype, int member) {
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      data.push_back(makeData(dtype, kCounts[i], i, member));
    }
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
      pieces.push_back({data[i].data(), data[i].data(), kCounts[i]});
    }
  }
  std::vector<Bytes> data;
  std::vector<collective::Piece> pieces;
};

void expectResult(const Tensors& tensors, DType dtype, int members, const std::string& who) {
  for (std::size_t i = 0; i < kCounts.size(); ++i) {
    EXPECT_EQ(tensors.data[i], plainResult(kCounts[i], dtype, i, members))
        << who << ", piece " << i;
  }
}

class Tournament : public ::testing::TestWithParam<int> {
 protected:
  const FpModeGuard guard_;
};
INSTANTIATE_TEST_SUITE_P(Members, Tournament, ::testing::Values(2, 3, 4, 5, 7, 8));

TEST_P(Tournament, OfASoleWorkerHasTheBitsOfTheDefinition) {
  const int members = GetParam();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
    std::vector<Tensors> all;
    for (int member = 0; member < members; ++member) all.emplace_back(dtype, member);
    std::vector<Bytes> vectors;
    for (Tensors& tensors : all) {
      const AdasumTournament own(tensors.pieces, dtype, kScale, members);
      vectors.emplace_back(own.vectorBytes());
      for (std::size_t i = 0; i < own.blocks(); ++i) own.fill(i, vectors.back().data());
    }
    AdasumTournament tournament(all[0].pieces, dtype, kScale, members);
    std::vector<std::byte*> places;
    for (Bytes& vector : vectors) places.push_back(vector.data());
    tournament.begin(places);
    while (!tournament.over()) {
      if (tournament.work() == 0) tournament.next();
    }
    EXPECT_EQ(tournament.work(), 0U);
    for (std::size_t i = 0; i < tournament.blocks(); ++i) tournament.empty(i, vectors[0].data());
    expectResult(all[0], dtype, members, "dtype " + std::to_string(static_cast<int>(dtype)));
  }
}

TEST_P(Tournament, OfATeamHasTheSameBitsWhoeverIsFirst) {
  const int members = GetParam();
  const DType dtype = DType::kFloat32;
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::vector<Tensors> all;
    std::deque<AdasumTournament> team;
    for (int member = 0; member < members; ++member) all.emplace_back(dtype, member);
    for (int member = 0; member < members; ++member) {
      team.emplace_back(all[static_cast<std::size_t>(member)].pieces, dtype, kScale, members,
                        member, members);
    }
    std::vector<Bytes> vectors(team.size(), Bytes(team[0].vectorBytes()));
    std::vector<Bytes> tables(team.size(), Bytes(team[0].tableBytes()));
    std::vector<std::byte*> places;
    std::vector<std::byte*> notes;
    for (std::size_t i = 0; i < team.size(); ++i) {
      for (std::size_t block = 0; block < team[i].blocks(); ++block) {
        team[i].fill(block, vectors[i].data());
      }
      places.push_back(vectors[i].data());
      notes.push_back(tables[i].data());
    }
    for (AdasumTournament& worker : team) worker.begin(places, notes);
    std::mt19937 random(seed);
    int phases = 0;
    for (; !team[0].over(); ++phases) {
      // In any order, until nobody has anything left.
      std::vector<std::size_t> busy(team.size());
      for (std::size_t i = 0; i < busy.size(); ++i) busy[i] = i;
      while (!busy.empty()) {
        const std::size_t which = random() % busy.size();
        if (team[busy[which]].work() == 0) busy.erase(busy.begin() + static_cast<long>(which));
      }
      for (AdasumTournament& worker : team) worker.next();
    }
    int levels = 0;
    while ((1 << levels) < members) ++levels;
    EXPECT_EQ(phases, 2 * levels);
    for (std::size_t i = 0; i < team.size(); ++i) {
      EXPECT_TRUE(team[i].over());
      for (std::size_t block = 0; block < team[i].blocks(); ++block) {
        team[i].empty(block, vectors[0].data());
      }
      expectResult(all[i], dtype, members, "member " + std::to_string(i));
    }
  }
}

TEST_P(Tournament, InGroupsHasTheSameBits) {
  const int members = GetParam();
  const DType dtype = DType::kFloat32;
  // One group, groups of several pieces, and one for each piece.
  for (const std::size_t groupBytes : {std::size_t{1} << 30, std::size_t{1000}, std::size_t{1}}) {
    std::vector<Tensors> all;
    std::deque<AdasumGroups> groups;
    for (int member = 0; member < members; ++member) all.emplace_back(dtype, member);
    for (int member = 0; member < members; ++member) {
      groups.emplace_back(all[static_cast<std::size_t>(member)].pieces, dtype, kScale, members,
                          member, groupBytes);
    }
    std::vector<Bytes> memory(groups.size());
    for (;;) {
      bool more = false;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        more = groups[i].next();
        if (!more) continue;
        memory[i].assign(groups[i].allBytes(), std::byte{0});
        groups[i].use(memory[i].data());
        Budget budget;
        EXPECT_TRUE(groups[i].fill(budget));
      }
      if (!more) break;
      // What an engine does.
      for (std::size_t from = 0; from < groups.size(); ++from) {
        for (std::size_t to = 0; to < groups.size(); ++to) {
          if (to == from || groups[from].vectorBytes() == 0) continue;
          const int source = static_cast<int>(from);
          std::memcpy(groups[to].vectorOf(source), groups[from].vectorOf(source),
                      groups[from].vectorBytes());
        }
      }
      for (AdasumGroups& each : groups) {
        int calls = 0;
        for (bool done = false; !done; ++calls) {
          ASSERT_LT(calls, 10'000);
          Budget budget;
          budget.charge(Budget::kBytes - 1);  // a block at a time is all it may do
          done = each.finish(budget);
        }
        EXPECT_TRUE(calls > 1 || each.vectorBytes() == 0);
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      expectResult(all[i], dtype, members, "member " + std::to_string(i));
    }
  }
}

TEST(TournamentRules, NothingIsOverAtOnce) {
  const collective::Piece none{nullptr, nullptr, 0};
  AdasumTournament tournament(std::span(&none, 1), DType::kFloat32, {}, 3);
  EXPECT_EQ(tournament.blocks(), 0U);
  std::byte unused{};
  tournament.begin({&unused, &unused, &unused});
  EXPECT_TRUE(tournament.over());
  EXPECT_EQ(tournament.work(), 0U);
  AdasumGroups groups({}, DType::kFloat32, {}, 3, 0, 1024);
  EXPECT_FALSE(groups.next());
}

TEST(TournamentRules, Weights) {
  const std::array<double, 3> orthogonal = {0.0, 2.0, 3.0};
  EXPECT_EQ(adasumWeights(orthogonal.data()).a, 1.0);
  EXPECT_EQ(adasumWeights(orthogonal.data()).b, 1.0);
  const std::array<double, 3> equal = {4.0, 4.0, 4.0};
  EXPECT_EQ(adasumWeights(equal.data()).a, 0.5);
  EXPECT_EQ(adasumWeights(equal.data()).b, 0.5);
  const std::array<double, 3> zero = {0.0, 0.0, 9.0};
  EXPECT_EQ(adasumWeights(zero.data()).a, 1.0);
  EXPECT_EQ(adasumWeights(zero.data()).b, 1.0);
}

}  // namespace
}  // namespace farandole::testing
