// JobMarks: by what the processes of a job are known, whatever they do to hide: setsid, double
// forks, a cleared or overwritten environment, a dead parent.
//
// Every rank is started with all of these, and everything it starts inherits them:
//   - the variable FARANDOLE_JOB (lost by `env -i` and by programs that reuse that memory);
//   - a limit of file locks that no other job has: no kernel since 2.4 obeys this limit, it needs
//   no
//     permission, and only a process that sets this very limit loses it;
//   - a control group (v2, or v1's tasks), where we may create one below our own. It cannot be lost
//     without the permission to leave it.
//
// Created by the launcher or agent before the first rank; the guardian has a copy.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>

#include "base/fd.h"

namespace farandole::process {

class JobMarks {
 public:
  JobMarks() = default;
  // Creates the control group if that is permitted; if not, the other marks have to do.
  static JobMarks create(const std::string& job);

  // The limit of file locks that marks the job; 0: none, because our own limit leaves no room.
  rlim_t lockLimit() const { return lockLimit_; }
  // For clone3; -1: none.
  int groupFolder() const { return groupFolder_.get(); }
  // A child enters the group by writing "0" to it; -1: none.
  int groupTasks() const { return groupTasks_.get(); }

  // Whether this living process carries a mark.
  bool on(pid_t pid) const;
  // Kills everybody in the control group, where the kernel can do so at once.
  void killGroup() const;
  // True when there is no control group any more; as long as processes live in it there is.
  bool removeGroup() const;

  // What a guardian inherits of an outer job's marks is not to be found by that job's guardian, or
  // it would be ended before it has done its work. For a process of its own.
  static void disown();

 private:
  bool createGroupBelow(const std::string& folder, bool second);

  std::string variable_;   // FARANDOLE_JOB=…
  std::string groupName_;  // the last part of its path
  std::string groupPath_;  // "": none
  rlim_t lockLimit_ = 0;
  UniqueFd groupFolder_;
  UniqueFd groupTasks_;
};

}  // namespace farandole::process
