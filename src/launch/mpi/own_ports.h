// Ports for one rank of several on a machine.
//
// libfabric picks a port of its range at random and claims it in two steps, so that two ranks which
// start at the same time can get in each other's way. Each gets a part of the range of its own.
#pragma once

#include <string>
#include <vector>

namespace farandole::launch::mpi {

// Narrows FI_TCP_PORT_LOW_RANGE and FI_TCP_PORT_HIGH_RANGE in these variables (NAME=value), if they
// are there and every rank gets at least two ports.
void narrowPorts(std::vector<std::string>& environment, int localRank, int localSize);

}  // namespace farandole::launch::mpi
