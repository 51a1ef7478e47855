// Finding processes through /proc: by the job's mark in their environment, and by descent. Any
// thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace farandole {

// Living processes (no zombies, not the caller) whose environment holds FARANDOLE_JOB=job. setsid,
// double forks and a dead parent do not hide a process from this; only a cleared environment does.
std::vector<pid_t> processesOfJob(std::string_view job);

// Living children, grandchildren, … of `ancestor`.
std::vector<pid_t> descendantsOf(pid_t ancestor);

// "python3", or "" if the process is gone.
std::string processName(pid_t pid);

}  // namespace farandole
