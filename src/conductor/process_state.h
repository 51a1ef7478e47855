// Whether a process of this machine runs, as the kernel tells it.
#pragma once

#include <sys/types.h>

namespace farandole {

// The state letter of /proc/PID/stat; '?' if it cannot be read.
char processState(pid_t pid);
// Stopped by a signal ('T') or by a debugger ('t').
inline bool isStopped(char state) { return state == 'T' || state == 't'; }

}  // namespace farandole
