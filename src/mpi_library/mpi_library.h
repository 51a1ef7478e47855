// The MPI of this process: who started it, which library it uses, and that library, loaded. The mpi
// engine needs it in a rank, and `farandole run --engine mpi` in the processes that lend an MPI.
//
// There are two binary interfaces: Open MPI's and the one MPICH, Intel MPI, MVAPICH and Cray share.
// A process can use one library only, so the choice is: the one it already has (mpi4py, or a
// program linked with MPI); else one of the kind that started it; else the one named by --mpi or
// FARANDOLE_MPI; else what is installed. A name that contradicts the first two is an error.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/status.h"

namespace farandole::mpi_library {

enum class MpiAbi { kOpenMpi, kMpich };
std::string_view name(MpiAbi abi);  // "openmpi", "mpich"

// The program that started this process. Only what an MPI's starter must leave for its library
// counts (PMIX_*, PMI_FD, PMI_PORT); OMPI_COMM_WORLD_* and PMI_RANK are also set by others, for
// scripts.
struct MpiStarter {
  enum class Kind { kNone, kOpenMpi, kMpich, kEither };
  Kind kind = Kind::kNone;
  int size = 0;  // how many processes it says it started; 0: not known
  // If it is of either kind: the one that speaks to such a starter as distributions build it.
  MpiAbi likely = MpiAbi::kOpenMpi;
};
MpiStarter mpiStarter(const GetEnv& getEnv);

// The programs of MPI starters and their daemons (mpirun, orted, prted, hydra_pmi_proxy, …) that
// this process descends from, nearest first. Their library lies beside them.
std::vector<std::filesystem::path> mpiAncestors();
// In the environment of a rank that was lent its MPI: the program of the starter that lent it.
inline constexpr const char* kMpiStarterVariable = "FARANDOLE_MPI_STARTER";

// "openmpi", "mpich" (also "intelmpi", "impi", "mvapich", "cray") or the path of a library.
struct MpiName {
  bool given = false;
  bool isPath = false;
  MpiAbi abi = MpiAbi::kOpenMpi;  // unless it is a path
  std::string path;
};
Result<MpiName> parseMpiName(std::string_view text);

// The kinds to try, in order, when the process has no MPI yet; or why there is none.
Result<std::vector<MpiAbi>> mpiCandidates(const MpiStarter& starter, const MpiName& name);

struct MpiLibrary {
  MpiAbi abi = MpiAbi::kOpenMpi;
  std::string path;  // as it was loaded
  std::string why;   // "this process already uses it", "its mpirun started this process", …
};

// Makes the chosen library's symbols visible to the objects loaded after it. wanted: what --mpi or
// FARANDOLE_MPI says, may be empty. Not to be called by two threads at once.
Result<MpiLibrary> loadMpiLibrary(std::string_view wanted, const GetEnv& getEnv);

}  // namespace farandole::mpi_library
