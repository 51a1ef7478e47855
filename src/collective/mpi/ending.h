// The end of MPI in this process, whoever calls MPI_Finalize: first all ranks wait for each other,
// as long as it takes (others may have hours to go) and without burning a processor; only then MPI
// ends, which takes moments. A rank that is lost meanwhile ends the wait.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "collective/mpi/headers.h"

namespace farandole::collective::mpi {

class Ending {
 public:
  // Called once, when MPI runs: MPI_Finalize then begins with the wait, on this communicator, which
  // nobody else uses. Collective in so far as all ranks must do so. The process ends if
  // MPI_Finalize takes longer than the limit once all ranks are there.
  static Status prepare(MPI_Comm comm, Duration finalizeLimit);

  // MPI_Finalize, called by this engine.
  static void finalize();

  // A rank of this job is gone without having ended MPI: MPI_Finalize would wait for it for ever.
  // why: a line for the user. Any thread, at any time.
  static void rankLost(const std::string& why);
  static bool lost();
  // Waits a moment for a loss, and for what this rank then tells the others: the line that names
  // it, or nothing.
  static std::string awaitLoss();

  // What the wait asks between two looks: ends this process if a rank was lost and those that
  // were already on their way have had time to come.
  static void endIfLost();
};

}  // namespace farandole::collective::mpi
