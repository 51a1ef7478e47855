// Starts a rank that an MPI's own starter (mpirun, mpiexec, srun) has started. MPI says who the
// rank is, and carries what ranks must know before they can connect. After that it is a rank like
// all others.
#pragma once

#include <memory>

#include "base/config.h"
#include "collective/engine_plugin.h"
#include "runtime/link_bootstrap.h"

namespace farandole::runtime {

// True if there is such a starter and no launcher has said who this rank is.
bool startedByMpi();

struct MpiStart {
  std::unique_ptr<collective::Engine> engine;
  std::unique_ptr<LinkBootstrap> bootstrap;  // null: alone
};

// Collective over all of MPI's ranks. Fills in who this rank is.
Result<MpiStart> startUnderMpi(Config& config, Deadline deadline);

// Does what follows MPI's own start. The ranks learn where all of them are, and agree on a secret
// although others may read what MPI carries. given: a secret that all ranks have from elsewhere,
// which also protects against others who can alter what MPI carries; empty: none. config.rank and
// config.size must be set.
Result<std::unique_ptr<LinkBootstrap>> meetThrough(collective::Engine& engine, Config& config,
                                                   const std::string& given, Deadline deadline);

// Returns the engine of a rank that our launcher has started and given an MPI. Collective over all
// ranks.
Result<std::unique_ptr<collective::Engine>> startMpiBeside(const Config& config, Deadline deadline);

}  // namespace farandole::runtime
