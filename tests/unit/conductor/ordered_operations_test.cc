// Ordered operations get their results, whatever the order in which messages arrive.
#include "conductor/ordered_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "base/reduce.h"
#include "ordered_members.h"

namespace farandole::test {
namespace {

using conductor::OrderedOperations;
using control::Kind;

using ::testing::Each;
using ::testing::ElementsAre;
using Bytes = std::vector<unsigned char>;

// Values that are rounded, and differ in the order of their sum.
Bytes dataOf(DType dtype, std::int64_t count, int member) {
  Bytes bytes(static_cast<std::size_t>(count) * sizeOf(dtype));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i) * sizeOf(dtype);
    const float value =
        static_cast<float>((member + 1) * (i + 3)) * 0.37F * (i % 3 == 0 ? 1e6F : 1);
    const std::int64_t whole = (member + 1) * 1'000'003LL * (i - 5);
    if (dtype == DType::kInt64) std::memcpy(&bytes[at], &whole, sizeof whole);
    if (dtype == DType::kFloat32) std::memcpy(&bytes[at], &value, sizeof value);
    // A bfloat16 is the upper half of a float32.
    if (dtype == DType::kBfloat16) {
      std::memcpy(&bytes[at], reinterpret_cast<const char*>(&value) + 2, 2);
    }
  }
  return bytes;
}

Bytes reference(const std::vector<Bytes>& inputs, DType dtype, std::int64_t count, ReduceOp op) {
  Bytes result(inputs[0].size());
  std::vector<const void*> sources;
  for (const auto& input : inputs) sources.push_back(input.data());
  void* const destination = result.data();
  const Scale scale{1, 1, op == ReduceOp::kAverage ? static_cast<std::int64_t>(inputs.size()) : 1};
  const FpModeGuard guard;
  reduce(std::span(&destination, 1), sources, count, dtype,
         op == ReduceOp::kAverage ? ReduceOp::kSum : op, scale, Store::kStreaming);
  return result;
}

void expectOk(const std::vector<std::vector<OrderedOperations::Finished>>& all, std::size_t count) {
  for (std::size_t member = 0; member < all.size(); ++member) {
    EXPECT_EQ(all[member].size(), count) << "member " << member;
    for (const auto& each : all[member]) EXPECT_TRUE(each.status.ok()) << each.status.message();
  }
}

class OrderedAllreduce : public ::testing::TestWithParam<std::tuple<int, DType, ReduceOp>> {};

TEST_P(OrderedAllreduce, HasTheBytesOfTheKernelsOnAllMembers) {
  const auto [members, dtype, op] = GetParam();
  for (const std::int64_t count : {1, 77, 1000}) {
    std::vector<Bytes> inputs;
    for (int i = 0; i < members; ++i) inputs.push_back(dataOf(dtype, count, i));
    const Bytes expected = reference(inputs, dtype, count, op);
    OrderedMembers group(members);
    std::vector<Bytes> inPlace = inputs;
    std::vector<Bytes> apart(inputs.size(), Bytes(expected.size(), 0xee));
    std::vector<Bytes> allocated(inputs.size());
    std::vector<conductor::EntryPtr> owned;
    for (int i = 0; i < members; ++i) {
      const auto at = static_cast<std::size_t>(i);
      std::array<conductor::EntryPtr, 4> entries = {
          entryOf(Kind::kAllreduce, "in place", dtype, count, inPlace[at].data()),
          entryOf(Kind::kAllreduce, "apart", dtype, count, inputs[at].data()),
          entryOf(Kind::kAllreduce, "allocated", dtype, count, inputs[at].data()),
          entryOf(Kind::kAllreduce, "owned", dtype, count, inputs[at].data())};
      entries[0]->request.output = inPlace[at].data();
      entries[1]->request.output = apart[at].data();
      entries[2]->request.allocate = [&memory = allocated[at], count = count](
                                         std::size_t bytes,
                                         const std::vector<std::int64_t>& shape) {
        EXPECT_THAT(shape, ElementsAre(count));
        memory.resize(bytes);
        return static_cast<void*>(memory.data());
      };
      owned.push_back(entries[3]);
      for (const auto& entry : entries) {
        entry->request.meta.op = op;
        group.submit(i, entry);
      }
    }
    expectOk(group.settle(members == 4), 4);
    EXPECT_TRUE(group.failure.ok());
    EXPECT_THAT(inPlace, Each(expected));
    EXPECT_THAT(apart, Each(expected));
    EXPECT_THAT(allocated, Each(expected));
    for (const auto& entry : owned) {
      ASSERT_EQ(entry->outcome.bytes, expected.size());
      EXPECT_EQ(std::memcmp(entry->outcome.data, expected.data(), expected.size()), 0);
      EXPECT_EQ(entry->outcome.owned.get(), entry->outcome.data);
      EXPECT_THAT(entry->outcome.shape, ElementsAre(count));
    }
    for (int i = 0; i < members; ++i) EXPECT_FALSE(group[i].channel().busy());
  }
}
INSTANTIATE_TEST_SUITE_P(
    Of, OrderedAllreduce,
    ::testing::Combine(::testing::Values(2, 4),
                       ::testing::Values(DType::kFloat32, DType::kInt64, DType::kBfloat16),
                       ::testing::Values(ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax)));

