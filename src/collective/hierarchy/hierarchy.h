// The engine for several ranks on several machines: shared memory inside each machine, another
// engine between the machines.
//
// Words. The *slices* of a set are as many as its smallest machine has members. On every machine
// the first that many members are *carriers*: carrier i takes slice i of everything between the
// machines, so all of them drive the network at the same time; the other members only reduce and
// gather. Large operations are cut into *chunks* that follow each other through three stages (see
// pipeline.h): inside the machine, between the machines, inside the machine.
//
// The decomposition is that of M. Cho et al., "BlueConnect: Decomposing All-Reduce for Deep
// Learning on Heterogeneous Network Hierarchy", MLSys 2019.
//
// Numbers. Results are bit-identical on all members if those of `between` and `flat` are. float16
// and bfloat16 are float32 from the first stage to the last and rounded once; integers that are
// scaled are 64 bits wide all the way, which gives the bits of the shared-memory engine.
//
// Which operation goes which way: allreduce, reduce, reducescatter, allgather, broadcast and
// barrier through the stages; gather, scatter, alltoall, send, receive and Adasum through `flat`.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"

namespace farandole::collective::hierarchy {

// Sizes at which operations choose another way. They are equal on all members.
struct HierarchyTuning {
  // Below this one carrier travels alone: a message more costs more than its bytes.
  std::size_t oneCarrierBelow = std::size_t{32} << 10;
  // A chunk is an eighth of the operation, within these: small enough to stay in the caches while
  // it is reduced and gathered, and to fill and drain the pipeline soon; large enough that starting
  // an operation between machines (a tenth of a millisecond) is little against its bytes.
  std::size_t smallestChunk = std::size_t{1} << 20;
  std::size_t largestChunk = std::size_t{4} << 20;
};

struct HierarchyParts {
  std::vector<int> machineOf;  // per member; machines are numbered 0 … without gaps
  int me = 0;
  // The members of this member's machine, in member order.
  std::unique_ptr<Communicator> local;
  // The carriers of this member's slice, one per machine, in machine order; null if it carries
  // none.
  std::unique_ptr<Communicator> between;
  std::unique_ptr<Communicator> flat;  // all members
  // Memory that this machine's members can reach without a copy. Without it, or when there is no
  // more of it, ordinary memory is used.
  std::function<Result<void*>(std::size_t)> allocate;
  std::function<void(void*)> free;
  HierarchyTuning tuning;
};

// Parts that do not fit together make a communicator whose every operation fails with the reason.
std::unique_ptr<Communicator> makeHierarchy(HierarchyParts parts);

}  // namespace farandole::collective::hierarchy
