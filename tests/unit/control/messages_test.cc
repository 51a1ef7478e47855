#include "control/messages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "control/ordered_record.h"

namespace farandole::control {
namespace messages_test {

constexpr int kMembers = 2;

Meta someMeta() {
  Meta meta;
  meta.kind = Kind::kReducescatter;
  meta.dtype = DType::kBfloat16;
  meta.op = ReduceOp::kMax;
  meta.prescale = 0.5;
  meta.postscale = -2;
  meta.group = 99;
  meta.groupSize = 4;
  meta.shape = {4, 0, 7};
  meta.splits = {1, 3};
  return meta;
}

void expectEqual(const Meta& a, const Meta& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.root, b.root);
  EXPECT_EQ(a.prescale, b.prescale);
  EXPECT_EQ(a.postscale, b.postscale);
  EXPECT_EQ(a.group, b.group);
  EXPECT_EQ(a.groupSize, b.groupSize);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(a.splits, b.splits);
}

TEST(Messages, SubmissionsSurviveTheirByteForm) {
  const auto announce =
      decodeSubmission(encode(Submission(Announce{"grad/ü", someMeta(), true})), kMembers);
  ASSERT_TRUE(announce);
  ASSERT_TRUE(std::holds_alternative<Announce>(*announce));
  EXPECT_EQ(std::get<Announce>(*announce).name, "grad/ü");
  EXPECT_TRUE(std::get<Announce>(*announce).shared);
  expectEqual(std::get<Announce>(*announce).meta, someMeta());

  const auto repeat = decodeSubmission(encode(Submission(Repeat{{5, 9}, false})), kMembers);
  ASSERT_TRUE(repeat);
  EXPECT_EQ(std::get<Repeat>(*repeat).plan, (PlanId{5, 9}));
  EXPECT_TRUE(
      std::holds_alternative<Join>(*decodeSubmission(encode(Submission(Join{})), kMembers)));
  EXPECT_EQ(std::get<Withdraw>(*decodeSubmission(encode(Submission(Withdraw{"x"})), kMembers)).name,
            "x");
  const auto retract =
      std::get<Retract>(*decodeSubmission(encode(Submission(Retract{"r", true})), kMembers));
  EXPECT_EQ(retract.name, "r");
  EXPECT_TRUE(retract.shared);
}

TEST(Messages, LogEntriesSurviveTheirByteForm) {
  const auto define = decodeLogEntry(encode(LogEntry(Define{{1, 2}, "n", someMeta()})), kMembers);
  ASSERT_TRUE(define);
  expectEqual(std::get<Define>(*define).meta, someMeta());
  const auto batch = decodeLogEntry(encode(LogEntry(Batch{{{1, 2}, {3, 4}}, {1}})), kMembers);
  ASSERT_TRUE(batch);
  EXPECT_EQ(std::get<Batch>(*batch).plans.size(), 2u);
  EXPECT_EQ(std::get<Batch>(*batch).joined, (std::vector<std::int64_t>{1}));
  const auto refuse = decodeLogEntry(encode(LogEntry(Refuse{"n", "because", 1, {0, 1}})), kMembers);
  ASSERT_TRUE(refuse);
  EXPECT_EQ(std::get<Refuse>(*refuse).text, "because");
  EXPECT_EQ(std::get<Refuse>(*refuse).spared, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(std::get<Joined>(*decodeLogEntry(encode(LogEntry(Joined{1})), kMembers)).last, 1);
  EXPECT_EQ(std::get<Resend>(*decodeLogEntry(encode(LogEntry(Resend{1, {2, 3}})), kMembers)).member,
            1);
  EXPECT_EQ(
      std::get<Withdrawn>(*decodeLogEntry(encode(LogEntry(Withdrawn{1, "w"})), kMembers)).name,
      "w");
  EXPECT_EQ(std::get<Abort>(*decodeLogEntry(encode(LogEntry(Abort{"a", 0})), kMembers)).text, "a");
}

TEST(Messages, RefusesTruncatedAndPaddedBytes) {
  const auto whole = encode(Submission(Announce{"name", someMeta(), false}));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(decodeSubmission(std::span(whole).first(bytes), kMembers)) << bytes;
  }
  auto padded = whole;
  padded.push_back(std::byte{0});
  EXPECT_FALSE(decodeSubmission(padded, kMembers));
}

TEST(Messages, RefusesAShapeWhoseSizeOverflows) {
  Meta meta;
  meta.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_FALSE(decodeSubmission(encode(Submission(Announce{"n", meta, false})), kMembers));
  meta.shape = {-1};
  EXPECT_FALSE(decodeSubmission(encode(Submission(Announce{"n", meta, false})), kMembers));
}

TEST(Messages, AFlagHasOneForm) {
  auto bytes = encode(Submission(Repeat{{1, 2}, true}));
  ASSERT_TRUE(decodeSubmission(bytes, kMembers).has_value());
  bytes.back() = std::byte{2};
  EXPECT_FALSE(decodeSubmission(bytes, kMembers).has_value());
}

bool accepted(const Submission& submission) {
  return decodeSubmission(encode(submission), kMembers).has_value();
}
bool accepted(const LogEntry& entry) { return decodeLogEntry(encode(entry), kMembers).has_value(); }

TEST(Messages, RefuseWhatNobodySends) {
  EXPECT_FALSE(accepted(Submission(Announce{"", someMeta(), false})));
  EXPECT_FALSE(accepted(Submission(Withdraw{""})));
  EXPECT_FALSE(accepted(Submission(Retract{"", false})));
  EXPECT_FALSE(accepted(Submission(Repeat{{kMaxPlans, 1}, false})));
  EXPECT_TRUE(accepted(Submission(Repeat{{kMaxPlans - 1, 1}, false})));
  EXPECT_FALSE(accepted(LogEntry(Define{{kMaxPlans, 1}, "n", someMeta()})));
  EXPECT_FALSE(accepted(LogEntry(Define{{1, 1}, "", someMeta()})));
  EXPECT_FALSE(accepted(LogEntry(Batch{{}, {}})));
  EXPECT_FALSE(accepted(LogEntry(Batch{{{kMaxPlans, 1}}, {}})));
  EXPECT_FALSE(accepted(LogEntry(Refuse{"", "text", 0, {}})));
  EXPECT_FALSE(accepted(LogEntry(Refuse{"n", "text", kMembers, {}})));
  EXPECT_FALSE(accepted(LogEntry(Refuse{"n", "text", -2, {}})));
  EXPECT_TRUE(accepted(LogEntry(Refuse{"n", "text", -1, {}})));
  EXPECT_FALSE(accepted(LogEntry(Refuse{"n", "text", 0, {1, 0}})));
  for (const int member : {-1, kMembers}) {
    EXPECT_FALSE(accepted(LogEntry(Joined{member})));
    EXPECT_FALSE(accepted(LogEntry(Resend{member, {1, 2}})));
    EXPECT_FALSE(accepted(LogEntry(Withdrawn{member, "n"})));
  }
  EXPECT_FALSE(accepted(LogEntry(Resend{0, {kMaxPlans, 2}})));
  EXPECT_FALSE(accepted(LogEntry(Withdrawn{0, ""})));
  EXPECT_FALSE(accepted(LogEntry(Abort{"text", kMembers})));
}

TEST(Messages, OfMembersThatHaveJoinedNameEachOnceAndNotAll) {
  const std::vector<PlanId> plans = {{1, 2}};
  EXPECT_TRUE(accepted(LogEntry(Batch{plans, {}})));
  EXPECT_TRUE(accepted(LogEntry(Batch{plans, {0}})));
  EXPECT_TRUE(accepted(LogEntry(Batch{plans, {1}})));
  for (const std::vector<std::int64_t>& joined : std::vector<std::vector<std::int64_t>>{
           {0, 0}, {1, 1, 1}, {1, 0}, {-1}, {2}, {std::int64_t{1} << 40}, {0, 1}}) {
    EXPECT_FALSE(accepted(LogEntry(Batch{plans, joined}))) << ::testing::PrintToString(joined);
  }
}

// Each case has one field of a meta that no caller can have passed.
struct WrongField {
  const char* name;
  std::function<void(Meta&)> spoil;
};
class WrongFields : public ::testing::TestWithParam<WrongField> {};
TEST_P(WrongFields, AreRefusedInSubmissionsAndInTheLog) {
  Meta meta = someMeta();
  ASSERT_EQ(objection(meta, kMembers), std::nullopt);
  GetParam().spoil(meta);
  EXPECT_NE(objection(meta, kMembers), std::nullopt);
  EXPECT_FALSE(accepted(Submission(Announce{"n", meta, false})));
  EXPECT_FALSE(accepted(LogEntry(Define{{1, 2}, "n", meta})));
  EXPECT_FALSE(decodeOrderedHead(encodeOrderedHead("n", meta), kMembers));
}
Meta of(Kind kind) {
  Meta meta;
  meta.kind = kind;
  return meta;
}
INSTANTIATE_TEST_SUITE_P(
    Of, WrongFields,
    ::testing::Values(WrongField{"BitsOfFloats", [](Meta& m) { m.op = ReduceOp::kBand; }},
                      WrongField{"LargestOfComplex", [](Meta& m) { m.dtype = DType::kComplex64; }},
                      WrongField{"AdasumOfIntegers",
                                 [](Meta& m) {
                                   m = of(Kind::kAllreduce);
                                   m.op = ReduceOp::kAdasum;
                                   m.dtype = DType::kInt32;
                                 }},
                      WrongField{"AdasumInParts", [](Meta& m) { m.op = ReduceOp::kAdasum; }},
                      WrongField{"NotANumber", [](Meta& m) { m.prescale = std::nan(""); }},
                      WrongField{"Infinite", [](Meta& m) { m.postscale = HUGE_VAL; }},
                      WrongField{"ScaledBool", [](Meta& m) { m.dtype = DType::kBool; }},
                      WrongField{"RootBeyondTheMembers",
                                 [](Meta& m) {
                                   m = of(Kind::kBroadcast);
                                   m.root = kMembers;
                                 }},
                      WrongField{"RootBeforeTheMembers",
                                 [](Meta& m) {
                                   m = of(Kind::kGather);
                                   m.root = -1;
                                 }},
                      WrongField{"RootOfNothing", [](Meta& m) { m.root = kMembers; }},
                      WrongField{"NegativeDimension", [](Meta& m) { m.shape = {-4}; }},
                      WrongField{"TooFewSplits", [](Meta& m) { m.splits = {4}; }},
                      WrongField{"NegativeSplits",
                                 [](Meta& m) {
                                   m.splits = {-1, 5};
                                 }},
                      WrongField{"SplitsOfFewerRows",
                                 [](Meta& m) {
                                   m.splits = {1, 2};
                                 }},
                      WrongField{"SplitsOfMoreRows",
                                 [](Meta& m) {
                                   m.splits = {1, INT64_MAX};
                                 }},
                      WrongField{"SplitsOfAnAlltoall",
                                 [](Meta& m) {
                                   m = of(Kind::kAlltoall);
                                   m.shape = {4};
                                   m.splits = {1, 3};
                                 }},
                      WrongField{"GroupOfNone", [](Meta& m) { m.groupSize = 0; }},
                      WrongField{"GroupOfLessThanNone", [](Meta& m) { m.groupSize = -1; }},
                      WrongField{"GroupWithoutAName", [](Meta& m) { m.group = 0; }}),
    [](const auto& each) { return std::string(each.param.name); });

// Callers may pass these kinds, but they do not go to a sequencer.
TEST(Messages, HaveNoMetaOfWhatIsNotAgreedUpon) {
  for (const Kind kind : {Kind::kJoin, Kind::kSend, Kind::kReceive}) {
    EXPECT_EQ(objection(of(kind), kMembers), std::nullopt);
    EXPECT_FALSE(accepted(Submission(Announce{"n", of(kind), false})));
  }
  EXPECT_FALSE(accepted(Submission(Announce{"n", of(static_cast<Kind>(-1)), false})));
  EXPECT_FALSE(accepted(Submission(Announce{"n", of(static_cast<Kind>(kKindCount)), false})));
}

TEST(Meta, RunsWithoutMembersOnlyWhereTheyBringNeutralElements) {
  const std::vector<std::int64_t> joined = {1};
  EXPECT_TRUE(runsWithout(of(Kind::kAllreduce), joined));
  EXPECT_TRUE(runsWithout(of(Kind::kAllgather), joined));
  EXPECT_TRUE(runsWithout(of(Kind::kBarrier), joined));
  Meta broadcast = of(Kind::kBroadcast);
  EXPECT_TRUE(runsWithout(broadcast, joined));
  broadcast.root = 1;
  EXPECT_FALSE(runsWithout(broadcast, joined));
  for (const Kind kind :
       {Kind::kAlltoall, Kind::kReducescatter, Kind::kReduce, Kind::kGather, Kind::kScatter}) {
    EXPECT_FALSE(runsWithout(of(kind), joined)) << name(kind);
    EXPECT_TRUE(runsWithout(of(kind), {})) << name(kind);
  }
}

// Every message has one form: whatever is accepted encodes to the same bytes. Messages of every
// kind are altered in a few places, so that a good part of them makes sense.
TEST(Messages, WhatIsAcceptedHasOneForm) {
  const std::vector<std::vector<std::byte>> originals = {
      encode(Submission(Announce{"grad", someMeta(), true})),
      encode(Submission(Repeat{{5, 9}, false})),
      encode(Submission(Join{})),
      encode(Submission(Withdraw{"grad"})),
      encode(Submission(Retract{"grad", true})),
      encode(LogEntry(Define{{1, 2}, "grad", someMeta()})),
      encode(LogEntry(Batch{{{1, 2}, {3, 4}}, {1}})),
      encode(LogEntry(Refuse{"grad", "because", 1, {0, 1}})),
      encode(LogEntry(Joined{1})),
      encode(LogEntry(Resend{1, {2, 3}})),
      encode(LogEntry(Withdrawn{1, "grad"})),
      encode(LogEntry(Abort{"text", 0}))};
  std::mt19937_64 random(3);
  int accepted = 0;
  int refused = 0;
  const auto judge = [&](const auto& message, const std::vector<std::byte>& bytes) {
    ++(message ? accepted : refused);
    if (message) {
      EXPECT_EQ(encode(*message), bytes);
    }
  };
  for (int i = 0; i < 50000 && !::testing::Test::HasFailure(); ++i) {
    std::vector<std::byte> bytes = originals[random() % originals.size()];
    for (auto changes = random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % (bytes.size() + 1);
      if (at == bytes.size()) {
        bytes.resize(random() % 100);
      } else {
        // Small numbers are the interesting ones.
        bytes[at] = static_cast<std::byte>(random() % 2 == 0 ? random() % 8 : random());
      }
      if (bytes.empty()) break;
    }
    judge(decodeSubmission(bytes, kMembers), bytes);
    judge(decodeLogEntry(bytes, kMembers), bytes);
  }
  EXPECT_GT(accepted, 10000);
  EXPECT_GT(refused, 10000);
}

TEST(Meta, DifferenceShowsBothSides) {
  Meta a;
  a.shape = {2, 3};
  Meta b = a;
  EXPECT_TRUE(agree(a, b));
  EXPECT_EQ(difference(a, "rank 0", b, "rank 1"), "");
  b.dtype = DType::kFloat64;
  EXPECT_EQ(difference(a, "rank 0", b, "rank 1"), "dtype: rank 0 has float32, rank 1 has float64");
  b = a;
  b.shape = {2, 4};
  EXPECT_EQ(difference(a, "rank 0", b, "rank 1"), "shape: rank 0 has [2, 3], rank 1 has [2, 4]");
  b = a;
  b.op = ReduceOp::kMin;
  EXPECT_EQ(difference(a, "rank 0", b, "rank 1"), "op: rank 0 has sum, rank 1 has min");
}

TEST(Meta, FirstDimensionsOfAGatherMayDiffer) {
  Meta a;
  a.kind = Kind::kAllgather;
  a.shape = {2, 3};
  Meta b = a;
  b.shape = {5, 3};
  EXPECT_TRUE(agree(a, b));
  b.shape = {5, 4};
  EXPECT_FALSE(agree(a, b));
}

}  // namespace messages_test
}  // namespace farandole::control
