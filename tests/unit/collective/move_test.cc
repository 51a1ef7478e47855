// Operations that only move data: allgather, broadcast, alltoall, gather, scatter, barrier.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "unit/collective/data.h"
#include "unit/collective/local_group.h"

namespace farandole::testing {
namespace move_test {

constexpr std::int64_t kCounts[] = {0, 1, 7, 64, 1000, 8191, 20000, 70000, 150001};
constexpr DType kDTypes[] = {DType::kUint8, DType::kFloat16, DType::kFloat32, DType::kComplex128};

class Move : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kCases = casesOf(40);
};

std::vector<std::int64_t> randomCounts(Dice& dice, int ranks) {
  std::vector<std::int64_t> counts;
  const bool equal = dice.coin();
  const std::int64_t one = dice.pick(kCounts);
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(equal ? one : dice.pick(kCounts));
  return counts;
}

// Memory that holds a copy of data, shared or not.
std::byte* place(GroupMember& member, const Bytes& data, bool shared) {
  auto* memory = static_cast<std::byte*>(member.memory(data.size() + 1, shared));
  if (!data.empty()) std::memcpy(memory, data.data(), data.size());
  return memory;
}

void release(GroupMember& member, void* memory, bool shared) {
  if (shared) {
    EXPECT_TRUE(member.neighbourhood().arena().free(memory));
  } else {
    std::free(memory);
  }
}

Bytes concatenation(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST_P(Move, AllgatherAndGather) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    Dice dice(11);
    for (int i = 0; i < kCases; ++i) {
      const DType dtype = dice.pick(kDTypes);
      const auto counts = randomCounts(dice, member.size());
      const std::uint64_t seed = dice.seed();
      const bool shared = dice.coin();
      const bool inPlace = dice.coin();
      const int root = static_cast<int>(dice.upTo(member.size() - 1));
      std::vector<Bytes> parts;
      std::size_t before = 0;
      for (int rank = 0; rank < member.size(); ++rank) {
        if (rank == member.rank()) before = concatenation(parts).size();
        parts.push_back(makeData(dtype, counts[static_cast<std::size_t>(rank)], seed, rank));
      }
      const Bytes expected = concatenation(parts);
      const Bytes& own = parts[static_cast<std::size_t>(member.rank())];
      std::byte* in = place(member, own, shared);
      std::byte* out = place(member, Bytes(expected.size(), std::byte{0x55}), shared);
      const void* from = in;
      if (inPlace && !own.empty()) {
        std::memcpy(out + before, own.data(), own.size());
        from = out + before;
      }
      Status status = member.wait(communicator->allgather(from, out, counts, dtype));
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(firstDifference(out, expected.data(), expected.size()), -1) << "allgather " << i;
      std::fill_n(out, expected.size(), std::byte{0x66});
      status = member.wait(communicator->gather(in, out, counts, dtype, root));
      ASSERT_TRUE(status.ok()) << status.message();
      const Bytes untouched(expected.size(), std::byte{0x66});
      const Bytes& wanted = member.rank() == root ? expected : untouched;
      ASSERT_EQ(firstDifference(out, wanted.data(), wanted.size()), -1) << "gather " << i;
      release(member, in, shared);
      release(member, out, shared);
    }
  });
}

TEST_P(Move, Broadcast) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    Dice dice(12);
    for (int i = 0; i < kCases; ++i) {
      const DType dtype = dice.pick(kDTypes);
      const int root = static_cast<int>(dice.upTo(member.size() - 1));
      const bool shared = dice.coin();
      const bool inPlace = dice.coin();
      const std::int64_t pieces = 1 + dice.upTo(4);
      std::vector<collective::Piece> list;
      std::vector<Bytes> expected;
      std::vector<std::byte*> memory;
      for (std::int64_t p = 0; p < pieces; ++p) {
        const std::int64_t count = dice.pick(kCounts);
        const std::uint64_t seed = dice.seed();
        expected.push_back(makeData(dtype, count, seed, root));
        std::byte* in = place(member, makeData(dtype, count, seed, member.rank()), shared);
        std::byte* out = inPlace ? in : place(member, Bytes(expected.back().size()), shared);
        list.push_back({in, out, count});
        memory.push_back(in);
        if (!inPlace) memory.push_back(out);
      }
      const Status status = member.wait(communicator->broadcast(list, dtype, root));
      ASSERT_TRUE(status.ok()) << status.message();
      for (std::size_t p = 0; p < list.size(); ++p) {
        ASSERT_EQ(firstDifference(list[p].out, expected[p].data(), expected[p].size()), -1) << i;
      }
      // Who sends may leave early: nobody's memory goes before everybody has read it.
      for (std::byte* one : memory) release(member, one, shared);
    }
  });
}

