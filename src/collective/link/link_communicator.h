// The engine between machines ("link"): a Communicator whose members talk through a LinkMesh.
//
// Only inputs and finished results travel, never partial ones: every element is reduced by one
// member (or by all of them alike), from the inputs of all members, in the order of the ranks, with
// the kernels of base/reduce.h. So results have the same bits as the shared-memory engine's,
// whatever algorithm is chosen, and 16-bit floats need not be widened to travel without loss.
//
// Memory. While an operation is in flight, the mesh reads and writes the caller's buffers, and it
// cannot stop for one operation alone. So a caller that gets a failed operation, or destroys one
// before its end, calls LinkMesh::drop for every other member of the set before the buffers are
// released or used (and reports the true cause to them on another way first: to them, this rank has
// closed its connections). The communicator is then of no further use. Exceptions, which need no
// drop: a receive that has no message yet, a send of up to kEagerSend bytes, and a message that is
// too large for its receive. What else the mesh still holds keeps itself alive, and no bell is rung
// after the communicator is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/link/wire_format.h"
#include "transport/link_mesh.h"

namespace farandole::collective::link {

struct LinkOptions {
  transport::LinkMesh* mesh = nullptr;  // outlives the communicator; introduced to all members
  std::vector<std::int32_t> ranks;      // the job's rank of each member
  int me = 0;
  // Bits 63..40 of every slot: the same on all members, never used for another communicator of the
  // same meshes.
  std::uint32_t key = 0;
  // Rings the driver: something may have moved. From any thread, while the communicator exists;
  // cheap, does not block, takes no lock that is held while the communicator is used.
  std::function<void()> wake;
  WireFormat wire = WireFormat::kNative;
  std::vector<std::string> hosts;  // the host of each member, for messages; may be empty
};

std::unique_ptr<Communicator> makeLinkCommunicator(LinkOptions options);

}  // namespace farandole::collective::link
