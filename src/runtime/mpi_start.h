// A rank that an MPI's own starter (mpirun, mpiexec, srun) has started: MPI tells who it is and
// carries what ranks must know before they can talk; from then on it is a rank like others.
#pragma once

#include <memory>

#include "base/config.h"
#include "collective/engine_plugin.h"
#include "runtime/link_bootstrap.h"

namespace farandole::runtime {

// True if there is such a starter and nobody else has told this rank who it is.
bool startedByMpi();

struct MpiStart {
  std::unique_ptr<collective::Engine> engine;
  std::unique_ptr<LinkBootstrap> bootstrap;  // null: alone
};

// Collective over all of MPI's ranks. Fills in who this rank is.
Result<MpiStart> startUnderMpi(Config& config, Deadline deadline);

// The part of it that comes after MPI's own start: the ranks learn where everybody is, and come to
// a secret of their own although others may read what MPI carries. given: a secret that all ranks
// have from elsewhere, which then also keeps out whoever can alter it; empty: none. config.rank and
// config.size are set.
Result<std::unique_ptr<LinkBootstrap>> meetThrough(collective::Engine& engine, Config& config,
                                                   const std::string& given, Deadline deadline);

// The engine of a rank that the launcher has started and to which it has brought an MPI. Collective
// over all ranks.
Result<std::unique_ptr<collective::Engine>> startMpiBeside(const Config& config, Deadline deadline);

}  // namespace farandole::runtime