TEST(OrderedOperations, BroadcastsReducesAndMeets) {
  constexpr int kSize = 4;
  constexpr std::int64_t kCount = 9;
  for (int root = 0; root < kSize; ++root) {
    OrderedMembers group(kSize);
    std::vector<Bytes> inputs;
    for (int i = 0; i < kSize; ++i) inputs.push_back(dataOf(DType::kFloat32, kCount, i));
    std::vector<Bytes> told(kSize, Bytes(inputs[0].size(), 0xee));
    std::vector<Bytes> reduced = told;
    const Bytes untouched = told[0];
    for (int i = kSize - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      // Only the root has data.
      const auto broadcast = entryOf(Kind::kBroadcast, "", DType::kFloat32, kCount,
                                     i == root ? inputs[at].data() : nullptr);
      broadcast->request.meta.root = root;
      broadcast->request.output = told[at].data();
      const auto reduce = entryOf(Kind::kReduce, "r", DType::kFloat32, kCount, inputs[at].data());
      reduce->request.meta.root = root;
      reduce->request.output = reduced[at].data();
      group.submit(i, broadcast);
      group.submit(i, reduce);
      group.submit(i, entryOf(Kind::kBarrier, "", DType::kFloat32, 0, nullptr));
    }
    // The data goes only to the members that need it.
    EXPECT_LT(group.first((root + 1) % kSize, root).size(),
              group.first(root, (root + 1) % kSize).size());
    expectOk(group.settle(), 3);
    EXPECT_THAT(told, Each(inputs[static_cast<std::size_t>(root)]));
    for (int i = 0; i < kSize; ++i) {
      EXPECT_EQ(reduced[static_cast<std::size_t>(i)],
                i == root ? reference(inputs, DType::kFloat32, kCount, ReduceOp::kSum) : untouched);
    }
  }
}

TEST(OrderedOperations, BroadcastInPlaceAndOfNothing) {
  OrderedMembers group(2);
  std::array<std::int64_t, 2> values = {7, 8};
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto entry = entryOf(Kind::kBroadcast, "b", DType::kInt64, 1, &values[at]);
    entry->request.output = &values[at];
    entry->request.meta.root = 1;
    group.submit(i, entry);
    group.submit(i, entryOf(Kind::kAllreduce, "nothing", DType::kInt64, 0, nullptr));
  }
  expectOk(group.settle(), 2);
  EXPECT_THAT(values, Each(8));
}

TEST(OrderedOperations, NobodyWaitsForMoreThanTheBarrierNeeds) {
  OrderedMembers group(3);
  std::vector<OrderedOperations::Finished> finished;
  for (int i = 0; i < 3; ++i) {
    group.submit(i, entryOf(Kind::kBarrier, "", DType::kFloat32, 0, nullptr));
  }
  group.deliver(1, 0);
  ASSERT_TRUE(group[0].step(finished).ok());
  EXPECT_TRUE(finished.empty());
  EXPECT_TRUE(group[0].channel().busy());
  group.deliver(2, 0);
  EXPECT_EQ(group.wakes[0], 2);
  ASSERT_TRUE(group[0].step(finished).ok());
  EXPECT_EQ(finished.size(), 1U);  // although nobody else has heard of anything
  EXPECT_FALSE(group[0].channel().busy());
}

TEST(OrderedOperations, SendsNoMoreThanItsWindowAhead) {
  constexpr std::size_t kWindow = 16;
  constexpr int kOperations = 100;
  OrderedMembers group(3);
  std::vector<std::vector<float>> values(3, std::vector<float>(kOperations));
  for (int i = 0; i < 3; ++i) {
    for (int n = 0; n < kOperations; ++n) {
      float& value = values[static_cast<std::size_t>(i)][static_cast<std::size_t>(n)];
      value = static_cast<float>(n * (i + 1));
      const auto entry = entryOf(Kind::kAllreduce, "", DType::kFloat32, 1, &value);
      entry->request.output = &value;
      group.submit(i, entry);
    }
    EXPECT_EQ(group.underWay(i, (i + 1) % 3), kWindow);
  }
  // Member 2 receives nothing for long, so the others stop where it does.
  std::vector<OrderedOperations::Finished> finished;
  for (int round = 0; round < 10; ++round) {
    for (const auto& [from, to] : {std::pair(0, 1), {1, 0}, {2, 0}, {2, 1}})
      group.deliver(from, to);
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(group[i].step(finished).ok());
  }
  EXPECT_EQ(finished.size(), 2 * kWindow);
  EXPECT_EQ(group.underWay(0, 2), 2 * kWindow);
  // The most that can wait for a member does not break the protocol.
  const auto all = group.settle();
  EXPECT_TRUE(group.failure.ok()) << group.failure.message();
  EXPECT_EQ(all[2].size(), static_cast<std::size_t>(kOperations));
  for (int n = 0; n < kOperations; ++n) {
    EXPECT_EQ(all[2][static_cast<std::size_t>(n)].entry->place, static_cast<unsigned>(n));
    for (const auto& mine : values) EXPECT_EQ(mine[static_cast<std::size_t>(n)], 6.0F * n);
  }
}

