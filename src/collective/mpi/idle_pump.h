// MPI moves data only while it is called, and it reports a message as sent that still lies in its
// own buffers: before a connection exists, when a socket is full. A rank that has nothing left to
// do, or computes, must therefore go on calling it, or others wait for that message without end.
//
// IdlePump: a thread that calls MPI, ever more rarely, when no other thread has for a while. It
// ends at the beginning of MPI_Finalize, wherever that is called, and at the end of the process.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "collective/mpi/headers.h"

namespace farandole::collective::mpi {

class IdlePump {
 public:
  // Once per process, and only where messages may travel. comm lives as long as MPI.
  static Status start(MPI_Comm comm);
  // Idempotent; nothing of ours calls MPI in the background afterwards. Any thread but its own.
  static void stop();

  static bool running();

  // The engine has just called MPI itself.
  static void noteCall() { calls_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static inline std::atomic<std::uint64_t> calls_{0};
  static void run(MPI_Comm comm);
};

}  // namespace farandole::collective::mpi
