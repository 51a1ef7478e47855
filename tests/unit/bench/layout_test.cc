// Checked contents: a benchmark that does not notice a wrong result proves nothing.
#include "bench/layout.h"

#include <gtest/gtest.h>

#include <cstring>

#include "bench/pattern.h"

namespace farandole::bench {
namespace {

constexpr DType kTypes[] = {DType::kUint8,   DType::kInt8,   DType::kUint16,  DType::kInt16,
                            DType::kInt32,   DType::kInt64,  DType::kFloat16, DType::kBfloat16,
                            DType::kFloat32, DType::kFloat64};

TEST(Pattern, EncodesFloats) {
  float values[4];
  Pattern::ofRank(DType::kFloat32, 1).fill(values, 4);
  EXPECT_EQ(values[0], 2.0f);
  EXPECT_EQ(values[1], 3.0f);
  EXPECT_EQ(values[2], 1.0f);
  EXPECT_EQ(values[3], 2.0f);
  Pattern::reduced(DType::kFloat32, ReduceOp::kSum, 2).fill(values, 3);
  EXPECT_EQ(values[0], 3.0f);
  EXPECT_EQ(values[1], 5.0f);
  EXPECT_EQ(values[2], 4.0f);
}

TEST(Pattern, EncodesHalves) {
  std::uint16_t values[3];
  Pattern::ofRank(DType::kFloat16, 0).fill(values, 3);
  EXPECT_EQ(values[0], 0x3c00);  // 1
  EXPECT_EQ(values[1], 0x4000);  // 2
  EXPECT_EQ(values[2], 0x4200);  // 3
  Pattern::ofRank(DType::kBfloat16, 0).fill(values, 3);
  EXPECT_EQ(values[0], 0x3f80);
  EXPECT_EQ(values[2], 0x4040);
}

TEST(Pattern, FindsTheWrongElement) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t wrong : {0, 3071, 3072, 6999}) {
      const std::size_t width = sizeOf(dtype);
      std::vector<std::byte> data(7000 * width);
      const Pattern pattern = Pattern::reduced(dtype, ReduceOp::kSum, 3);
      pattern.fill(data.data(), 7000, 5);
      EXPECT_TRUE(pattern.verify(data.data(), 7000, 5).ok());
      data[static_cast<std::size_t>(wrong) * width] ^= std::byte{1};
      const Status status = pattern.verify(data.data(), 7000, 5);
      ASSERT_FALSE(status.ok()) << farandole::name(dtype) << " " << wrong;
      EXPECT_NE(status.message().find(std::to_string(wrong)), std::string::npos);
    }
  }
}

// A plain collective over arrays of int64, to see that the layouts agree between the ranks.
struct Everybody {
  std::vector<Layout> layouts;
  std::vector<std::vector<std::int64_t>> in;
  std::vector<std::vector<std::int64_t>> out;

  Everybody(Work work, int size, std::size_t elements) {
    Job job;
    job.work = work;
    job.dtype = DType::kInt64;
    job.bytes = elements * 8;
    for (int rank = 0; rank < size; ++rank) {
      layouts.emplace_back(job, rank, size);
      in.emplace_back(layouts.back().inCount());
      out.emplace_back(layouts.back().outCount());
      layouts.back().fill(in.back().data());
    }
  }
  void expectRight() {
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      EXPECT_TRUE(layouts[i].verify(out[i].data()).ok()) << "rank " << i;
    }
  }
  void expectWrongWithout(std::size_t rank) {
    if (out[rank].empty()) return;
    out[rank].back() += 1;
    EXPECT_FALSE(layouts[rank].verify(out[rank].data()).ok());
  }
};

TEST(Layout, Allgather) {
  Everybody all(Work::kAllgather, 3, 10);
  for (auto& out : all.out) {
    out.clear();
    for (const auto& in : all.in) out.insert(out.end(), in.begin(), in.end());
  }
  all.expectRight();
  all.expectWrongWithout(1);
}

TEST(Layout, Alltoall) {
  Everybody all(Work::kAlltoall, 3, 10);
  for (std::size_t to = 0; to < 3; ++to) {
    std::size_t at = 0;
    for (std::size_t from = 0; from < 3; ++from) {
      std::size_t begin = 0;
      for (std::size_t i = 0; i < to; ++i) {
        begin += static_cast<std::size_t>(all.layouts[from].parts()[i]);
      }
      const auto count = static_cast<std::size_t>(all.layouts[from].parts()[to]);
      EXPECT_EQ(all.layouts[to].received()[from], static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count; ++i) all.out[to][at++] = all.in[from][begin + i];
    }
  }
  all.expectRight();
  all.expectWrongWithout(2);
}

TEST(Layout, Reducescatter) {
  Everybody all(Work::kReducescatter, 4, 11);
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (std::size_t i = 0; i < all.out[rank].size(); ++i) {
      all.out[rank][i] = 0;
      for (const auto& in : all.in) all.out[rank][i] += in[begin + i];
    }
    begin += all.out[rank].size();
  }
  EXPECT_EQ(begin, 11u);
  all.expectRight();
  all.expectWrongWithout(0);
}

TEST(Layout, FewerElementsThanRanks) {
  Everybody all(Work::kAllgather, 4, 1);
  EXPECT_EQ(all.layouts[0].inCount(), 1);
  EXPECT_EQ(all.layouts[3].inCount(), 0);
}

}  // namespace
}  // namespace farandole::bench
