// What is moved between machines, and reductions to one place: every operation but allreduce.
#include <gtest/gtest.h>

#include "unit/collective/link/link_group.h"

namespace farandole::testing {
namespace {

using Counts = std::vector<std::int64_t>;

std::size_t index(int member) { return static_cast<std::size_t>(member); }

// Uneven, with zeros; about `most` bytes each.
Counts uneven(int ranks, std::int64_t most) {
  Counts counts;
  for (int i = 0; i < ranks; ++i) counts.push_back(i % 3 == 1 ? 0 : most - i * (most / 16));
  return counts;
}
std::int64_t total(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}
std::int64_t before(const Counts& counts, int member) {
  return std::accumulate(counts.begin(), counts.begin() + member, std::int64_t{0});
}
Bytes part(const Bytes& data, std::int64_t begin, std::int64_t count) {
  return Bytes(data.begin() + begin, data.begin() + begin + count);
}

constexpr std::int64_t kSizes[] = {0, 1, 1000, 9000, 70000, 1500000};

class LinkMoves : public ::testing::TestWithParam<int> {
 protected:
  // Members in another order than the ranks.
  static std::unique_ptr<collective::Communicator> shuffled(LinkMember& member) {
    std::vector<int> members = everybody(member.size());
    std::reverse(members.begin(), members.end());
    return member.communicator(members, 3);
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, LinkMoves, ::testing::ValuesIn(rankCounts()));

TEST_P(LinkMoves, AllgatherAndGather) {
  LinkGroup group(GetParam());
  group.run([&](LinkMember& member) {
    auto communicator = shuffled(member);
    const int me = communicator->member();
    for (const std::int64_t size : kSizes) {
      const Counts counts = uneven(GetParam(), size / GetParam());
      const Bytes all = makeData(DType::kUint8, total(counts), 1, 0);
      const Bytes mine = part(all, before(counts, me), counts[index(me)]);
      Bytes out(all.size());
      ASSERT_TRUE(
          member.wait(communicator->allgather(mine.data(), out.data(), counts, DType::kUint8))
              .ok());
      ASSERT_TRUE(out == all) << size;
      const int root = static_cast<int>(size) % GetParam();
      Bytes gathered(me == root ? all.size() : 0);
      ASSERT_TRUE(
          member
              .wait(communicator->gather(mine.data(), me == root ? gathered.data() : nullptr,
                                         counts, DType::kUint8, root))
              .ok());
      if (me == root) {
        ASSERT_TRUE(gathered == all) << size;
      }
    }
  });
}

TEST_P(LinkMoves, ScatterAndBroadcast) {
  LinkGroup group(GetParam());
  group.run([&](LinkMember& member) {
    auto communicator = shuffled(member);
    const int me = communicator->member();
    int root = 0;
    for (const std::int64_t size : kSizes) {
      root = (root + 1) % GetParam();
      const Counts counts = uneven(GetParam(), size / GetParam());
      const Bytes all = makeData(DType::kUint8, total(counts), 2, 0);
      Bytes out(index(static_cast<int>(counts[index(me)])));
      ASSERT_TRUE(member
                      .wait(communicator->scatter(me == root ? all.data() : nullptr, out.data(),
                                                  counts, DType::kUint8, root))
                      .ok());
      ASSERT_TRUE(out == part(all, before(counts, me), counts[index(me)])) << size;

      // Three tensors: small, none, large; in place on half of the ranks.
      const std::int64_t sizes[] = {size / 100, 0, size};
      std::vector<Bytes> sent;
      std::vector<Bytes> in;
      std::vector<Bytes> places;
      for (const std::int64_t count : sizes) {
        sent.push_back(makeData(DType::kInt16, count, 3, 0));
        in.push_back(me == root ? sent.back() : Bytes(sent.back().size()));
        places.emplace_back(sent.back().size());
      }
      std::vector<collective::Piece> pieces;
      for (std::size_t i = 0; i < 3; ++i) {
        void* const out16 = me % 2 == 0 ? in[i].data() : places[i].data();
        pieces.push_back({in[i].data(), out16, sizes[i]});
      }
      ASSERT_TRUE(member.wait(communicator->broadcast(pieces, DType::kInt16, root)).ok());
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_TRUE((me % 2 == 0 ? in[i] : places[i]) == sent[i]) << size << " " << i;
      }
    }
  });
}

TEST_P(LinkMoves, Alltoall) {
  LinkGroup group(GetParam());
  const int ranks = GetParam();
  group.run([&](LinkMember& member) {
    auto communicator = shuffled(member);
    const int me = communicator->member();
    for (const std::int64_t size : kSizes) {
      const auto count = [&](int from, int to) {
        return (from * 3 + to) % 4 == 1 ? 0 : size / ranks + from - to + 8;
      };
      const auto message = [&](int from, int to) {
        return makeData(DType::kUint8, count(from, to), 4, from * 100 + to);
      };
      Counts outgoing;
      Counts incoming;
      Bytes in;
      Bytes expected;
      for (int other = 0; other < ranks; ++other) {
        outgoing.push_back(count(me, other));
        incoming.push_back(count(other, me));
        const Bytes there = message(me, other);
        const Bytes here = message(other, me);
        in.insert(in.end(), there.begin(), there.end());
        expected.insert(expected.end(), here.begin(), here.end());
      }
      Bytes out(expected.size());
      ASSERT_TRUE(member
                      .wait(communicator->alltoall(in.data(), outgoing, out.data(), incoming,
                                                   DType::kUint8))
                      .ok());
      ASSERT_TRUE(out == expected) << size;
    }
  });
}

TEST_P(LinkMoves, ReduceAndReducescatter) {
  const int ranks = GetParam();
  LinkGroup group(ranks);
  const std::int64_t sizes[] = {0, 3, 4000, 16384, 60000, 300000};
  std::vector<std::vector<Bytes>> inputs;
  std::vector<Bytes> expected;
  for (const std::int64_t size : sizes) {
    inputs.emplace_back();
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.back().push_back(makeData(DType::kFloat32, size, 5, rank));
    }
    expected.push_back(reduced(inputs.back(), size, DType::kFloat32, ReduceOp::kAverage, {}));
  }
  group.run([&](LinkMember& member) {
    auto communicator = member.world();
    const int me = communicator->member();
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
      const int root = static_cast<int>(i) % ranks;
      Bytes values = inputs[i][index(me)];
      const Bytes kept = values;
      Bytes out(values.size());
      const bool inPlace = i % 2 == 0;
      void* const place = inPlace ? values.data() : out.data();
      ASSERT_TRUE(
          member
              .wait(communicator->reduce(values.data(), me == root ? place : nullptr, sizes[i],
                                         DType::kFloat32, ReduceOp::kAverage, {}, root))
              .ok());
      if (me == root) {
        ASSERT_TRUE((inPlace ? values : out) == expected[i]) << sizes[i];
      } else {
        ASSERT_TRUE(values == kept) << sizes[i];
      }

      Counts counts = uneven(ranks, sizes[i] / ranks);
      counts.back() += sizes[i] - total(counts);
      Bytes slice(index(static_cast<int>(counts[index(me)])) * 4);
      ASSERT_TRUE(member
                      .wait(communicator->reducescatter(kept.data(), slice.data(), counts,
                                                        DType::kFloat32, ReduceOp::kAverage, {}))
                      .ok());
      const Bytes wanted = part(expected[i], 4 * before(counts, me), 4 * counts[index(me)]);
      ASSERT_TRUE(slice == wanted) << sizes[i];
      // To where the input begins, which is other members' part.
      Bytes both = kept;
      ASSERT_TRUE(member
                      .wait(communicator->reducescatter(both.data(), both.data(), counts,
                                                        DType::kFloat32, ReduceOp::kAverage, {}))
                      .ok());
      ASSERT_TRUE(part(both, 0, 4 * counts[index(me)]) == wanted) << sizes[i];
    }
  });
}

TEST_P(LinkMoves, NobodyLeavesABarrierBeforeAllHaveEntered) {
  LinkGroup group(GetParam());
  std::vector<std::atomic<int>> entered(8);
  group.run([&](LinkMember& member) {
    auto communicator = member.world();
    for (int round = 1; round <= 30; ++round) {
      entered[index(member.rank())] = round;
      ASSERT_TRUE(member.wait(communicator->barrier()).ok());
      for (int other = 0; other < GetParam(); ++other) ASSERT_GE(entered[index(other)], round);
    }
  });
}

}  // namespace
}  // namespace farandole::testing
