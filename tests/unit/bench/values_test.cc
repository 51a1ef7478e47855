// Sizes, statistics, jobs, model shapes: the benchmark's plain values.
#include <gtest/gtest.h>

#include <numeric>

#include "bench/job.h"
#include "bench/model_shapes.h"
#include "bench/processors.h"
#include "bench/sizes.h"
#include "bench/statistics.h"

namespace farandole::bench {
namespace {

TEST(Sizes, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parseSize("4").value(), 4u);
  EXPECT_EQ(parseSize("16K").value(), 16384u);
  EXPECT_EQ(parseSize("1MiB").value(), 1048576u);
  EXPECT_EQ(parseSize("2G").value(), 2147483648u);
  const auto list = parseSizes("4,1K,256M");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list.value(), (std::vector<std::size_t>{4, 1024, 268435456}));
}

TEST(Sizes, RefusesTheRest) {
  for (const char* bad :
       {"", "K", "-1", "4X", "1.5M", "0", "99999999G", "18446744073709551616", "4,", "4,,8"}) {
    EXPECT_FALSE(parseSizes(bad).ok()) << "'" << bad << "'";
  }
}

TEST(Sizes, WritesTheShortestExactForm) {
  EXPECT_EQ(sizeText(4), "4");
  EXPECT_EQ(sizeText(1000), "1000");
  EXPECT_EQ(sizeText(1536), "1536");
  EXPECT_EQ(sizeText(16384), "16K");
  EXPECT_EQ(sizeText(268435456), "256M");
  EXPECT_EQ(timeText(0.00000021), "0.21 us");
  EXPECT_EQ(timeText(0.0234), "23.4 ms");
  EXPECT_EQ(timeText(1.5), "1.50 s");
}

TEST(Statistics, Percentiles) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({7}, 0.9), 7);
  EXPECT_DOUBLE_EQ(percentile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.1), 2);
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.9), 10);
}

TEST(Job, SurvivesTheWire) {
  Job job;
  job.work = Work::kReducescatter;
  job.dtype = DType::kBfloat16;
  job.op = ReduceOp::kMax;
  job.memory = Memory::kShared;
  job.bytes = 123456789;
  job.warmup = 3;
  job.iterations = 77;
  job.check = true;
  const auto back = Job::parse(job.line());
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(back.value().line(), job.line());
}

TEST(Job, RefusesNonsense) {
  for (const char* bad :
       {"", "run", "walk allreduce float32 sum ordinary 4 1 1 0",
        "run nothing float32 sum ordinary 4 1 1 0", "run allreduce float31 sum ordinary 4 1 1 0",
        "run allreduce float32 sum stolen 4 1 1 0", "run allreduce float32 sum ordinary 4 -1 1 0",
        "run allreduce float32 sum ordinary 4 1 0 0", "run allreduce float32 sum ordinary x 1 1 0",
        "run allreduce float32 sum ordinary 4 1 1"}) {
    EXPECT_FALSE(Job::parse(bad).ok()) << "'" << bad << "'";
  }
}

TEST(Job, BusFactors) {
  EXPECT_DOUBLE_EQ(busFactor(Work::kAllreduce, 2), 1);
  EXPECT_DOUBLE_EQ(busFactor(Work::kAllreduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(busFactor(Work::kAllgather, 4), 0.75);
  EXPECT_DOUBLE_EQ(busFactor(Work::kBroadcast, 4), 1);
}

TEST(ModelShapes, AreTheRealOnes) {
  const auto sum = [](std::span<const std::int64_t> counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  EXPECT_EQ(resnet50Tensors().size(), 161u);
  EXPECT_EQ(sum(resnet50Tensors()), 25'557'032);
  EXPECT_EQ(vgg16Tensors().size(), 32u);
  EXPECT_EQ(sum(vgg16Tensors()), 138'357'544);
  EXPECT_EQ(resnet50Tensors().front(), 64 * 3 * 7 * 7);
  EXPECT_EQ(resnet50Tensors().back(), 1000);
  EXPECT_EQ(vgg16Tensors()[26], 4096 * 512 * 7 * 7);
}

TEST(Processors, Classes) {
  EXPECT_EQ(classify(0.17e-6, 0.2e-6), Distance::kNear);
  EXPECT_EQ(classify(0.55e-6, 0.6e-6), Distance::kFar);
  EXPECT_EQ(classify(0.17e-6, 0.6e-6), Distance::kMixed);
  EXPECT_EQ(classify(0, 0), Distance::kSingle);
  const auto processors = allowedProcessors();
  ASSERT_FALSE(processors.empty());
  EXPECT_EQ(flagCrossing(processors[0], processors[0]), 0);
  if (processors.size() > 1) {
    EXPECT_GT(flagCrossing(processors[0], processors[1]), 0);
  }
}

}  // namespace
}  // namespace farandole::bench
