// Whether a process of this machine runs, as the kernel tells it.
#pragma once

#include <sys/types.h>

namespace farandole {

// What keeps a process from running.
enum class Standstill : char {
  kNone = 0,
  kSignal,    // SIGSTOP and its like
  kDebugger,  // it is traced, and halted
  kFrozen,    // its cgroup is
};

// kNone also if nothing can be found out about it.
Standstill standstillOf(pid_t pid);

}  // namespace farandole
