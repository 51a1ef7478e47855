#include "control/messages.h"

#include <gtest/gtest.h>

#include <random>

namespace farandole {
namespace {

Meta someMeta() {
  Meta meta;
  meta.kind = Kind::kReducescatter;
  meta.dtype = DType::kBfloat16;
  meta.op = ReduceOp::kMax;
  meta.root = 3;
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
  const auto announce = decodeSubmission(encode(Submission(Announce{"grad/ü", someMeta(), true})));
  ASSERT_TRUE(announce);
  ASSERT_TRUE(std::holds_alternative<Announce>(*announce));
  EXPECT_EQ(std::get<Announce>(*announce).name, "grad/ü");
  EXPECT_TRUE(std::get<Announce>(*announce).shared);
  expectEqual(std::get<Announce>(*announce).meta, someMeta());

  const auto repeat = decodeSubmission(encode(Submission(Repeat{{5, 9}, false})));
  ASSERT_TRUE(repeat);
  EXPECT_EQ(std::get<Repeat>(*repeat).plan, (PlanId{5, 9}));
  EXPECT_TRUE(std::holds_alternative<Join>(*decodeSubmission(encode(Submission(Join{})))));
  EXPECT_EQ(std::get<Withdraw>(*decodeSubmission(encode(Submission(Withdraw{"x"})))).name, "x");
  const auto retract = std::get<Retract>(*decodeSubmission(encode(Submission(Retract{"r", true}))));
  EXPECT_EQ(retract.name, "r");
  EXPECT_TRUE(retract.shared);
}

TEST(Messages, LogEntriesSurviveTheirByteForm) {
  const auto define = decodeLogEntry(encode(LogEntry(Define{{1, 2}, "n", someMeta()})));
  ASSERT_TRUE(define);
  expectEqual(std::get<Define>(*define).meta, someMeta());
  const auto batch = decodeLogEntry(encode(LogEntry(Batch{{{1, 2}, {3, 4}}, {7}})));
  ASSERT_TRUE(batch);
  EXPECT_EQ(std::get<Batch>(*batch).plans.size(), 2u);
  EXPECT_EQ(std::get<Batch>(*batch).joined, (std::vector<std::int64_t>{7}));
  const auto refuse = decodeLogEntry(encode(LogEntry(Refuse{"n", "because", 1, {1, 2}})));
  ASSERT_TRUE(refuse);
  EXPECT_EQ(std::get<Refuse>(*refuse).text, "because");
  EXPECT_EQ(std::get<Refuse>(*refuse).spared, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(std::get<Joined>(*decodeLogEntry(encode(LogEntry(Joined{2})))).last, 2);
  EXPECT_EQ(std::get<Resend>(*decodeLogEntry(encode(LogEntry(Resend{1, {2, 3}})))).member, 1);
  EXPECT_EQ(std::get<Withdrawn>(*decodeLogEntry(encode(LogEntry(Withdrawn{1, "w"})))).name, "w");
  EXPECT_EQ(std::get<Abort>(*decodeLogEntry(encode(LogEntry(Abort{"a", 0})))).text, "a");
}

TEST(Messages, RefusesTruncatedAndPaddedBytes) {
  const auto whole = encode(Submission(Announce{"name", someMeta(), false}));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(decodeSubmission(std::span(whole).first(bytes))) << bytes;
  }
  auto padded = whole;
  padded.push_back(std::byte{0});
  EXPECT_FALSE(decodeSubmission(padded));
}

TEST(Messages, RefusesAShapeWhoseSizeOverflows) {
  Meta meta;
  meta.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_FALSE(decodeSubmission(encode(Submission(Announce{"n", meta, false}))));
  meta.shape = {-1};
  EXPECT_FALSE(decodeSubmission(encode(Submission(Announce{"n", meta, false}))));
}

TEST(Messages, AFlagHasOneForm) {
  auto bytes = encode(Submission(Repeat{{1, 2}, true}));
  ASSERT_TRUE(decodeSubmission(bytes).has_value());
  bytes.back() = std::byte{2};
  EXPECT_FALSE(decodeSubmission(bytes).has_value());
}

TEST(Messages, SurviveRandomBytes) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 50000; ++i) {
    std::vector<std::byte> bytes(random() % 200);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    if (!bytes.empty()) bytes[0] = static_cast<std::byte>(random() % 8);
    (void)decodeSubmission(bytes);
    (void)decodeLogEntry(bytes);
  }
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

}  // namespace
}  // namespace farandole
