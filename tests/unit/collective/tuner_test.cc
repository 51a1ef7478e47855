#include "collective/shm/tuner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "collective/shm/shm_communicator.h"

namespace farandole::collective {
namespace {

using shm::Board;
using shm::Tuner;

// Two members of one communicator in one process: nothing but the shared area connects them.
class TunerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto arena = machine::Arena::create(std::size_t{64} << 20);
    ASSERT_TRUE(arena.ok());
    std::vector<UniqueFd> arenas;
    arenas.emplace_back(::dup((*arena)->fd()));
    std::vector<UniqueFd> pidfds(1);
    auto neighbourhood =
        machine::Neighbourhood::create(std::move(arena).value(), 0, 1, std::move(arenas),
                                       std::move(pidfds), Deadline::after(std::chrono::seconds(1)));
    ASSERT_TRUE(neighbourhood.ok());
    neighbourhood_ = std::move(neighbourhood).value();
    void* area = neighbourhood_->arena().allocate(shm::shmCommunicatorBytes(2)).value();
    zero_ = std::make_unique<Board>(*neighbourhood_, area, std::vector<int>{0, 0}, 0);
    one_ = std::make_unique<Board>(*neighbourhood_, area, std::vector<int>{0, 0}, 1);
  }

  std::unique_ptr<machine::Neighbourhood> neighbourhood_;
  std::unique_ptr<Board> zero_;
  std::unique_ptr<Board> one_;
};

TEST_F(TunerTest, MembersAgreeEvenWhenOneIsAheadAndTheFastestWayWins) {
  Tuner first(*zero_);
  Tuner second(*one_);
  constexpr std::size_t kBytes = 4 << 20;
  std::array<std::int64_t, 5> times = {9, 500, 100, 300, 400};
  std::array<int, 5> used{};
  const auto run = [&](int operations) {
    used.fill(0);
    for (int i = 0; i < operations; ++i) {
      const Tuner::Choice a = first.begin(kBytes);
      ++used[static_cast<std::size_t>(a.exchange)];
      first.end(a, /*wasDirect=*/false, times[static_cast<std::size_t>(a.exchange)] * 1000);
      // The other member takes up this operation only now: member 0 may have ended it already.
      const Tuner::Choice b = second.begin(kBytes);
      ASSERT_EQ(a.exchange, b.exchange) << i;
      ASSERT_EQ(a.direct, b.direct) << i;
      second.end(b, false, 1);  // what others measured does not count
    }
  };
  run(1000);
  EXPECT_EQ(used[0], 0) << "one shot is not for this size";
  EXPECT_GT(used[2], 900);
  EXPECT_GT(used[1], 4) << "the others are tried now and then";
  times[4] = 20;  // the machine has changed
  run(2000);
  EXPECT_GT(used[4], 1200);
}

TEST_F(TunerTest, DirectOperationsChooseTheirStores) {
  Tuner first(*zero_);
  int streaming = 0;
  for (int i = 0; i < 500; ++i) {
    const Tuner::Choice choice = first.begin(std::size_t{1} << 20);
    streaming += choice.direct;
    first.end(choice, /*wasDirect=*/true, choice.direct == 1 ? 100'000 : 200'000);
  }
  EXPECT_GT(streaming, 400);
}

TEST_F(TunerTest, NonsenseInSharedMemoryIsIgnored) {
  for (auto& entry : zero_->choices().entries[20]) entry.store(0xffffffff);
  Tuner tuner(*one_);
  const Tuner::Choice choice = tuner.begin(std::size_t{1} << 20);
  EXPECT_GE(choice.exchange, 0);
  EXPECT_LT(choice.exchange, 5);
  EXPECT_GT(tuner.layout(choice).partBytes, 0u);
}

}  // namespace
}  // namespace farandole::collective
