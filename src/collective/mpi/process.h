// MPI in this process. It is started at most once, by this engine or by the program, and ended at
// exit only if it was started here. All MPI calls of the engine are made under its lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "collective/mpi/headers.h"

namespace farandole::collective::mpi {

// "MPI_Iallreduce: MPI_ERR_TRUNCATE: …"; ok for MPI_SUCCESS.
Status mpiStatus(int code, std::string_view call);

class MpiProcess {
 public:
  // Starts MPI unless it runs. kUnavailable if it has ended already or allows no second thread.
  static Result<MpiProcess*> start(Deadline deadline, Duration finalizeLimit);

  // False once MPI_Finalize was called: after that no MPI function may be called.
  static bool alive();

  // Held while MPI is called. It excludes no thread if MPI takes calls from several threads at
  // once, so that there is nothing for clang to check.
  class Lock {
   public:
    Lock();
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    bool held_ = false;
  };

  // A copy of MPI_COMM_WORLD that has no other user; it lives as long as MPI.
  MPI_Comm base() const { return base_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& library() const { return library_; }
  // What the user should know about how MPI was started; empty: nothing.
  const std::string& concern() const { return concern_; }

  // MPI is called from now on even if the engine has nothing to do (IdlePump), unless the program
  // has started MPI in a way that forbids it.
  Status pumpWhenIdle();

 private:
  Status initialise(Deadline deadline, Duration finalizeLimit);
  Status checkThreads(bool ours);
  void describeLibrary();

  MPI_Comm base_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::string library_;
  std::string concern_;
};

// Polls, with growing sleeps, until the request is complete. The request stays pending on timeout.
Status await(MPI_Request& request, Deadline deadline, std::string_view what);

// A duplicate whose errors are returned, not fatal. Collective over the communicator.
Result<MPI_Comm> duplicate(MPI_Comm comm, Deadline deadline, std::string_view what);

// How long to sleep between two looks when nothing has moved for so long. MPI moves data only while
// it is called, so while that many bytes are in flight the looks are more frequent.
Duration napAfter(Duration waited, std::size_t bytes = 0);

}  // namespace farandole::collective::mpi
