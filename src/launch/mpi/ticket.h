// What a process must have to be taken for an MPI's own: the variables its starter sets and, of
// Hydra, the connection to the process manager. Lent to a rank by a lender, on the same machine,
// through an abstract socket that only the job's user can use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace farandole::launch::mpi {

struct Ticket {
  std::vector<std::string> variables;  // NAME=value
  UniqueFd manager;                    // PMI_FD, if there is one
};

// Where the rank of a job waits for its ticket.
std::string ticketSocket(std::string_view job, int rank);

// Whether a variable is the MPI's: PMIX_, PMI_, OMPI_, I_MPI_ and the like.
bool isMpiVariable(std::string_view entry);

// The rank an MPI's starter has given to the process with these variables; -1: none.
int rankOf(const std::vector<std::string>& variables);

// The environment with the ticket's variables in the place of its own. managerFd: what PMI_FD is to
// say, -1 if there is none.
std::vector<std::string> withTicket(const char* const* environment,
                                    const std::vector<std::string>& variables, int managerFd);

Status sendTicket(int socket, const std::vector<std::string>& variables, int managerFd,
                  Deadline deadline);
Result<Ticket> receiveTicket(int socket, Deadline deadline);

}  // namespace farandole::launch::mpi
