#include "collective/segments.h"

#include <gtest/gtest.h>

#include <numeric>

namespace farandole::collective {
namespace {

TEST(Segments, GatherAndScatterEveryRange) {
  std::vector<int> a(5);
  std::vector<int> b(0);
  std::vector<int> c(70);
  std::iota(a.begin(), a.end(), 0);
  std::iota(c.begin(), c.end(), 5);
  std::vector<int> outA(5);
  std::vector<int> outC(70);
  const Piece pieces[] = {{a.data(), outA.data(), 5},
                          {b.data(), b.data(), 0},
                          {c.data(), outC.data(), 70},
                          {nullptr, nullptr, 0}};
  const Segments segments(pieces, sizeof(int));
  ASSERT_EQ(segments.total(), 75);
  for (std::int64_t begin = 0; begin <= 75; ++begin) {
    for (std::int64_t end = begin; end <= 75; ++end) {
      std::vector<int> packed(static_cast<std::size_t>(end - begin) + 1, -1);
      segments.gather(begin, end, reinterpret_cast<std::byte*>(packed.data()), Store::kCached);
      for (std::int64_t i = begin; i < end; ++i) {
        ASSERT_EQ(packed[static_cast<std::size_t>(i - begin)], i);
      }
      ASSERT_EQ(packed.back(), -1);
      segments.scatter(begin, end, reinterpret_cast<const std::byte*>(packed.data()),
                       Store::kCached);
    }
  }
  EXPECT_EQ(outA, a);
  EXPECT_EQ(outC, c);
}

TEST(Segments, BoundariesCoverEverythingInOrder) {
  std::vector<Piece> pieces;
  for (const std::int64_t count : {1000, 3, 0, 70000, 64})
    pieces.push_back({nullptr, nullptr, count});
  for (const Segments& segments : {Segments(pieces, 4), Segments(std::span(pieces).first(1), 4),
                                   Segments(nullptr, nullptr, 10)}) {
    for (int parts = 1; parts <= 64; ++parts) {
      EXPECT_EQ(segments.boundary(0, parts), 0);
      EXPECT_EQ(segments.boundary(parts, parts), segments.total());
      for (int i = 0; i < parts; ++i) {
        ASSERT_LE(segments.boundary(i, parts), segments.boundary(i + 1, parts));
      }
    }
  }
}

TEST(Segments, BoundariesOfHugeArraysDoNotOverflow) {
  const std::int64_t huge = std::int64_t{1} << 61;
  const Segments segments(nullptr, nullptr, static_cast<std::size_t>(huge));
  EXPECT_EQ(segments.boundary(32, 64), huge / 2);
  EXPECT_EQ(segments.boundary(63, 64), huge / 64 * 63);
}

TEST(Segments, NoPieces) {
  const Segments segments(std::span<const Piece>(), 4);
  EXPECT_EQ(segments.total(), 0);
  segments.forEach(0, 0, [](auto...) { FAIL(); });
}

}  // namespace
}  // namespace farandole::collective
