#include "collective/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

// That there is no memory must be an answer here, too, and not the end of the test. Visible: the
// sanitizer's library looks for it.
#if defined(FARANDOLE_ASAN)
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
#elif defined(FARANDOLE_TSAN)
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
#endif

namespace farandole::testing {
namespace {

using collective::Scratch;
using collective::ScratchPool;

TEST(Scratch, IsAlignedAndLargeEnough) {
  EXPECT_FALSE(Scratch());
  EXPECT_EQ(Scratch().bytes(), 0U);
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 100'000}) {
    const Scratch scratch = Scratch::allocate(bytes);
    ASSERT_TRUE(scratch);
    EXPECT_GE(scratch.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scratch.data()) % 64, 0U);
  }
}

TEST(Scratch, ImpossibleSizesGiveNone) {
  const Scratch scratch = Scratch::allocate(std::size_t{1} << 62);
  EXPECT_FALSE(scratch);
  EXPECT_EQ(scratch.bytes(), 0U);
}

TEST(Scratch, AdoptedMemoryGoesBackOnce) {
  std::byte memory[64];
  int freed = 0;
  const Scratch::Free free = [&](void* each) {
    EXPECT_EQ(each, memory);
    ++freed;
  };
  {
    Scratch first = Scratch::adopt(memory, sizeof(memory), free);
    EXPECT_EQ(first.data(), memory);
    const Scratch second = std::move(first);
    EXPECT_EQ(second.bytes(), sizeof(memory));
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
}

TEST(ScratchPool, GivesAgainWhatItWasGiven) {
  ScratchPool pool(2);
  Scratch large = pool.take(1 << 16);
  Scratch small = pool.take(1 << 10);
  std::byte* const where = large.data();
  pool.give(std::move(small));
  pool.give(std::move(large));
  // The small one does not fit, the large one does.
  const Scratch again = pool.take(1 << 15);
  EXPECT_EQ(again.data(), where);
}

TEST(ScratchPool, WhatFitsIsNotAllocatedAnew) {
  ScratchPool pool(1);
  Scratch first = pool.take(4096);
  std::byte* const where = first.data();
  pool.give(std::move(first));
  for (int i = 0; i < 3; ++i) {
    Scratch next = pool.take(100);
    EXPECT_EQ(next.data(), where);
    pool.give(std::move(next));
  }
}

TEST(ScratchPool, AFullPoolKeepsTheLargest) {
  ScratchPool pool(1);
  Scratch small = pool.take(64);
  Scratch large = pool.take(1 << 16);
  Scratch middle = pool.take(1 << 12);
  std::byte* const where = large.data();
  pool.give(std::move(small));
  pool.give(std::move(large));
  pool.give(std::move(middle));
  EXPECT_EQ(pool.take(1).data(), where);
}

TEST(ScratchPool, HugeMemoryIsNotKeptAndDisplacesNothing) {
  ScratchPool pool(1);
  Scratch kept = pool.take(1 << 16);
  std::byte* const where = kept.data();
  pool.give(std::move(kept));
  pool.give(pool.take(ScratchPool::kLargest + 1));
  EXPECT_EQ(pool.take(1 << 16).data(), where);
}

TEST(ScratchPool, NothingIsNotKept) {
  ScratchPool pool(1);
  pool.give({});
  EXPECT_TRUE(pool.take(1));
}

TEST(ScratchPool, NoMemoryIsNoScratch) {
  ScratchPool pool(1);
  EXPECT_FALSE(pool.take(std::size_t{1} << 62));
}

}  // namespace
}  // namespace farandole::testing
