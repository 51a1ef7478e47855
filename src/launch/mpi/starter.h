// The cluster's own mpirun or mpiexec: where it is and whose it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::launch::mpi {

struct Starter {
  // Hydra: MPICH's, also MVAPICH's; Intel's has come to differ from it.
  enum class Kind { kOpenMpi, kHydra, kIntel };
  Kind kind = Kind::kOpenMpi;
  std::string program;       // its path
  std::string what;          // for a person: "Open MPI 4.1.4"
  std::string interfaces{};  // it shall use, as --network-interfaces says; "": its own choice
};

// What --version printed; none: not an MPI's starter that we know.
std::optional<Starter> starterFrom(std::string_view versionText);

// The programs to ask, in order: names to look up in PATH, or paths. wanted: as --mpi says it
// (openmpi, mpich, intelmpi, …, or the path of a starter or of a libmpi); empty: any.
Result<std::vector<std::string>> starterCandidates(std::string_view wanted);

// PATH with the folder of this program first: Intel's mpirun calls whatever mpiexec.hydra it finds.
std::string pathBefore(const std::string& program);

// Runs the candidates' --version. Never Farandole's own mpirun of compat/bin. The error says what
// to install or to type.
Result<Starter> findStarter(std::string_view wanted);

}  // namespace farandole::launch::mpi
