// Which of the launcher's variables an MPI's own starter gets.
//
// Hydra (MPICH, Intel MPI) sends all that it finds in its environment to its proxies on the other
// hosts, over a plain connection: -genvnone and -genvlist only say which of it the processes there
// are given. So it finds only what a starter needs. The ranks get their environment from
// Farandole's agents.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace farandole::launch::mpi {

struct StarterEnvironment {
  std::vector<std::string> entries;  // NAME=value, for the starter
  // The user's other variables, for an ssh that needs one of them: its ProxyCommand may. Never the
  // job's secret.
  std::vector<std::pair<std::string, std::string>> held;
};

// ours: variables for the starter; the first of a name counts, and outranks the environment.
StarterEnvironment starterEnvironment(const std::vector<std::pair<std::string, std::string>>& ours,
                                      const char* const* environment);

}  // namespace farandole::launch::mpi
