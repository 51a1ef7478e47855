#include "machine/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace farandole::machine {
namespace {

std::unique_ptr<Arena> makeArena(std::size_t bytes = std::size_t{64} << 20) {
  auto arena = Arena::create(bytes);
  EXPECT_TRUE(arena.ok()) << arena.status().message();
  return std::move(arena).value();
}

// Returns the bytes of memory that the arena's file occupies.
std::size_t occupied(const Arena& arena) {
  struct stat info {};
  EXPECT_EQ(::fstat(arena.fd(), &info), 0);
  return static_cast<std::size_t>(info.st_blocks) * 512;
}

bool allZero(const void* p, std::size_t bytes) {
  const auto* begin = static_cast<const unsigned char*>(p);
  return std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0; });
}

TEST(Arena, DefaultSizeIsTheMachinesOrder) {
  auto arena = Arena::create();
  ASSERT_TRUE(arena.ok());
  EXPECT_GE((*arena)->capacity(), std::size_t{64} << 20);
  EXPECT_LT(occupied(**arena), std::size_t{1} << 20) << "pages only where something is allocated";
}

TEST(Arena, FirstAllocationIsAtTheStart) {
  auto arena = makeArena();
  EXPECT_EQ(arena->allocate(100).value(), arena->base());
}

TEST(Arena, RandomAllocationsAreAlignedZeroedApartAndReturned) {
  auto arena = makeArena();
  std::mt19937 random(1);
  struct Block {
    std::byte* p;
    std::size_t bytes;
    std::byte mark;
  };
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (blocks.size() > 40 || (i % 3 == 2 && !blocks.empty())) {
      const std::size_t index = random() % blocks.size();
      const Block block = blocks[index];
      ASSERT_TRUE(std::all_of(block.p, block.p + block.bytes,
                              [&](std::byte byte) { return byte == block.mark; }));
      ASSERT_TRUE(arena->free(block.p));
      ASSERT_FALSE(arena->free(block.p));
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(index));
      continue;
    }
    const std::size_t bytes = 1 + random() % (i % 10 == 0 ? 300000 : 3000);
    auto* p = static_cast<std::byte*>(arena->allocate(bytes).value());
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % 64, 0u);
    ASSERT_TRUE(allZero(p, bytes));
    ASSERT_TRUE(arena->owns(p, bytes));
    const auto mark = static_cast<std::byte>(i % 255 + 1);
    std::memset(p, static_cast<int>(mark), bytes);
    blocks.push_back({p, bytes, mark});
  }
  for (const Block& block : blocks) arena->free(block.p);
  EXPECT_EQ(occupied(*arena), 0u);
  // All gaps have been joined again.
  EXPECT_TRUE(arena->allocate(arena->capacity()).ok());
}

TEST(Arena, OwnsOnlyWhatIsAllocated) {
  auto arena = makeArena();
  auto* p = static_cast<std::byte*>(arena->allocate(1000).value());
  EXPECT_TRUE(arena->owns(p + 10, 100));
  EXPECT_FALSE(arena->owns(p, 5000));
  EXPECT_FALSE(arena->owns(p + 4096, 1));
  int local = 0;
  EXPECT_FALSE(arena->owns(&local, sizeof(local)));
  EXPECT_FALSE(arena->free(p + 64));
  EXPECT_FALSE(arena->free(&local));
}

TEST(Arena, TooMuchIsAnErrorThatSaysHowMuch) {
  auto arena = makeArena();
  const Status full = arena->allocate(std::size_t{65} << 20).status();
  EXPECT_EQ(full.code(), Code::kOutOfMemory);
  EXPECT_NE(full.message().find("65.0 MiB"), std::string::npos) << full.message();
  EXPECT_NE(full.message().find("64.0 MiB"), std::string::npos) << full.message();
  EXPECT_EQ(arena->allocate(SIZE_MAX - 5).status().code(), Code::kOutOfMemory);
  auto large = Arena::create(std::size_t{200} << 40);
  if (large.ok()) {
    const Status machine = (*large)->allocate(std::size_t{100} << 40).status();
    EXPECT_EQ(machine.code(), Code::kOutOfMemory);
    EXPECT_NE(machine.message().find("available"), std::string::npos) << machine.message();
  }
  EXPECT_TRUE(arena->allocate(1 << 20).ok()) << "a failure costs nothing";
}

TEST(Arena, IsSealedAgainstShrinking) {
  auto arena = makeArena();
  EXPECT_NE(::ftruncate(arena->fd(), 4096), 0);
  EXPECT_NE(::fcntl(arena->fd(), F_GET_SEALS) & F_SEAL_SHRINK, 0);
}

TEST(Arena, DetachKeepsContentsAndEndsSharing) {
  auto arena = makeArena();
  auto* small = static_cast<char*>(arena->allocate(100).value());
  auto* large = static_cast<char*>(arena->allocate(3'000'000).value());
  std::strcpy(small, "small");
  std::memset(large, 'x', 3'000'000);
  auto peer = Mapping::map(arena->fd(), arena->capacity(), /*inherit=*/false);
  ASSERT_TRUE(peer.ok());
  char* peerSmall =
      reinterpret_cast<char*>(peer->data()) + (small - reinterpret_cast<char*>(arena->base()));
  ASSERT_STREQ(peerSmall, "small");
  ASSERT_TRUE(arena->detach().ok());
  EXPECT_STREQ(small, "small");
  EXPECT_EQ(large[2'999'999], 'x');
  std::strcpy(peerSmall, "late");  // a peer that wakes up late
  EXPECT_STREQ(small, "small");
  auto* more = static_cast<char*>(arena->allocate(5000).value());
  EXPECT_TRUE(allZero(more, 5000));
  std::strcpy(more, "private");
  EXPECT_TRUE(arena->free(more));
  EXPECT_TRUE(arena->free(large));
  EXPECT_TRUE(allZero(arena->allocate(3'000'000).value(), 3'000'000));
}

TEST(Arena, AvailableMemoryIsPlausible) {
  EXPECT_GT(availableMemory(), std::size_t{16} << 20);
  EXPECT_LT(availableMemory(), std::size_t{1} << 50);
}

TEST(Mapping, ContainsDoesNotOverflow) {
  auto arena = makeArena();
  auto mapping = Mapping::map(arena->fd(), 8192, false);
  ASSERT_TRUE(mapping.ok());
  EXPECT_TRUE(mapping->contains(mapping->data() + 8192, 0));
  EXPECT_FALSE(mapping->contains(mapping->data() + 8000, 193));
  EXPECT_FALSE(mapping->contains(mapping->data() + 8000, SIZE_MAX));
  EXPECT_FALSE(Mapping::map(arena->fd(), 0, false).ok());
}

}  // namespace
}  // namespace farandole::machine
