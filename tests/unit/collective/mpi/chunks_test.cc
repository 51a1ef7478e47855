// How fused pieces are cut into the arrays that MPI is given.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "collective/mpi/choose.h"

namespace farandole::collective::mpi {
namespace {

std::vector<Chunk> cutOf(const std::vector<std::int64_t>& counts, std::size_t elementBytes) {
  std::vector<Piece> pieces;
  for (const std::int64_t count : counts) pieces.push_back({nullptr, nullptr, count});
  return cut(pieces, elementBytes);
}

// Chunks follow each other, cover everything once, and lie where they say.
void expectWhole(const std::vector<std::int64_t>& counts, std::size_t elementBytes) {
  const std::vector<Chunk> chunks = cutOf(counts, elementBytes);
  std::vector<std::int64_t> starts = {0};
  for (const std::int64_t count : counts) starts.push_back(starts.back() + count);
  std::int64_t at = 0;
  for (const Chunk& chunk : chunks) {
    EXPECT_EQ(chunk.begin, at);
    EXPECT_GT(chunk.count, 0);
    const std::size_t bytes = static_cast<std::size_t>(chunk.count) * elementBytes;
    if (chunk.piece < 0) {
      EXPECT_LE(bytes, kPackedBytes);
    } else {
      EXPECT_LE(bytes, kDirectBytes);
      const auto piece = static_cast<std::size_t>(chunk.piece);
      EXPECT_EQ(chunk.begin, starts[piece] + chunk.offset);
      EXPECT_LE(chunk.begin + chunk.count, starts[piece + 1]);
    }
    at += chunk.count;
  }
  EXPECT_EQ(at, starts.back());
}

TEST(MpiChunks, NothingIsNoChunk) {
  EXPECT_TRUE(cutOf({}, 4).empty());
  EXPECT_TRUE(cutOf({0}, 4).empty());
  EXPECT_TRUE(cutOf({0, 0, 0}, 8).empty());
}

TEST(MpiChunks, OnePieceIsUsedWhereItLies) {
  const std::vector<Chunk> small = cutOf({7}, 4);
  ASSERT_EQ(small.size(), 1U);
  EXPECT_EQ(small[0].piece, 0);
  EXPECT_EQ(small[0].count, 7);
  // A large one in steps.
  const auto most = static_cast<std::int64_t>(kDirectBytes / 4);
  const std::vector<Chunk> large = cutOf({2 * most + 1}, 4);
  ASSERT_EQ(large.size(), 3U);
  EXPECT_EQ(large[1].offset, most);
  EXPECT_EQ(large[2].count, 1);
}

TEST(MpiChunks, RunsOfSmallPiecesArePackedBetweenLargeOnes) {
  const auto direct = static_cast<std::int64_t>(kDirectFrom / 4);
  const std::vector<Chunk> chunks = cutOf({10, 0, 20, direct, direct - 1, 5}, 4);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0].piece, -1);
  EXPECT_EQ(chunks[0].count, 30);
  EXPECT_EQ(chunks[1].piece, 3);
  EXPECT_EQ(chunks[1].offset, 0);
  EXPECT_EQ(chunks[2].piece, -1);
  EXPECT_EQ(chunks[2].count, direct + 4);
}

TEST(MpiChunks, APackedChunkThatIsFullIsFollowedByAnother) {
  const auto each = static_cast<std::int64_t>(kDirectFrom / 4 - 1);
  const std::vector<std::int64_t> counts(100, each);
  for (const Chunk& chunk : cutOf(counts, 4)) EXPECT_EQ(chunk.piece, -1);
  expectWhole(counts, 4);
}

TEST(MpiChunks, AnyPiecesAreCoveredOnce) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> counts(random() % 20);
    for (std::int64_t& count : counts) {
      count = static_cast<std::int64_t>(random() >> (40 + random() % 24));
    }
    expectWhole(counts, std::size_t{1} << random() % 5);
  }
}

TEST(MpiChunks, MpiCanCountEveryChunkOfHugePieces) {
  const std::int64_t huge = (std::int64_t{1} << 33) + 5;
  for (const std::size_t element : {1, 4, 16}) {
    expectWhole({huge, 3, huge}, element);
    for (const Chunk& chunk : cutOf({huge}, element)) {
      EXPECT_LE(chunk.count * static_cast<std::int64_t>(element), std::numeric_limits<int>::max());
    }
  }
}

}  // namespace
}  // namespace farandole::collective::mpi