TEST_P(Move, Alltoall) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    Dice dice(13);
    const int ranks = member.size();
    const auto me = static_cast<std::size_t>(member.rank());
    for (int i = 0; i < kCases; ++i) {
      const DType dtype = dice.pick(kDTypes);
      const bool shared = dice.coin();
      std::vector<std::vector<std::int64_t>> counts;  // [from][to]
      for (int from = 0; from < ranks; ++from) counts.push_back(randomCounts(dice, ranks));
      const std::uint64_t seed = dice.seed();
      std::vector<Bytes> sent;
      std::vector<Bytes> received;
      std::vector<std::int64_t> receiveCounts;
      for (int other = 0; other < ranks; ++other) {
        const auto o = static_cast<std::size_t>(other);
        sent.push_back(makeData(dtype, counts[me][o], seed, member.rank() * ranks + other));
        received.push_back(makeData(dtype, counts[o][me], seed, other * ranks + member.rank()));
        receiveCounts.push_back(counts[o][me]);
      }
      const Bytes expected = concatenation(received);
      std::byte* in = place(member, concatenation(sent), shared);
      std::byte* out = place(member, Bytes(expected.size()), shared);
      const Status status =
          member.wait(communicator->alltoall(in, counts[me], out, receiveCounts, dtype));
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(firstDifference(out, expected.data(), expected.size()), -1) << i;
      release(member, in, shared);
      release(member, out, shared);
    }
  });
}

TEST_P(Move, Scatter) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    Dice dice(14);
    for (int i = 0; i < kCases; ++i) {
      const DType dtype = dice.pick(kDTypes);
      const auto counts = randomCounts(dice, member.size());
      const int root = static_cast<int>(dice.upTo(member.size() - 1));
      const bool shared = dice.coin();
      const std::uint64_t seed = dice.seed();
      std::vector<Bytes> parts;
      for (int rank = 0; rank < member.size(); ++rank) {
        parts.push_back(makeData(dtype, counts[static_cast<std::size_t>(rank)], seed, rank));
      }
      const Bytes& expected = parts[static_cast<std::size_t>(member.rank())];
      // Only the root has an input.
      std::byte* in = member.rank() == root ? place(member, concatenation(parts), shared) : nullptr;
      std::byte* out = place(member, Bytes(expected.size()), shared);
      const Status status = member.wait(communicator->scatter(in, out, counts, dtype, root));
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_EQ(firstDifference(out, expected.data(), expected.size()), -1) << i;
      if (in != nullptr) release(member, in, shared);
      release(member, out, shared);
    }
  });
}

TEST_P(Move, BarrierHoldsEverybodyBack) {
  runGroup(GetParam(), [](GroupMember& member) {
    auto communicator = member.world();
    // A counter in rank 0's memory, reached through the neighbourhood.
    std::uint64_t offset = 0;
    std::atomic<int>* counter = nullptr;
    if (member.rank() == 0) {
      counter = new (member.memory(64, true)) std::atomic<int>(0);
      offset = member.neighbourhood().offsetOf(counter);
    }
    const collective::Piece piece{&offset, &offset, 1};
    ASSERT_TRUE(member.wait(communicator->broadcast(std::span(&piece, 1), DType::kInt64, 0)).ok());
    counter = reinterpret_cast<std::atomic<int>*>(
        member.neighbourhood().at(0, offset, sizeof(std::atomic<int>)));
    ASSERT_NE(counter, nullptr);
    for (int round = 1; round <= 100; ++round) {
      counter->fetch_add(1);
      ASSERT_TRUE(member.wait(communicator->barrier()).ok());
      ASSERT_GE(counter->load(), round * member.size());
      ASSERT_TRUE(member.wait(communicator->barrier()).ok());
      ASSERT_LE(counter->load(), (round + 1) * member.size());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Move, ::testing::Values(1, 2, 3, 5, 8));

}  // namespace move_test
}  // namespace farandole::testing
