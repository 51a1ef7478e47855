// The limits of a process that a person can change, for error texts: what they are and what to
// type.
#pragma once

#include <cstddef>
#include <string>

namespace farandole {

// "this process may have 16 open files (ulimit -n)"
std::string describeFileLimit();
// "this user may have 100 processes and threads (ulimit -u), this container 50 (pids.max)"
std::string describeTaskLimits();

// Whether so many more files can be opened here, by this process's limit.
bool canOpen(std::size_t files);

}  // namespace farandole
