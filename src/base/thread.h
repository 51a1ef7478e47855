// Threads of the library. They have names and block all signals, which belong to the threads of the
// program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/status.h"

namespace farandole {

// Blocks the signals of the calling thread while it lives: threads started meanwhile inherit that,
// so there is no moment in which one could take a signal.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    // A thread's own faults stay its own: fault handlers and core dumps need them.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Why there is no thread, with the limits that may be in the way.
Status noThread(const char* name, int error);

// name: at most 15 characters, shown by debuggers and top. kUnavailable: the system gives none.
template <typename Function>
Result<std::thread> startThread(const char* name, Function&& function) {
  const SignalsBlocked blocked;
  try {
    std::thread thread(std::forward<Function>(function));
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    return noThread(name, error.code().value());
  }
}

// Calls work(0) … work(count - 1), at most `atOnce` at the same time; returns when all have ended.
void inParallel(std::size_t count, std::size_t atOnce,
                const std::function<void(std::size_t)>& work);

}  // namespace farandole
