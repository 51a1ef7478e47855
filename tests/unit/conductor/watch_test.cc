// Who is named when a rank of this machine ends and others end with it.
#include "conductor/watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>

namespace farandole::conductor {
namespace {

using machine::Arena;
using machine::Neighbourhood;
using machine::SealedWord;

using namespace std::chrono_literals;

// A process that a pidfd can wait for.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      ::pause();
      ::_exit(0);
    }
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  UniqueFd pidfd() const { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

bootstrap::RankEnd connectionLost(int rank) {
  bootstrap::RankEnd end;
  end.rank = rank;
  end.host = "h";
  end.hostLost = true;
  end.account = "rank " + std::to_string(rank) + " on h: it closed the connection";
  return end;
}

// This is rank 1. Rank 0 is another process of this machine, rank 2 is on another machine.
class WatchTest : public ::testing::Test, public WatchListener {
 protected:
  void SetUp() override {
    auto zero = std::move(Arena::create(std::size_t{4} << 20)).value();
    auto one = std::move(Arena::create(std::size_t{4} << 20)).value();
    std::vector<UniqueFd> arenas[2];
    std::vector<UniqueFd> pidfds[2];
    for (int i = 0; i < 2; ++i) {
      for (const Arena* arena : {zero.get(), one.get()}) arenas[i].emplace_back(::dup(arena->fd()));
      pidfds[i].push_back(peer_.pidfd());
      pidfds[i].emplace_back(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    }
    zero_ = std::move(Neighbourhood::create(std::move(zero), 0, 1, std::move(arenas[0]),
                                            std::move(pidfds[0]), Deadline::after(20s)))
                .value();
    one_ = std::move(Neighbourhood::create(std::move(one), 1, 1, std::move(arenas[1]),
                                           std::move(pidfds[1]), Deadline::after(20s)))
               .value();
    marks_ = std::make_unique<LeaveMarks>(*one_, std::vector<int>{0, 1, -1});
  }
  void TearDown() override { watch_.reset(); }
  void fail(Status status) override { one_->fail(std::move(status)); }
  void runs(TimePoint, bool wasStopped) override {
    if (!wasStopped) runs_.fetch_add(1);
  }
  void watch() {
    Watch::Options options;
    options.me = 1;
    options.peers = {{0, 0, "h", peer_.pid()}};
    options.lost = [this](const Status& status) { lost_.set_value(status); };
    watch_ = std::move(Watch::start(*one_, *marks_, *this, std::move(options))).value();
  }
  // Another rank writes into the place of rank 0's mark.
  template <typename Value>
  void overwrite(Value value) {
    for (std::size_t at = 0; at + sizeof value <= sizeof(SealedWord); at += sizeof value) {
      std::memcpy(reinterpret_cast<std::byte*>(&zero_->header().leaves[0].mark) + at, &value,
                  sizeof value);
    }
  }
  // What rank 0 says itself.
  void zeroLeaves(std::uint32_t mark) { LeaveMarks(*zero_, {0, 1, -1}).leave(mark); }
  bool isGone(int limitMs) {
    for (int i = 0; i < limitMs && !one_->isGone(0); ++i) ::usleep(1000);
    return one_->isGone(0);
  }
  int named() {
    auto lost = lost_.get_future();
    if (lost.wait_for(20s) != std::future_status::ready) return -2;
    return lost.get().rank();
  }

  Child peer_;
  std::unique_ptr<Neighbourhood> zero_;
  std::unique_ptr<Neighbourhood> one_;
  std::unique_ptr<LeaveMarks> marks_;
  std::unique_ptr<Watch> watch_;
  std::promise<Status> lost_;
  std::atomic<int> runs_{0};  // how often this process was said to run
};

// Rank 2 is lost; its MPI ends rank 0 because of that, before rank 0 could say so.
TEST_F(WatchTest, EndThatWasToldFirstIsNamed) {
  peer_.end();
  watch();
  watch_->rankEnded(connectionLost(2));
  watch_->rankEnded(connectionLost(0));
  EXPECT_EQ(named(), 2);
}

TEST_F(WatchTest, RankOfThisMachineIsNamedIfItWasFirst) {
  peer_.end();
  watch();
  watch_->rankEnded(connectionLost(0));
  watch_->rankEnded(connectionLost(2));
  EXPECT_EQ(named(), 0);
}

TEST_F(WatchTest, RankThatHasLeftIsNoCause) {
  marks_->note(2, kLeftInGoodOrder);
  peer_.end();
  watch();
  watch_->rankEnded(connectionLost(2));
  watch_->rankEnded(connectionLost(0));
  EXPECT_EQ(named(), 0);
}

// It scribbled over its own mark, and died.
class WatchOverwritten : public WatchTest, public ::testing::WithParamInterface<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(With, WatchOverwritten,
                         ::testing::Values(1, 2, 3, 64, ~0ULL, 1ULL << 31, 0x8000'0000'0000'0001,
                                           0x0123'4567'89ab'cdef));
TEST_P(WatchOverwritten, MarkIsNoLeave) {
  overwrite(GetParam());
  EXPECT_EQ(marks_->of(0), kStillHere);
  overwrite(static_cast<std::uint32_t>(GetParam()));
  EXPECT_EQ(marks_->of(0), kStillHere);
  peer_.end();
  watch();
  EXPECT_EQ(named(), 0);
}

TEST_F(WatchTest, MarkOfAnotherRankIsNoLeave) {
  LeaveMarks(*one_, {0, 1, -1}).leave(kLeftInGoodOrder);
  std::memcpy(static_cast<void*>(&zero_->header().leaves[0].mark),
              static_cast<const void*>(&zero_->header().leaves[1].mark), sizeof(SealedWord));
  peer_.end();
  watch();
  EXPECT_EQ(named(), 0);
}

TEST_F(WatchTest, MarkThatBlamesNobodyInThisJobIsNone) {
  zeroLeaves(gaveUpBecauseOf(3));
  EXPECT_EQ(marks_->of(0), kStillHere);
  marks_->note(2, gaveUpBecauseOf(3));
  EXPECT_EQ(marks_->of(2), kStillHere);
  marks_->note(2, gaveUpBecauseOf(-1));
  EXPECT_EQ(marks_->of(2), gaveUpBecauseOf(-1));
}

TEST_F(WatchTest, MarkThatWasSeenStays) {
  zeroLeaves(gaveUpBecauseOf(2));
  EXPECT_EQ(marks_->of(0), gaveUpBecauseOf(2));
  zeroLeaves(kLeftInGoodOrder);
  EXPECT_EQ(marks_->of(0), gaveUpBecauseOf(2));
  overwrite(std::uint64_t{0});
  EXPECT_EQ(marks_->of(0), gaveUpBecauseOf(2));
}

TEST_F(WatchTest, MarkOfThisRankIsNotReadFromWhereOthersWrite) {
  marks_->leave(gaveUpBecauseOf(2));
  std::memset(static_cast<void*>(&zero_->header().leaves[1].mark), 0, sizeof(SealedWord));
  EXPECT_EQ(marks_->mine(), gaveUpBecauseOf(2));
  EXPECT_EQ(marks_->of(1), gaveUpBecauseOf(2));
}

// It may end, and is not waited for any more.
TEST_F(WatchTest, RankThatEndsAfterItHasLeftIsGone) {
  zeroLeaves(kLeftInGoodOrder);
  watch();
  EXPECT_FALSE(isGone(50));
  peer_.end();
  EXPECT_TRUE(isGone(20'000));
  EXPECT_FALSE(one_->failed());
  EXPECT_EQ(one_->goneStatus(0).code(), Code::kPeerLost);
  EXPECT_EQ(one_->goneStatus(0).rank(), 0);
}

TEST_F(WatchTest, SaysThatThisProcessRuns) {
  watch();
  for (int i = 0; i < 20'000 && runs_ < 2; ++i) ::usleep(1000);
  EXPECT_GE(runs_, 2);
}

}  // namespace
}  // namespace farandole::conductor
