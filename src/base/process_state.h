// Whether the kernel runs a process of this machine.
#pragma once

#include <sys/types.h>

namespace farandole {

// What keeps a process from running.
enum class Standstill : char {
  kNone = 0,
  kSignal,    // stopped by SIGSTOP or a similar signal
  kDebugger,  // halted by a debugger
  kFrozen,    // its cgroup is frozen
};

// kNone also if nothing can be found out about it.
Standstill standstillOf(pid_t pid);

}  // namespace farandole
