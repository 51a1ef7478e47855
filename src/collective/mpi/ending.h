// The end of MPI in this process, wherever MPI_Finalize is called: first all ranks wait for each
// other, as long as it takes (others may have hours to go) and without burning a processor; only
// then MPI ends, which takes moments. A rank that is lost meanwhile ends the wait.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "collective/mpi/headers.h"

namespace farandole::collective::mpi {

class Ending {
 public:
  // Called once, when MPI runs: MPI_Finalize then begins with the wait, on this communicator, which
  // has no other use. Collective in so far as all ranks must call it. The process ends if
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

// MPICH before 4.2 on UCX never comes out of MPI_Finalize between machines: a rank closes its
// connections, which needs the other side to move data, but that may already wait for the last rank
// without moving any. libraryVersion: of MPI_Get_library_version.
bool finalizeHangs(std::string_view libraryVersion);

// Leaves such an MPI without MPI_Finalize: waits for all ranks and takes leave of the starter, both
// in the words of its process manager (PMI 1), while IdlePump moves what others still need. False:
// not this MPI, or not this starter, and MPI_Finalize is to be called. Collective over all ranks.
bool leaveWithoutFinalize();

}  // namespace farandole::collective::mpi
