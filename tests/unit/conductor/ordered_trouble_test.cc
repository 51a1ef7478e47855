// Ordered operations on which members disagree, which no member answers, and messages that break
// the protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>

#include "conductor/ordered_operations.h"
#include "ordered_members.h"

namespace farandole::test {
namespace ordered_trouble_test {

using conductor::OrderedOperations;
using conductor::Request;
using control::encodeOrdered;
using control::encodeOrderedHead;
using control::Kind;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kOdd = 2;  // the member that is different
std::array<double, 8> memory = {};

conductor::EntryPtr usual(std::string name) {
  const auto entry = entryOf(Kind::kAllreduce, std::move(name), DType::kFloat32, 4, memory.data());
  entry->request.output = memory.data();
  return entry;
}

// All members fail it with one text, which is returned, and the next operation works.
std::string mismatchOf(int members, const std::string& name,
                       const std::function<void(Request&)>& change) {
  OrderedMembers group(members);
  for (int i = 0; i < members; ++i) {
    const auto entry = usual(name);
    if (i == kOdd) change(entry->request);
    group.submit(i, entry);
    group.submit(i, usual("next"));
  }
  std::set<std::string> texts;
  for (const auto& mine : group.settle(true)) {
    EXPECT_EQ(mine.size(), 2U);
    if (mine.size() != 2) return "";
    EXPECT_EQ(mine[0].status.code(), Code::kMismatch);
    EXPECT_EQ(mine[0].culprit, kOdd);
    texts.insert(mine[0].status.message());
    EXPECT_TRUE(mine[1].status.ok()) << mine[1].status.message();
  }
  EXPECT_TRUE(group.failure.ok()) << group.failure.message();
  EXPECT_EQ(texts.size(), 1U);
  return *texts.begin();
}

TEST(OrderedMismatch, IsToldToAllWithOneText) {
  for (const int members : {3, 4}) {
    const std::string others = members == 3 ? "rank 0, rank 1" : "rank 0, rank 1, rank 3";
    EXPECT_EQ(mismatchOf(members, "x", [](Request& r) { r.meta.dtype = DType::kInt64; }),
              "ranks disagree about 'x'; dtype: " + others + " has float32, rank 2 has int64");
    EXPECT_THAT(mismatchOf(members, "x",
                           [](Request& r) {
                             r.meta.shape = {2, 2};
                           }),
                HasSubstr("shape: " + others + " has [4], rank 2 has [2, 2]"));
    EXPECT_THAT(mismatchOf(members, "x", [](Request& r) { r.meta.op = ReduceOp::kMax; }),
                HasSubstr("op: " + others + " has sum, rank 2 has max"));
    EXPECT_THAT(mismatchOf(members, "x", [](Request& r) { r.meta.postscale = 0.5; }),
                HasSubstr("postscale"));
    EXPECT_THAT(mismatchOf(members, "x", [](Request& r) { r.meta.kind = Kind::kBroadcast; }),
                HasSubstr("operation: " + others + " has allreduce, rank 2 has broadcast"));
    EXPECT_THAT(mismatchOf(members, "x", [](Request& r) { r.name = "y"; }),
                HasSubstr("ordered operation 1 is 'x' on rank 0 and 'y' on rank 2"));
  }
}

TEST(OrderedMismatch, OfNamelessOnesIsTheSameTextEverywhereToo) {
  EXPECT_EQ(mismatchOf(3, "", [](Request& r) { r.meta.kind = Kind::kBarrier; }),
            "ranks disagree about 'ordered operation 1'; operation: rank 0, rank 1 has allreduce, "
            "rank 2 has barrier");
  EXPECT_THAT(mismatchOf(3, "", [](Request& r) { r.name = "y"; }), HasSubstr("'y' on rank 2"));
}

TEST(OrderedMismatch, IsNotWhatCannotMatter) {
  OrderedMembers group(2);
  for (int i = 0; i < 2; ++i) {
    const auto barrier = entryOf(Kind::kBarrier, "b", DType::kFloat32, 0, nullptr);
    barrier->request.meta.dtype = i == 0 ? DType::kFloat32 : DType::kInt64;
    group.submit(i, barrier);
    const auto entry = usual("x");
    entry->request.meta.root = i;
    group.submit(i, entry);
  }
  for (const auto& mine : group.settle()) {
    ASSERT_EQ(mine.size(), 2U);
    for (const auto& each : mine) EXPECT_TRUE(each.status.ok()) << each.status.message();
  }
}

TEST(OrderedLeaving, IsALossOnlyForWhatItsMemberDidNotSend) {
  OrderedMembers group(3);
  std::vector<OrderedOperations::Finished> finished;
  for (int i = 0; i < 3; ++i) group.submit(i, usual("with all"));
  group[1].channel().leave();
  group[1].channel().leave();  // once is enough
  EXPECT_EQ(group.underWay(1, 0), 2U);
  group.deliver(1, 0);
  EXPECT_EQ(group[0].channel().lostTo(), -1);  // its part of what is in flight is here
  group.deliver(2, 0);
  ASSERT_TRUE(group[0].step(finished).ok());
  EXPECT_EQ(finished.size(), 1U);
  EXPECT_EQ(group[0].channel().lostTo(), -1);  // nothing is in flight
  group.submit(0, usual("without it"));
  EXPECT_EQ(group[0].channel().lostTo(), 1);
  EXPECT_EQ(group[2].channel().lostTo(), -1);  // has not heard of it
}

TEST(OrderedStall, NamesWhoIsMissing) {
  OrderedMembers group(4);
  const TimePoint now = Clock::now();
  EXPECT_FALSE(group[0].stall(now, Duration::zero()));
  const auto entry = usual("late");
  entry->submitted = now - std::chrono::seconds(5);
  group.submit(0, entry);
  group.submit(2, usual("late"));
  group.deliver(2, 0);
  EXPECT_FALSE(group[0].stall(now, std::chrono::seconds(6)));
  const auto stall = group[0].stall(now, std::chrono::seconds(4));
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->name, "late");
  EXPECT_THAT(stall->missing, ElementsAre(1, 3));
  EXPECT_EQ(stall->age, std::chrono::seconds(5));
}

TEST(OrderedEnd, GivesBackEverythingUnderWay) {
  OrderedMembers group(2);
  std::vector<conductor::EntryPtr> submitted;
  for (int n = 0; n < 20; ++n) {
    submitted.push_back(usual(std::to_string(n)));
    group.submit(0, submitted.back());
  }
  EXPECT_EQ(group[0].takeAll(), submitted);
  EXPECT_FALSE(group[0].channel().busy());
  EXPECT_EQ(group[0].channel().lostTo(), -1);
  EXPECT_FALSE(group[0].stall(Clock::now(), Duration::zero()));
  // What arrives afterwards has no effect.
  group.submit(1, usual("0"));
  group.deliver(1, 0);
  std::vector<OrderedOperations::Finished> finished;
  EXPECT_TRUE(group[0].step(finished).ok());
  EXPECT_TRUE(finished.empty());
  EXPECT_TRUE(group[0].takeAll().empty());
}

TEST(OrderedEnd, DetachesBeforeItsMembersAreGone) {
  int detached = 0;
  {
    control::OrderedChannel::Options options;
    options.memberNames = {"rank 0", "rank 1"};
    options.detach = [&] { ++detached; };
    const OrderedOperations operations(std::move(options));
    EXPECT_EQ(detached, 0);
  }
  EXPECT_EQ(detached, 1);
}

std::string recordOf(std::uint64_t number, std::span<const std::byte> head,
                     std::span<const std::byte> payload) {
  return encodeOrdered({false, number, head, payload}, 0);
}

// Member 0 has submitted "x"; this comes from member 1.
Status statusAfter(const std::vector<std::string>& messages,
                   std::vector<OrderedOperations::Finished>& finished) {
  OrderedMembers group(2);
  group.submit(0, usual("x"));
  for (const auto& message : messages) group.put(1, 0, message);
  EXPECT_EQ(group.wakes[0], static_cast<int>(messages.size()));
  return group[0].step(finished);
}

TEST(OrderedNonsense, EndsWithAnErrorThatNamesItsSender) {
  const auto head = encodeOrderedHead("x", usual("x")->request.meta);
  const std::array<std::byte, 16> payload = {};
  const std::string good = recordOf(0, head, payload);
  const std::string leaves = encodeOrdered({true, 0, {}, {}}, 0);
  std::vector<OrderedOperations::Finished> finished;
  ASSERT_TRUE(statusAfter({good}, finished).ok());
  ASSERT_EQ(finished.size(), 1U);
  ASSERT_TRUE(finished[0].status.ok()) << finished[0].status.message();
  finished.clear();

  std::string longHead = good;
  longHead[9] = static_cast<char>(0xff);
  longHead[12] = static_cast<char>(0xff);
  std::string oddKind = good;
  oddKind[0] = 3;
  const std::string byName = encodeOrdered({false, 0, head, {}, true}, 0);
  const std::vector<std::vector<std::string>> all = {{""},
                                                     {good.substr(0, 12)},
                                                     {longHead},
                                                     {good, good},
                                                     {oddKind},
                                                     {leaves, good},
                                                     {leaves, leaves},
                                                     {leaves + "x"},
                                                     {byName + "x"},
                                                     {leaves, byName},
                                                     {recordOf(~0ULL, head, payload)}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Status status = statusAfter(all[i], finished);
    EXPECT_EQ(status.code(), Code::kInternal) << "messages " << i;
    EXPECT_THAT(status.message(), HasSubstr("rank 1")) << "messages " << i;
    EXPECT_TRUE(finished.empty());
  }

  // More than a member may have in flight.
  std::vector<std::string> flood;
  for (std::uint64_t n = 0; n < 40; ++n) flood.push_back(recordOf(n, head, payload));
  EXPECT_EQ(statusAfter(flood, finished).code(), Code::kInternal);
}

// No member sends more than such an operation may have; the limit depends on the number of members.
TEST(OrderedNonsense, ARecordLongerThanAnyIsRefused) {
  const auto head = encodeOrderedHead("x", usual("x")->request.meta);
  for (const auto& [members, most] :
       {std::pair<int, std::size_t>{2, 1 << 20}, std::pair<int, std::size_t>{4, (64 << 10) / 3}}) {
    for (const std::size_t more : {0, 1}) {
      OrderedMembers group(members);
      const std::vector<std::byte> payload(most + more);
      group.put(1, 0, recordOf(0, head, payload));
      std::vector<OrderedOperations::Finished> finished;
      EXPECT_EQ(group[0].step(finished).ok(), more == 0) << members << " members";
    }
  }
}

TEST(OrderedNonsense, InsideARecordFailsTheOperation) {
  const auto head = encodeOrderedHead("x", usual("x")->request.meta);
  const std::array<std::byte, 17> payload = {};
  for (const std::size_t bytes : {0, 1, 15, 17}) {
    std::vector<OrderedOperations::Finished> finished;
    ASSERT_TRUE(statusAfter({recordOf(0, head, std::span(payload).first(bytes))}, finished).ok());
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(finished[0].status.code(), Code::kInternal);
    EXPECT_EQ(finished[0].culprit, 1);
  }
  // These are all heads that are cut short.
  for (std::size_t bytes = 0; bytes < head.size(); ++bytes) {
    std::vector<OrderedOperations::Finished> finished;
    ASSERT_TRUE(
        statusAfter({recordOf(0, std::span(head).first(bytes), std::span(payload).first(16))},
                    finished)
            .ok());
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(finished[0].status.code(), Code::kInternal);
    EXPECT_THAT(finished[0].status.message(), HasSubstr("rank 1"));
    EXPECT_EQ(finished[0].culprit, 1);
  }
}

TEST(OrderedLeaving, NothingFollowsTheLastWord) {
  OrderedMembers group(2);
  float value = 1;
  group[0].channel().leave();
  ASSERT_EQ(group.underWay(0, 1), 1U);
  group.submit(0, entryOf(Kind::kAllreduce, "late", DType::kFloat32, 1, &value));
  EXPECT_EQ(group.underWay(0, 1), 1U);
  group.settle();
  EXPECT_TRUE(group.failure.ok()) << group.failure.message();
}

}  // namespace ordered_trouble_test
}  // namespace farandole::test
