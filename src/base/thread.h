// Threads of the library: named, and deaf to signals, which belong to the program's own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace farandole {

// name: at most 15 characters, shown by debuggers and top.
template <typename Function>
std::thread startThread(const char* name, Function&& function) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // A thread's own faults stay its own: fault handlers and core dumps need them.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
  // A new thread inherits the mask, so there is no moment in which it could take a signal.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Function>(function));
  ::pthread_setname_np(thread.native_handle(), name);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace farandole
