// What ranks leave behind: processes of theirs that still run when the ranks themselves have ended.
//
// The launcher is a subreaper, so that every orphan below it becomes its own child, whatever
// double forks or setsid it used: no children means nothing is left. Main thread only.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "base/clock.h"

namespace farandole {

class Leftovers {
 public:
  explicit Leftovers(std::string job) : job_(std::move(job)) {}

  // Makes this process the parent of orphans. Before the first rank.
  static void adoptOrphans();
  // Whether any child lives or waits to be reaped.
  static bool haveChildren();

  // Signals everything that is left; again and again until haveChildren() is false.
  void signalAll(int signal);
  // "2 processes (python3, sleep)" of those that were signalled; "" if none was.
  std::string describe() const;

 private:
  std::string job_;
  std::set<pid_t> seen_;
  std::multiset<std::string> names_;
};

}  // namespace farandole
