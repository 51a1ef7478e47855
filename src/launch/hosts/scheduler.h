// Hosts that a batch system or the MPI operator has given us, as its variables tell.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "launch/hosts/host_spec.h"

namespace farandole::launch::hosts {

struct Allocation {
  std::string source;           // for the user: "Slurm job 17"
  std::vector<HostSpec> hosts;  // slots may be 0 only where a host file gives none
};

using GetEnv = std::function<const char*(const char*)>;  // such as ::getenv

// Nothing if we do not run under any. Looked for in this order: the MPI operator's launcher, Slurm,
// LSF, PBS, and host files named for Open MPI, Intel MPI or MPICH. Variables that contradict each
// other are an error that names them, and so is a job without its hosts: to run on one machine
// then would look like success.
Result<std::optional<Allocation>> schedulerAllocation(
    const GetEnv& getEnv, const std::string& operatorHostFile = "/etc/mpi/hostfile");

}  // namespace farandole::launch::hosts
