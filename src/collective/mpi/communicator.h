// The MPI engine's Communicator: one process set on one MPI communicator of its own.
#pragma once

#include <memory>

#include "collective/communicator.h"
#include "collective/mpi/headers.h"

namespace farandole::collective::mpi {

// Takes the MPI communicator over: it is freed with the result. nativeFrom: see
// MpiContext.
std::unique_ptr<Communicator> makeMpiCommunicator(MPI_Comm comm, int nativeFrom);

}  // namespace farandole::collective::mpi
