// The small parts of the hierarchy: how work is cut, and how elements change their type.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/half.h"
#include "collective/hierarchy/blocks.h"
#include "collective/hierarchy/convert.h"
#include "collective/hierarchy/machines.h"
#include "unit/collective/data.h"

namespace farandole::testing {
namespace {

using collective::hierarchy::Machines;
using collective::hierarchy::splitAt;

TEST(HierarchySplit, CoversEverythingInOrder) {
  for (const std::int64_t count : {0L, 1L, 63L, 64L, 65L, 1000L, 4096L, (1L << 62) + 5}) {
    for (const std::int64_t parts : {1L, 2L, 3L, 7L, 64L}) {
      ASSERT_EQ(splitAt(count, 0, parts), 0);
      ASSERT_EQ(splitAt(count, parts, parts), count);
      const std::int64_t first = splitAt(count, 1, parts);
      for (std::int64_t i = 0; i < parts; ++i) {
        const std::int64_t size = splitAt(count, i + 1, parts) - splitAt(count, i, parts);
        ASSERT_GE(size, 0);
        ASSERT_LE(size, first);
      }
      ASSERT_LE(first, count / parts + 64);
    }
  }
}

TEST(HierarchyMachines, KnowsWhoSitsWhere) {
  const Machines machines({1, 0, 1, 1, 0}, 3);
  ASSERT_TRUE(machines.valid());
  EXPECT_EQ(machines.count(), 2);
  EXPECT_EQ(machines.slices(), 2);
  EXPECT_EQ(machines.mine(), 1);
  EXPECT_EQ(machines.local(), 2);
  EXPECT_FALSE(machines.carries());
  EXPECT_EQ(machines.neighbours()[1], 2);
  EXPECT_FALSE(Machines({}, 0).valid());
}

// Every element of every part is in exactly one run, and all tallies agree with the runs.
TEST(HierarchyBlocks, EveryElementTravelsOnce) {
  Dice dice(606);
  for (int round = 0; round < 200; ++round) {
    const auto members = static_cast<int>(2 + dice.upTo(6));
    std::vector<int> machineOf;
    for (int i = 0; i < members; ++i) {
      machineOf.push_back(i < 2 ? i : static_cast<int>(dice.upTo(1)));
    }
    const Machines machines(machineOf, static_cast<int>(dice.upTo(members - 1)));
    std::vector<std::int64_t> counts;
    for (int i = 0; i < members; ++i) counts.push_back(dice.coin() ? dice.upTo(500) : 0);
    collective::hierarchy::Cut cut;
    cut.chunks = 1 + dice.upTo(4);
    cut.slices = dice.coin() ? 1 : machines.slices();
    const collective::hierarchy::Blocks blocks(machines, counts, cut);
    std::vector<std::vector<int>> seen;
    for (const std::int64_t count : counts) seen.emplace_back(static_cast<std::size_t>(count), 0);
    for (std::int64_t chunk = 0; chunk < cut.chunks; ++chunk) {
      std::int64_t total = 0;
      for (int slice = 0; slice < cut.slices; ++slice) {
        std::map<int, std::int64_t> perMachine;
        std::map<int, std::int64_t> perMember;
        blocks.forEachRun(chunk, slice, [&](int member, std::int64_t offset, std::int64_t count) {
          for (std::int64_t i = offset; i < offset + count; ++i) {
            ++seen[static_cast<std::size_t>(member)].at(static_cast<std::size_t>(i));
          }
          perMachine[machines.machineOf(member)] += count;
          perMember[member] += count;
          total += count;
        });
        const auto machineCounts = blocks.perMachine(chunk, slice);
        for (int machine = 0; machine < machines.count(); ++machine) {
          ASSERT_EQ(machineCounts[static_cast<std::size_t>(machine)], perMachine[machine]);
        }
        const auto owners = blocks.perOwner(chunk, slice);
        for (std::size_t i = 0; i < owners.size(); ++i) {
          ASSERT_EQ(owners[i], perMember[machines.neighbours()[i]]);
        }
        ASSERT_EQ(blocks.mineBySlice(chunk)[static_cast<std::size_t>(slice)],
                  perMember[machines.me()]);
        ASSERT_EQ(blocks.perCarrier(chunk)[static_cast<std::size_t>(slice)],
                  blocks.across(chunk, slice));
        ASSERT_LE(blocks.across(chunk, slice), blocks.across(0, 0));
      }
      ASSERT_EQ(total, blocks.total(chunk));
    }
    for (const auto& part : seen) {
      for (const int times : part) ASSERT_EQ(times, 1);
    }
  }
}

// Every 16-bit number there and back, by the plain conversions' word.
class HierarchyConvert : public ::testing::TestWithParam<const char*> {};

TEST_P(HierarchyConvert, HalvesKeepTheirBits) {
  const std::string before(kernels());
  ASSERT_TRUE(setKernels(GetParam()));
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    const collective::hierarchy::Work work(dtype, ReduceOp::kSum, {}, 4);
    ASSERT_EQ(work.inside, DType::kFloat32);
    std::vector<std::uint16_t> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
    std::vector<float> wide(all.size());
    work.enter(wide.data(), all.data(), 65536);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float plain = dtype == DType::kFloat16 ? halfToFloat(all[i]) : bfloatToFloat(all[i]);
      if (std::isnan(plain)) {
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      } else {
        ASSERT_EQ(std::memcmp(&wide[i], &plain, 4), 0) << i;
      }
    }
    // Numbers between the 16-bit ones, ties included, at an odd place and of an odd count.
    std::vector<float> between(30'001);
    Dice dice(707);
    for (float& value : between) {
      const auto bits = static_cast<std::uint32_t>(dice.seed());
      std::memcpy(&value, &bits, 4);
    }
    std::vector<float> narrow = between;
    work.leave(narrow.data(), 30'001);
    for (std::size_t i = 0; i < between.size(); ++i) {
      std::uint16_t got;
      std::memcpy(&got, reinterpret_cast<const char*>(narrow.data()) + 2 * i, 2);
      const float back = dtype == DType::kFloat16 ? halfToFloat(got) : bfloatToFloat(got);
      ASSERT_EQ(std::isnan(back), std::isnan(between[i]));
      if (std::isnan(back)) continue;
      ASSERT_EQ(got, dtype == DType::kFloat16 ? floatToHalf(between[i]) : floatToBfloat(between[i]))
          << between[i];
    }
  }
  setKernels(before);
}
// Those of the two that this processor has.
std::vector<const char*> conversions() {
  const std::string before(kernels());
  std::vector<const char*> names{"baseline"};
  if (setKernels("avx2")) names.push_back("avx2");
  setKernels(before);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Kernels, HierarchyConvert, ::testing::ValuesIn(conversions()));

TEST(HierarchyWork, WidensOnlyWhatNeedsIt) {
  const Scale none;
  const Scale half{0.5, 1.0, 1};
  const auto inside = [](DType dtype, ReduceOp op, const Scale& scale) {
    return collective::hierarchy::Work(dtype, op, scale, 3).inside;
  };
  EXPECT_EQ(inside(DType::kFloat16, ReduceOp::kMax, none), DType::kFloat16);
  EXPECT_EQ(inside(DType::kFloat16, ReduceOp::kMax, half), DType::kFloat32);
  EXPECT_EQ(inside(DType::kBfloat16, ReduceOp::kProduct, none), DType::kFloat32);
  EXPECT_EQ(inside(DType::kInt8, ReduceOp::kSum, none), DType::kInt8);
  EXPECT_EQ(inside(DType::kInt8, ReduceOp::kAverage, none), DType::kInt64);
  EXPECT_EQ(inside(DType::kUint16, ReduceOp::kMin, half), DType::kInt64);
  EXPECT_EQ(inside(DType::kBool, ReduceOp::kAverage, none), DType::kBool);
  EXPECT_EQ(inside(DType::kComplex64, ReduceOp::kAverage, half), DType::kComplex64);
}

}  // namespace
}  // namespace farandole::testing
