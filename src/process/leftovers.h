// What ranks leave behind: processes of theirs that still run when the ranks themselves have ended.
//
// The launcher is a subreaper, so that every orphan below it becomes its own child, whatever
// double forks or setsid it used: no children means nothing is left. Main thread only.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

#include "process/job_marks.h"

namespace farandole::process {

class Leftovers {
 public:
  explicit Leftovers(const JobMarks& marks) : marks_(marks) {}

  // Makes this process the parent of orphans. Before the first rank.
  static void adoptOrphans();

  // Whether any child but the guardian lives or waits to be reaped.
  bool any(pid_t guardian) const;
  // Signals everything that is left but the guardian; again and again until any() is false.
  void signalAll(int signal, pid_t guardian);
  // "2 processes (python3, sleep)" of those that were signalled; "" if none was.
  std::string describe() const;

 private:
  bool isStranger(pid_t child) const;

  const JobMarks& marks_;
  std::set<pid_t> seen_;
  std::multiset<std::string> names_;
};

}  // namespace farandole::process
