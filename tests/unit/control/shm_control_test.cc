// The control channel in shared memory, and what other ranks may have written into it.
#include "control/shm_control.h"

#include <gtest/gtest.h>

#include <cstring>

#include "unit/collective/one_process.h"

namespace farandole::control {
namespace {

using testing::neighboursInOneProcess;

class ShmControlTest : public ::testing::Test {
 protected:
  ShmControlTest() : neighbours_(neighboursInOneProcess(2)) {
    bytes_ = ShmControl::bytesNeeded(2);
    void* memory = std::move(neighbours_[0]->arena().allocate(bytes_)).value();
    const std::uint64_t offset = neighbours_[0]->offsetOf(memory);
    for (int i = 0; i < 2; ++i) {
      std::byte* area = neighbours_[static_cast<std::size_t>(i)]->at(0, offset, bytes_);
      controls_.push_back(std::make_unique<ShmControl>(*neighbours_[static_cast<std::size_t>(i)],
                                                       area, std::vector<int>{0, 1}, i));
    }
    area_ = static_cast<std::byte*>(memory);
  }
  ShmControl& control(int member) { return *controls_[static_cast<std::size_t>(member)]; }
  void append() {
    const std::byte entry[16] = {};
    ASSERT_TRUE(control(0).append(entry));
  }
  // Every word of the area but the rings.
  template <typename Change>
  void change(Change change) {
    for (std::size_t at = 0; at < 512; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, area_ + at, sizeof word);
      change(word);
      std::memcpy(area_ + at, &word, sizeof word);
    }
  }

  std::vector<std::unique_ptr<machine::Neighbourhood>> neighbours_;
  std::size_t bytes_ = 0;
  std::byte* area_ = nullptr;
  std::vector<std::unique_ptr<ShmControl>> controls_;
};

TEST_F(ShmControlTest, OneThatLeavesSaysHowFarItCame) {
  append();
  std::vector<std::byte> entry;
  ASSERT_EQ(control(1).nextEntry(entry), RingRead::kRecord);
  EXPECT_FALSE(control(0).leftAt(1));
  control(1).leave(control(1).position());
  EXPECT_EQ(control(0).leftAt(1), control(1).position());
  EXPECT_FALSE(control(0).leftAt(0));
}

TEST_F(ShmControlTest, OneThatLeavesBeforeAnythingRanHasLeft) {
  control(1).leave(0);
  EXPECT_EQ(control(0).leftAt(1), 0u);
}

TEST_F(ShmControlTest, WhatIsOverwrittenIsNoLeave) {
  append();
  for (const std::uint64_t value : {std::uint64_t{1}, std::uint64_t{64}, ~std::uint64_t{0},
                                    std::uint64_t{0x0123'4567'89ab'cdef}}) {
    change([&](std::uint64_t& word) { word = value; });
    EXPECT_FALSE(control(0).leftAt(1)) << value;
    EXPECT_FALSE(control(1).leftAt(0)) << value;
  }
}

TEST_F(ShmControlTest, NobodyHasExecutedMoreThanThereIs) {
  append();
  control(1).leave(1'000'000);
  EXPECT_FALSE(control(0).leftAt(1));
}

TEST_F(ShmControlTest, WhatWasSaidFirstStays) {
  append();
  control(1).leave(8);
  control(1).leave(16);
  EXPECT_EQ(control(0).leftAt(1), 8u);
  change([](std::uint64_t& word) { word = 0; });
  EXPECT_EQ(control(0).leftAt(1), 8u);
}

}  // namespace
}  // namespace farandole::control
