// Finding processes through /proc: by a property of theirs, and by descent. Any thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace farandole::process {

// What /proc says; "" if it says nothing.
std::string readProcFile(const std::string& path);
std::string procPath(pid_t pid, const char* file);

// Living processes (no zombies, not the caller) of which `is` holds.
std::vector<pid_t> processesThat(const std::function<bool(pid_t)>& is);

// Living children, grandchildren, … of `ancestor`.
std::vector<pid_t> descendantsOf(pid_t ancestor);
bool descendsFrom(pid_t pid, pid_t ancestor);

// All children of this process, whether they live or wait to be reaped.
std::vector<pid_t> ownChildren();

// Sends the signal, if `is` still holds of the process that it will reach: a number that was found
// a moment ago may be another process's by now.
bool signalProcess(pid_t pid, int signal, const std::function<bool(pid_t)>& is);

// "python3", or "" if the process is gone.
std::string processName(pid_t pid);

}  // namespace farandole::process
