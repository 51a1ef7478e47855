#include "machine/rank_processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace farandole::machine {
namespace {

// A process that may use one processor only and waits to be ended.
class Bound {
 public:
  explicit Bound(int processor) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(processor, &one);
      const char answer = ::sched_setaffinity(0, sizeof one, &one) == 0 ? 'y' : 'n';
      [[maybe_unused]] const auto written = ::write(ready[1], &answer, 1);
      for (;;) ::pause();
    }
    char answer = 0;
    EXPECT_EQ(::read(ready[0], &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Bound() { end(); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  UniqueFd pidfd() const { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0))); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

std::vector<int> usable() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

// Each of several bound ranks sees all processors that they have together.
TEST(RankProcessors, BoundRanksHaveTheirOwn) {
  const std::vector<int> processors = usable();
  Bound first(processors.front());
  Bound last(processors.back());
  std::vector<UniqueFd> fds;
  fds.push_back(first.pidfd());
  fds.push_back(last.pidfd());
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processors.front(), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const int together = processorsTogether(fds);
  last.end();
  const int without = processorsTogether(fds);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(together, processors.front() == processors.back() ? 1 : 2);
  EXPECT_EQ(without, 1);
}

TEST(RankProcessors, AloneItIsTheCallersOwn) {
  std::vector<UniqueFd> none(3);
  EXPECT_EQ(processorsTogether(none), static_cast<int>(usable().size()));
}

}  // namespace
}  // namespace farandole::machine
