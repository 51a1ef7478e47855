// The shared-memory engine: a Communicator among ranks of one machine.
#pragma once

#include <memory>
#include <vector>

#include "collective/communicator.h"
#include "machine/neighbourhood.h"

namespace farandole::collective::shm {

// How much shared memory a communicator of `members` ranks needs.
std::size_t shmCommunicatorBytes(int members);

// `area`: shmCommunicatorBytes of zeroed shared memory, the same on all members (64-byte aligned),
// allocated by one member in its arena and outliving the communicator. `members`: local ranks in
// the order of the set; `me`: index of this rank in it. The neighbourhood outlives the
// communicator. All members create it with the same arguments; no communication happens before the
// first operation.
std::unique_ptr<Communicator> makeShmCommunicator(machine::Neighbourhood& neighbourhood, void* area,
                                                  std::vector<int> members, int me);

}  // namespace farandole::collective::shm
