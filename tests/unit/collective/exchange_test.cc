// Who needs what in an exchange, and what comes of it. That the bytes are those of the kernels on
// all members is shown in conductor/ordered_operations_test.cc.
#include "collective/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace farandole::test {
namespace {

using collective::Exchange;

using ::testing::ElementsAre;

std::span<const std::byte> bytesOf(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

Exchange exchangeOf(Exchange::What what, std::int64_t elements, int members) {
  Exchange exchange;
  exchange.what = what;
  exchange.elements = elements;
  exchange.members = members;
  return exchange;
}

TEST(Exchange, SendsOnlyToThoseWhoNeedIt) {
  const Exchange sum = exchangeOf(Exchange::What::kAllreduce, 1, 4);
  EXPECT_EQ(sum.receiversOf(0), 0b1110U);
  EXPECT_EQ(sum.receiversOf(2), 0b1011U);
  Exchange broadcast = exchangeOf(Exchange::What::kBroadcast, 1, 4);
  broadcast.root = 2;
  EXPECT_EQ(broadcast.receiversOf(2), 0b1011U);
  EXPECT_EQ(broadcast.receiversOf(1), 0U);
  Exchange reduce = exchangeOf(Exchange::What::kReduce, 1, 4);
  reduce.root = 2;
  EXPECT_EQ(reduce.receiversOf(2), 0U);
  EXPECT_EQ(reduce.receiversOf(1), 0b0100U);
  EXPECT_EQ(exchangeOf(Exchange::What::kBarrier, 0, 4).receiversOf(1), 0U);
}

// What is sent is what is waited for: one member's view equals the other's, in the largest set too.
TEST(Exchange, BothSidesAgreeAboutEveryPair) {
  for (const auto what : {Exchange::What::kAllreduce, Exchange::What::kReduce,
                          Exchange::What::kBroadcast, Exchange::What::kBarrier}) {
    Exchange exchange = exchangeOf(what, 1, Exchange::kMostMembers);
    for (exchange.root = 0; exchange.root < exchange.members; ++exchange.root) {
      for (int from = 0; from < exchange.members; ++from) {
        for (int to = 0; to < exchange.members; ++to) {
          const bool sent = (exchange.receiversOf(from) >> to & 1) != 0;
          EXPECT_EQ(sent, from != to && exchange.needs(from, to)) << from << " to " << to;
        }
      }
    }
  }
}

TEST(Exchange, NamesTheMemberWhoseDataHasAnotherSize) {
  const Exchange sum = exchangeOf(Exchange::What::kAllreduce, 2, 3);
  const std::vector<float> two(2);
  const std::vector<float> three(3);
  std::array data = {bytesOf(two), bytesOf(two), bytesOf(two)};
  EXPECT_EQ(sum.wrongSize(data, 1), -1);
  data[2] = bytesOf(three);
  EXPECT_EQ(sum.wrongSize(data, 1), 2);
  EXPECT_EQ(sum.wrongSize(data, 2), -1);  // its own is what it is
  Exchange broadcast = exchangeOf(Exchange::What::kBroadcast, 2, 3);
  data = {bytesOf(two), {}, {}};
  EXPECT_EQ(broadcast.wrongSize(data, 1), -1);
  data[2] = bytesOf(two);  // nobody needs that
  EXPECT_EQ(broadcast.wrongSize(data, 1), 2);
}

TEST(Exchange, CombinesInPlaceWithScales) {
  Exchange average = exchangeOf(Exchange::What::kAllreduce, 2, 2);
  average.op = ReduceOp::kAverage;
  average.scale = {2.0, 10.0, 1};
  std::vector<float> mine = {1, 3};
  const std::vector<float> other = {5, 7};
  const std::array data = {bytesOf(mine), bytesOf(other)};
  average.combine(data, mine.data());
  EXPECT_THAT(mine, ElementsAre(60, 100));
}

TEST(Exchange, OfNothingTouchesNothing) {
  const Exchange sum = exchangeOf(Exchange::What::kAllreduce, 0, 2);
  const std::array<std::span<const std::byte>, 2> data = {};
  sum.combine(data, nullptr);
  EXPECT_EQ(sum.wrongSize(data, 0), -1);
}

TEST(Exchange, EveryKindSaysWhoHasAResult) {
  Exchange reduce = exchangeOf(Exchange::What::kReduce, 1, 3);
  reduce.root = 1;
  EXPECT_TRUE(reduce.hasResult(1));
  EXPECT_FALSE(reduce.hasResult(0));
  EXPECT_TRUE(exchangeOf(Exchange::What::kAllreduce, 1, 3).hasResult(2));
  EXPECT_TRUE(exchangeOf(Exchange::What::kBroadcast, 1, 3).hasResult(2));
  EXPECT_FALSE(exchangeOf(Exchange::What::kBarrier, 0, 3).hasResult(0));
}

}  // namespace
}  // namespace farandole::test
