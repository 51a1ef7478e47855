// The two ends of a ticket. Both are commands that are not for people.
//
//   farandole mpi-enter PROGRAM ARGV0 …   what an agent starts as a rank: takes the ticket and
//                                         becomes the program, in the same process
//   farandole mpi-lend JOB SECONDS        what MPI's starter starts: gives away its ticket, and
//                                         lives as long as the rank
//
// So the rank is the agent's child, as under every other engine (output, signals, exit codes,
// orphans), and yet the process that MPI believes it has started.
#pragma once

#include <string>
#include <vector>

#include "launch/mpi/ticket.h"
#include "launch/plan/job_plan.h"

namespace farandole::launch::mpi {

int enterMain(const std::vector<std::string>& words);
int lendMain(const std::vector<std::string>& words);

// Waits for a lender of this user whose MPI says the same rank, until the deadline, whatever else
// connects.
Result<Ticket> awaitTicket(const std::string& job, int rank, Deadline deadline);

// argv, for this executable, that makes the rank of a settled plan take its ticket before it
// begins.
std::vector<std::string> enterWords(const launch::plan::JobPlan& plan);

// libfabric picks a port of its range at random and claims it in two steps, so that two ranks which
// start at the same time can get in each other's way. Each gets a part of the range of its own.
//
// Narrows FI_TCP_PORT_LOW_RANGE and FI_TCP_PORT_HIGH_RANGE in these variables (NAME=value), if they
// are there and every rank gets at least two ports.
void narrowPorts(std::vector<std::string>& environment, int localRank, int localSize);

}  // namespace farandole::launch::mpi
