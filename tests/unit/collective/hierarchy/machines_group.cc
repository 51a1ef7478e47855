#include "unit/collective/hierarchy/machines_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/half.h"

namespace farandole::testing {
namespace {

using collective::hierarchy::HierarchyParts;
using collective::hierarchy::HierarchyTuning;

constexpr int kFlatKey = 0;
constexpr int kLocalKey = 1;
constexpr int kBetweenKey = 8;

bool isHalf(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBfloat16; }

Bytes widened(const Bytes& data, DType dtype) {
  Bytes result(data.size() * 2);
  for (std::size_t i = 0; i < data.size() / 2; ++i) {
    std::uint16_t half;
    std::memcpy(&half, data.data() + 2 * i, 2);
    const float value = dtype == DType::kFloat16 ? halfToFloat(half) : bfloatToFloat(half);
    std::memcpy(result.data() + 4 * i, &value, 4);
  }
  return result;
}

Bytes narrowed(const Bytes& data, DType dtype) {
  Bytes result(data.size() / 2);
  for (std::size_t i = 0; i < data.size() / 4; ++i) {
    float value;
    std::memcpy(&value, data.data() + 4 * i, 4);
    const std::uint16_t half = dtype == DType::kFloat16 ? floatToHalf(value) : floatToBfloat(value);
    std::memcpy(result.data() + 2 * i, &half, 2);
  }
  return result;
}

}  // namespace

int MachineLayout::memberOf(int rank) const {
  for (int member = 0; member < members(); ++member) {
    if (rankOf(member) == rank) return member;
  }
  return -1;
}

int MachineLayout::groupSize() const {
  int most = 0;
  for (int member = 0; member < members(); ++member) most = std::max(most, rankOf(member));
  return most + 1;
}

int MachineLayout::machines() const {
  return *std::max_element(machineOf.begin(), machineOf.end()) + 1;
}

std::vector<int> MachineLayout::membersOf(int machine) const {
  std::vector<int> result;
  for (int member = 0; member < members(); ++member) {
    if (machineOf[static_cast<std::size_t>(member)] == machine) result.push_back(member);
  }
  return result;
}

const std::vector<MachineLayout>& machineLayouts() {
  static const std::vector<MachineLayout> layouts = {
      {"TwoByOne", {0, 1}, {}},
      {"TwoByTwo", {0, 0, 1, 1}, {}},
      {"ThreeAndOne", {0, 0, 0, 1}, {}},
      {"TwoAndThree", {0, 0, 1, 1, 1}, {}},
      {"OneEach", {0, 1, 2}, {}},
      {"Interleaved", {0, 1, 2, 0, 1, 2}, {}},
      {"Subset", {1, 0, 1, 0, 0}, {5, 1, 2, 4, 0}},
      {"OneMachine", {0, 0}, {}},
  };
  return layouts;
}

HierarchyTuning smallChunks() {
  HierarchyTuning tuning;
  tuning.oneCarrierBelow = 2048;
  tuning.smallestChunk = 16 << 10;
  tuning.largestChunk = 64 << 10;
  return tuning;
}

HierarchyParts makeParts(GroupMember& member, const MachineLayout& layout) {
  const auto ranksOf = [&](const std::vector<int>& members) {
    std::vector<int> ranks;
    for (const int one : members) ranks.push_back(layout.rankOf(one));
    return ranks;
  };
  HierarchyParts parts;
  parts.machineOf = layout.machineOf;
  parts.me = layout.memberOf(member.rank());
  const int machine = layout.machineOf[static_cast<std::size_t>(parts.me)];
  const std::vector<int> neighbours = layout.membersOf(machine);
  const auto local = static_cast<std::size_t>(
      std::find(neighbours.begin(), neighbours.end(), parts.me) - neighbours.begin());
  std::size_t slices = neighbours.size();
  std::vector<int> carriers;
  for (int other = 0; other < layout.machines(); ++other) {
    const std::vector<int> members = layout.membersOf(other);
    slices = std::min(slices, members.size());
    if (local < members.size()) carriers.push_back(members[local]);
  }
  std::vector<int> all;
  for (int one = 0; one < layout.members(); ++one) all.push_back(one);
  parts.flat = member.communicator(ranksOf(all), kFlatKey);
  parts.local = member.communicator(ranksOf(neighbours), kLocalKey + machine);
  if (local < slices) {
    parts.between = member.communicator(ranksOf(carriers), kBetweenKey + static_cast<int>(local));
  }
  machine::Arena& arena = member.neighbourhood().arena();
  parts.allocate = [&arena](std::size_t bytes) { return arena.allocate(bytes); };
  parts.free = [&arena](void* memory) { arena.free(memory); };
  return parts;
}

std::unique_ptr<collective::Communicator> makeTestHierarchy(GroupMember& member,
                                                            const MachineLayout& layout,
                                                            const HierarchyTuning& tuning) {
  HierarchyParts parts = makeParts(member, layout);
  parts.tuning = tuning;
  return collective::hierarchy::makeHierarchy(std::move(parts));
}

Bytes sampleData(DType dtype, std::int64_t count, std::uint64_t seed, int member) {
  constexpr std::uint64_t kWindows = 4093;
  static std::map<DType, Bytes> made;
  const std::size_t size = sizeOf(dtype);
  Bytes& all = made[dtype];
  if (all.empty()) {
    all = makeData(dtype, static_cast<std::int64_t>(kMostBytes / size + kWindows), 99, 0);
  }
  const std::uint64_t window = (seed + 1009 * static_cast<std::uint64_t>(member)) % kWindows;
  const auto from = all.begin() + static_cast<std::ptrdiff_t>(window * size);
  return Bytes(from, from + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(count) * size));
}

Bytes reducedByMachines(const MachineLayout& layout, const std::vector<Bytes>& inputs,
                        std::int64_t count, DType dtype, ReduceOp op, Scale scale) {
  // Where arithmetic is exact the order does not matter.
  if (layout.degenerate() || (!isFloating(dtype) && !isComplex(dtype))) {
    return reduced(inputs, count, dtype, op, scale);
  }
  if (op == ReduceOp::kAverage) scale.divisor *= layout.members();
  const ReduceOp plain = op == ReduceOp::kAverage ? ReduceOp::kSum : op;
  const DType inside = isHalf(dtype) ? DType::kFloat32 : dtype;
  std::vector<Bytes> perMachine;
  for (int machine = 0; machine < layout.machines(); ++machine) {
    std::vector<Bytes> own;
    for (const int member : layout.membersOf(machine)) {
      const Bytes& data = inputs[static_cast<std::size_t>(member)];
      own.push_back(isHalf(dtype) ? widened(data, dtype) : data);
    }
    perMachine.push_back(reduced(own, count, inside, plain, {scale.pre, 1.0, 1}));
  }
  const Bytes all = reduced(perMachine, count, inside, plain, {});
  const Bytes result = reduced({all}, count, inside, plain, {1.0, scale.post, scale.divisor});
  return isHalf(dtype) ? narrowed(result, dtype) : result;
}

}  // namespace farandole::testing