TEST(OrderedOperations, ResultsMayBeAllocatedByOneWhoSubmits) {
  // An allocator may need what another thread holds while it submits, so it is called without
  // locks.
  OrderedMembers group(2);
  std::array<float, 2> values = {1, 2};
  std::array<float, 2> results = {};
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto entry = entryOf(Kind::kAllreduce, "a", DType::kFloat32, 1, &values[at]);
    entry->request.allocate = [&, i, at](std::size_t, const std::vector<std::int64_t>&) {
      group.submit(i, entryOf(Kind::kBarrier, "later", DType::kFloat32, 0, nullptr));
      return static_cast<void*>(&results[at]);
    };
    group.submit(i, entry);
  }
  expectOk(group.settle(), 2);
  EXPECT_THAT(results, Each(3.0F));
}

TEST(OrderedOperations, ReportsAnAllocatorThatGivesNothing) {
  OrderedMembers group(2);
  float value = 1;
  for (int i = 0; i < 2; ++i) {
    const auto entry = entryOf(Kind::kAllreduce, "a", DType::kFloat32, 1, &value);
    entry->request.allocate = [](std::size_t, const std::vector<std::int64_t>&) -> void* {
      return nullptr;
    };
    group.submit(i, entry);
  }
  for (const auto& mine : group.settle()) {
    ASSERT_EQ(mine.size(), 1U);
    EXPECT_EQ(mine[0].status.code(), Code::kOutOfMemory);
  }
}

// Only so much waits for a member that is late.
TEST(OrderedOperations, SendsOnlySoManyBytesAhead) {
  constexpr std::int64_t kBytes = 1 << 20;
  constexpr int kOperations = 7;
  OrderedMembers group(2);
  std::vector<std::vector<Bytes>> data(2);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < kOperations; ++k) {
      auto& bytes = data[static_cast<std::size_t>(i)].emplace_back(
          static_cast<std::size_t>(kBytes), static_cast<unsigned char>(k + 1));
      auto entry = entryOf(Kind::kAllreduce, "", DType::kUint8, kBytes, bytes.data());
      entry->request.output = bytes.data();
      group.submit(i, entry);
    }
    EXPECT_EQ(group.underWay(i, 1 - i), 4U);
  }
  expectOk(group.settle(), kOperations);
  for (const auto& all : data) {
    for (int k = 0; k < kOperations; ++k) {
      // Not Each(): a matcher for each of 14 million bytes takes seconds.
      const Bytes expected(static_cast<std::size_t>(kBytes),
                           static_cast<unsigned char>(2 * (k + 1)));
      EXPECT_TRUE(all[static_cast<std::size_t>(k)] == expected) << k;
    }
  }
}

TEST(OrderedOperations, TakesWhatIsSmallAndEverybodyNeeds) {
  const auto takes = [](Kind kind, std::int64_t bytes, int members) {
    const auto entry = entryOf(kind, "", DType::kUint8, bytes, nullptr);
    return OrderedOperations::exchangeOf(entry->request.meta, members).has_value();
  };
  for (const Kind kind : {Kind::kAllreduce, Kind::kBroadcast, Kind::kReduce}) {
    EXPECT_TRUE(takes(kind, 1 << 20, 2));
    EXPECT_FALSE(takes(kind, (1 << 20) + 1, 2));
    EXPECT_TRUE(takes(kind, (64 << 10) / 3, 4));
    EXPECT_FALSE(takes(kind, (64 << 10) / 3 + 1, 4));
    EXPECT_TRUE(takes(kind, 0, 16));
    EXPECT_FALSE(takes(kind, 1, 1));
    EXPECT_FALSE(takes(kind, 1, 17));
    // Fifteen times this does not fit into 63 bits.
    EXPECT_FALSE(takes(kind, std::numeric_limits<std::int64_t>::max() / 8 + 2, 9));
    EXPECT_FALSE(takes(kind, std::numeric_limits<std::int64_t>::max(), 16));
  }
  EXPECT_TRUE(takes(Kind::kBarrier, 0, 16));
  for (const Kind kind : {Kind::kAllgather, Kind::kAlltoall, Kind::kReducescatter, Kind::kGather,
                          Kind::kScatter, Kind::kJoin, Kind::kSend, Kind::kReceive}) {
    EXPECT_FALSE(takes(kind, 1, 2)) << control::name(kind);
  }
  control::Meta meta = entryOf(Kind::kAllreduce, "", DType::kFloat32, 1, nullptr)->request.meta;
  meta.group = 3;
  EXPECT_FALSE(OrderedOperations::exchangeOf(meta, 2));
  meta.group = 0;
  meta.op = ReduceOp::kAdasum;
  EXPECT_FALSE(OrderedOperations::exchangeOf(meta, 2));
}

}  // namespace
}  // namespace farandole::test
