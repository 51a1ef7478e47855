// Starting one rank: straight from the launcher, no shell between.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "process/job_marks.h"
#include "process/signals.h"

namespace farandole::process {

struct SpawnRequest {
  const std::string& program;
  const std::vector<std::string>& arguments;
  const std::vector<std::string>& environment;
  int stdinFd;
  int stdoutFd;
  int stderrFd;
  const InheritedSignals& signals;
  const rlimit& files;                     // the limit of open files
  bool diesWithUs = true;                  // it ends with the calling thread
  const std::vector<int>* cpus = nullptr;  // it may use; none, or an empty list: all of ours
  const JobMarks* marks = nullptr;         // marks by which it and its descendants are found
  bool goesFirst = false;                  // when memory is short the kernel ends it before us
};

// Executes the program in a process group of its own, with the three descriptors and nothing else
// of ours, and with the signals and the limit of open files that the launcher was started
// with. Returns once execve has succeeded, or with its error. The descriptors stay the caller's;
// those for output must be above 2.
Result<pid_t> spawnProcess(const SpawnRequest& request);

}  // namespace farandole::process
