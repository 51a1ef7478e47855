// The role of the driver (docs/threads.md), as clang's -Wthread-safety knows it.
//
// What only the driver touches is GUARDED_BY(driverRole), and what only the driver calls says
// REQUIRES(driverRole). A thread gets the role from the DriveLock of its conductor. A process has one
// conductor at a time, so one name is enough for the role; the object is never read.
#pragma once

#include "base/mutex.h"

namespace farandole::conductor {

class CAPABILITY("role") DriverRole {};
inline DriverRole driverRole;

// Whoever holds it is the driver. Its functions are not checked themselves: to clang they take the
// role, and in fact they take the mutex.
class DriveLock {
 public:
  void lock() ACQUIRE(driverRole) NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
  bool tryLock() TRY_ACQUIRE(true, driverRole) NO_THREAD_SAFETY_ANALYSIS {
    return mutex_.try_lock();
  }
  void unlock() RELEASE(driverRole) NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }

 private:
  Mutex mutex_;
};

// The thread is the driver while this lives.
class SCOPED_CAPABILITY Driving {
 public:
  explicit Driving(DriveLock& drive) ACQUIRE(driverRole) : drive_(drive) { drive_.lock(); }
  ~Driving() RELEASE() { drive_.unlock(); }
  Driving(const Driving&) = delete;
  Driving& operator=(const Driving&) = delete;

 private:
  DriveLock& drive_;
};

}  // namespace farandole::conductor
