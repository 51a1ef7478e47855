// Machines for tests: the ranks of a LocalGroup, some of which play a machine of their own. Inside
// a "machine", between "machines" and among all, shared memory does the work; what is tested is
// what the hierarchy makes of it.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "collective/hierarchy/hierarchy.h"
#include "unit/collective/data.h"
#include "unit/collective/local_group.h"

namespace farandole::testing {

struct MachineLayout {
  std::string name;
  std::vector<int> machineOf;  // per member
  std::vector<int> ranks;      // per member; empty: member i is rank i

  int members() const { return static_cast<int>(machineOf.size()); }
  int rankOf(int member) const {
    return ranks.empty() ? member : ranks[static_cast<std::size_t>(member)];
  }
  int memberOf(int rank) const;  // -1: not in the set
  int groupSize() const;         // ranks the test must start
  int machines() const;
  std::vector<int> membersOf(int machine) const;
  // One of the parts does everything.
  bool degenerate() const { return machines() == 1 || machines() == members(); }
};

inline void PrintTo(const MachineLayout& layout, std::ostream* out) { *out << layout.name; }

// 2x1, 2x2, uneven, one each, interleaved, a subset in another order, machines in another order.
const std::vector<MachineLayout>& machineLayouts();

// Thresholds so low that small tensors pass all ways.
collective::hierarchy::HierarchyTuning smallChunks();

// What the runtime would make; collective over the members.
collective::hierarchy::HierarchyParts makeParts(GroupMember& member, const MachineLayout& layout);
std::unique_ptr<collective::Communicator> makeTestHierarchy(
    GroupMember& member, const MachineLayout& layout,
    const collective::hierarchy::HierarchyTuning& tuning = smallChunks());

// As makeData, up to kMostBytes, and much cheaper: windows of data that is made once.
inline constexpr std::size_t kMostBytes = 300'000;
Bytes sampleData(DType dtype, std::int64_t count, std::uint64_t seed, int member);

// Members' data reduced first on each machine, then across machines, in float32 or wider, rounded
// once: the bits that the hierarchy promises over an engine that reduces in member order.
Bytes reducedByMachines(const MachineLayout& layout, const std::vector<Bytes>& inputs,
                        std::int64_t count, DType dtype, ReduceOp op, Scale scale);

}  // namespace farandole::testing
