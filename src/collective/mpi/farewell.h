// The end of MPI in a process that started it.
#pragma once

#include <string_view>

namespace farandole::collective::mpi {

// MPICH before 4.2 on UCX never comes out of MPI_Finalize between machines: a rank closes its
// connections, which needs the other side to move data, but that may already wait for the last rank
// without moving any. libraryVersion: of MPI_Get_library_version.
bool finalizeHangs(std::string_view libraryVersion);

// Leaves such an MPI without MPI_Finalize: waits for all ranks and takes leave of the starter, both
// in the words of its process manager (PMI 1), while IdlePump moves what others still need. False:
// not this MPI, or not this starter, and MPI_Finalize is to be called. Collective over all ranks.
bool leaveWithoutFinalize();

}  // namespace farandole::collective::mpi
