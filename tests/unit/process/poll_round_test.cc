#include "process/poll_round.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/fd.h"

namespace farandole::process {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Pipe {
  UniqueFd read;
  UniqueFd write;

  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  void fill() const { ASSERT_EQ(::write(write.get(), "x", 1), 1); }
};

class PollRounds : public testing::Test {
 protected:
  void expect(PollRound& round, int fd, int name, short events = POLLIN) {
    round.on(fd, events, [this, name] { called_.push_back(name); });
  }

  Pipe first_;
  Pipe second_;
  std::vector<int> called_;
};

TEST_F(PollRounds, CallsWhoIsReadyInTheOrderGiven) {
  first_.fill();
  second_.fill();
  const Pipe quiet;
  PollRound round;
  expect(round, second_.read.get(), 2);
  expect(round, -1, 0);
  expect(round, quiet.read.get(), 3);
  expect(round, first_.read.get(), 1);
  round.run(std::chrono::seconds(60));
  EXPECT_THAT(called_, ElementsAre(2, 1));
}

TEST_F(PollRounds, AHangUpIsAnEvent) {
  first_.write.reset();
  PollRound round;
  expect(round, first_.read.get(), 1);
  round.run(std::chrono::seconds(60));
  EXPECT_THAT(called_, ElementsAre(1));
}

TEST_F(PollRounds, EndsWhenTheTimeIsOver) {
  PollRound round;
  expect(round, first_.read.get(), 1);
  const TimePoint begin = Clock::now();
  round.run(std::chrono::microseconds(300));
  EXPECT_GE(Clock::now() - begin, std::chrono::microseconds(300));
  round.run(std::chrono::seconds(-1));
  EXPECT_THAT(called_, IsEmpty());
}

}  // namespace
}  // namespace farandole::process
