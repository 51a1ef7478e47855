// The process sets of a runtime: which members they have here and elsewhere, and what connects
// them.
#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "collective/hierarchy/hierarchy.h"
#include "collective/link/link_communicator.h"
#include "collective/shm/shm_communicator.h"
#include "control/link_control.h"
#include "control/shm_control.h"
#include "runtime/runtime.h"

namespace farandole::runtime {
namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

std::string show(const std::vector<std::int32_t>& ranks) {
  std::string text = "{";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(ranks[i]);
  return text + "}";
}

// What messages call the ranks: "rank 3".
std::vector<std::string> namesOf(const std::vector<std::int32_t>& ranks) {
  std::vector<std::string> names;
  for (const auto rank : ranks) names.push_back("rank " + std::to_string(rank));
  return names;
}

// It is short enough for a bootstrap key, however many ranks there are.
std::string digest(const std::vector<std::int32_t>& ranks) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const auto rank : ranks) hash = (hash ^ static_cast<std::uint32_t>(rank)) * 1099511628211u;
  return std::to_string(ranks.size()) + "-" + std::to_string(ranks.front()) + "-" +
         std::to_string(hash);
}

// The keys of one process set: one for all its members, one for the carriers of its hierarchy, one
// for its ordered operations, and one each for Gloo's messages among the first two.
constexpr std::uint32_t kLinkKeysPerSet = 5;
constexpr std::uint32_t kGlooKeys = 3;
// A key consists of the rank that chose it and a counter. Keys are never used twice, because a slow
// message of a removed set could arrive at its successor.
constexpr int kLinkKeyBits = 24;

template <typename T>
std::optional<T> wholeNumber(std::string_view text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Runtime::Locals Runtime::localsOf(const SetInfo& info) const {
  Locals locals;
  for (const auto rank : info.ranks) {
    if (!topology_.sameMachine(rank, config_.rank)) continue;
    if (rank == config_.rank) locals.me = static_cast<int>(locals.ranks.size());
    locals.ranks.push_back(topology_.at(rank).localRank);
  }
  return locals;
}

Result<collective::shm::SharedAreas::UsePtr> Runtime::areaOf(const Locals& locals,
                                                             std::size_t bytes,
                                                             const std::string& key,
                                                             Deadline deadline) {
  const int members = static_cast<int>(locals.ranks.size());
  if (locals.me == 0) {
    auto area = areas_->make(bytes, members);
    FARANDOLE_RETURN_IF_ERROR(area.status());
    if (members > 1) {
      const auto offset = neighbourhood_->offsetOf((*area)->data());
      FARANDOLE_RETURN_IF_ERROR(bootstrap_->put(key, std::to_string(offset), deadline));
    }
    return area;
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto text, bootstrap_->get(key, deadline));
  const auto offset = wholeNumber<std::uint64_t>(text);
  return areas_->join(locals.ranks.front(), offset.value_or(UINT64_MAX), bytes);
}

std::function<void()> Runtime::ownBell() {
  return [neighbourhood = neighbourhood_.get()] { neighbourhood->ring(neighbourhood->rank()); };
}

bool Runtime::usesMesh(const SetInfo& info) const {
  if (!link_) return false;
  return !config_.hierarchy ||
         std::any_of(info.ranks.begin(), info.ranks.end(),
                     [&](std::int32_t rank) { return !topology_.sameMachine(rank, config_.rank); });
}

Result<std::uint32_t> Runtime::linkKeyOf(std::int32_t id, const SetInfo& info,
                                         const std::string& key, Deadline deadline) {
  if (id == 0) return 0;
  if (info.me != 0) {
    FARANDOLE_ASSIGN_OR_RETURN(auto text, bootstrap_->get(key + "/link", deadline));
    const auto number = wholeNumber<std::uint32_t>(text);
    if (!number || *number >= (1u << kLinkKeyBits)) {
      return Status::internal("rank " + std::to_string(info.ranks.front()) +
                              " chose an impossible key for process set " + show(info.ranks));
    }
    return *number;
  }
  std::uint32_t number = 0;
  {
    const MutexLock lock(mutex_);
    nextLinkKey_ += kLinkKeysPerSet;
    number = nextLinkKey_;
  }
  const int rankBits = std::bit_width(static_cast<std::uint32_t>(config_.size - 1));
  const int counterBits = std::max(0, kLinkKeyBits - rankBits);
  if (number + kLinkKeysPerSet > 1u << counterBits) {
    return Status::unavailable("rank " + std::to_string(config_.rank) +
                               " cannot be the first of so many process sets between machines (" +
                               std::to_string(number / kLinkKeysPerSet) + ")");
  }
  number |= static_cast<std::uint32_t>(config_.rank) << counterBits;
  FARANDOLE_RETURN_IF_ERROR(bootstrap_->put(key + "/link", std::to_string(number), deadline));
  return number;
}

Result<std::unique_ptr<collective::Communicator>> Runtime::outerCommunicator(
    const std::vector<std::int32_t>& ranks, int me, std::uint32_t key, Deadline deadline) {
  if (engine_ != nullptr) return engine_->communicator(ranks, key, deadline);
  collective::link::LinkOptions options;
  options.mesh = &link_->mesh();
  options.ranks = ranks;
  options.me = me;
  options.key = key;
  options.wake = ownBell();
  options.wire = collective::link::wireFormatFromName(config_.wire)
                     .value_or(collective::link::WireFormat::kNative);
  for (const auto rank : ranks) options.hosts.push_back(topology_.at(rank).host);
  auto own = collective::link::makeLinkCommunicator(std::move(options));
  if (!gloo_) return own;
  collective::gloo::GlooOptions gloo;
  gloo.port = collective::gloo::makeGlooPort(link_->mesh());
  gloo.ranks = ranks;
  gloo.me = me;
  gloo.key = key + kGlooKeys;
  gloo.wake = ownBell();
  gloo.other = std::move(own);
  return gloo_->make(std::move(gloo));
}

Result<std::unique_ptr<collective::Communicator>> Runtime::communicatorOf(const SetInfo& info,
                                                                          std::uint32_t linkKey,
                                                                          const Locals& locals,
                                                                          std::byte* area,
                                                                          Deadline deadline) {
  if (!usesMesh(info)) {
    return collective::shm::makeShmCommunicator(*neighbourhood_, area, locals.ranks, locals.me);
  }
  collective::hierarchy::HierarchyParts parts;
  parts.machineOf = topology_.machinesOf(info.ranks);
  parts.me = info.me;
  std::vector<std::vector<std::int32_t>> members;  // global ranks, by machine
  for (std::size_t i = 0; i < info.ranks.size(); ++i) {
    const auto machine = static_cast<std::size_t>(parts.machineOf[i]);
    if (machine >= members.size()) members.resize(machine + 1);
    members[machine].push_back(info.ranks[i]);
  }
  const bool alone = std::all_of(members.begin(), members.end(),
                                 [](const auto& each) { return each.size() == 1; });
  FARANDOLE_ASSIGN_OR_RETURN(parts.flat, outerCommunicator(info.ranks, info.me, linkKey, deadline));
  if (alone || !config_.hierarchy) return std::move(parts.flat);

  std::size_t slices = members.front().size();
  for (const auto& each : members) slices = std::min(slices, each.size());
  const auto slice = static_cast<std::size_t>(locals.me);
  if (slice < slices) {
    std::vector<std::int32_t> carriers;
    for (const auto& each : members) carriers.push_back(each[slice]);
    FARANDOLE_ASSIGN_OR_RETURN(
        parts.between,
        outerCommunicator(carriers, parts.machineOf[static_cast<std::size_t>(info.me)], linkKey + 1,
                          deadline));
  }
  parts.local =
      collective::shm::makeShmCommunicator(*neighbourhood_, area, locals.ranks, locals.me);
  parts.allocate = [this](std::size_t bytes) { return arena().allocate(bytes); };
  parts.free = [this](void* memory) { arena().free(memory); };
  return collective::hierarchy::makeHierarchy(std::move(parts));
}

std::unique_ptr<conductor::OrderedOperations> Runtime::orderedOf(const SetInfo& info,
                                                                 std::uint32_t key) {
  control::Switchboard& switchboard = link_->switchboard();
  control::OrderedChannel::Options options;
  options.me = info.me;
  options.wake = ownBell();
  options.memberNames = namesOf(info.ranks);
  options.send = [&switchboard, key, mesh = &link_->mesh(), ranks = info.ranks](
                     int member, std::string& front, std::span<const std::byte> body) {
    const std::int32_t rank = ranks[static_cast<std::size_t>(member)];
    const Status sent = switchboard.sendRecord(rank, key, front, body);
    // The watch learns of a connection that has ended. A connection that accepts no more must be
    // ended too, because a record that is missing would be missing for ever.
    if (sent.code() == Code::kUnavailable) mesh->drop(rank, sent);
  };
  options.room = control::Switchboard::kFront;
  options.detach = [&switchboard, key] { switchboard.records().detach(key); };
  auto ordered = std::make_unique<conductor::OrderedOperations>(std::move(options));
  switchboard.records().attach(
      key, [channel = &ordered->channel(), ranks = info.ranks](int from, RawBytes& message) {
        const auto found = std::find(ranks.begin(), ranks.end(), from);
        // Messages of a rank that is not a member are ignored.
        if (found != ranks.end())
          channel->receive(static_cast<int>(found - ranks.begin()), message);
      });
  return ordered;
}

Status Runtime::makeSet(std::int32_t id, const SetInfo& info, const std::string& key,
                        Deadline deadline) {
  const Locals locals = localsOf(info);
  const int members = static_cast<int>(locals.ranks.size());
  const bool mesh = usesMesh(info);
  const std::size_t controlBytes = mesh ? 0 : aligned(control::ShmControl::bytesNeeded(members));
  FARANDOLE_ASSIGN_OR_RETURN(
      auto area, areaOf(locals, controlBytes + collective::shm::shmCommunicatorBytes(members),
                        key + "/m" + std::to_string(topology_.at(config_.rank).machine), deadline));
  std::uint32_t linkKey = 0;
  if (mesh) {
    FARANDOLE_ASSIGN_OR_RETURN(linkKey, linkKeyOf(id, info, key, deadline));
  }

  conductor::ProcessSet::Components components;
  std::byte* const memory = area->data();
  components.memory = std::move(area);
  components.id = id;
  components.ranks = info.ranks;
  components.me = info.me;
  for (const auto rank : info.ranks) components.hosts.push_back(topology_.at(rank).host);
  if (mesh) {
    control::LinkControl::Options options;
    options.key = linkKey;
    options.ranks = info.ranks;
    options.me = info.me;
    options.wake = ownBell();
    options.mark = [marks = marks_.get()] { return marks->mine(); };
    options.onLeft = [marks = marks_.get()](std::int32_t rank, std::uint32_t mark) {
      if (mark != conductor::kStillHere) marks->note(rank, mark);
    };
    components.control =
        std::make_unique<control::LinkControl>(link_->switchboard(), std::move(options));
  } else {
    components.control =
        std::make_unique<control::ShmControl>(*neighbourhood_, memory, locals.ranks, locals.me);
  }
  FARANDOLE_ASSIGN_OR_RETURN(
      components.communicator,
      communicatorOf(info, linkKey, locals, memory + controlBytes, deadline));
  components.isShared = [arena = &arena()](const void* p, std::size_t bytes) {
    return arena->owns(p, bytes);
  };
  components.betweenMachines = mesh;
  // If there is an MPI, its network is faster.
  if (mesh && engine_ == nullptr) components.ordered = orderedOf(info, linkKey + 2);
  if (mesh) {
    components.endTraffic = [link = link_.get(), ranks = info.ranks,
                             me = config_.rank](const Status& status) {
      for (const auto rank : ranks) {
        if (rank != me) link->mesh().drop(rank, status);
      }
    };
  }
  if (info.me == 0) {
    control::Sequencer::Options options;
    options.memberNames = namesOf(info.ranks);
    options.fusionBytes = config_.fusionBytes;
    options.eagerBytes = config_.eagerBytes;
    options.batchDelay = config_.batchDelay;
    options.planCapacity = static_cast<std::size_t>(config_.planCapacity);
    components.sequencer = std::make_unique<control::Sequencer>(std::move(options));
  }
  conductor_->addSet(std::make_unique<conductor::ProcessSet>(std::move(components), *conductor_));
  logDebug("built process set " + std::to_string(id) + " of " + rankList(info.ranks) + ", " +
           (mesh ? "between machines" : "in shared memory") + "; rank " +
           std::to_string(info.ranks.front()) + " decides its order");
  const MutexLock lock(mutex_);
  sets_[id] = std::make_shared<const SetInfo>(info);
  return {};
}

Result<std::int32_t> Runtime::addSet(std::vector<std::int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty()) return Status::invalid("a process set needs at least one rank");
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
    return Status::invalid("process set " + show(ranks) + " names a rank twice");
  }
  if (ranks.front() < 0 || ranks.back() >= config_.size) {
    return Status::invalid("process set " + show(ranks) +
                           " names a rank that does not exist: the job has ranks 0 to " +
                           std::to_string(config_.size - 1));
  }
  SetInfo info;
  info.ranks = std::move(ranks);
  const auto mine = std::find(info.ranks.begin(), info.ranks.end(), config_.rank);
  std::int32_t id = 0;
  int instance = 0;
  {
    const MutexLock lock(mutex_);
    id = nextSet_++;
    if (mine == info.ranks.end()) {
      sets_[id] = std::make_shared<const SetInfo>(info);
      return id;
    }
    instance = instances_[info.ranks]++;
  }
  info.me = static_cast<int>(mine - info.ranks.begin());
  const std::string key =
      "e" + std::to_string(epoch_) + "/set/" + digest(info.ranks) + "/" + std::to_string(instance);
  const Status made = makeSet(id, info, key, Deadline::after(config_.startTimeout));
  if (made.code() == Code::kTimeout) {
    return Status::timeout("rank " + std::to_string(info.ranks.front()) +
                           " has not added process set " + show(info.ranks) +
                           " within the start timeout: every member must add it")
        .withRank(info.ranks.front(), config_.host);
  }
  FARANDOLE_RETURN_IF_ERROR(made);
  return id;
}

Status Runtime::removeSet(std::int32_t id) {
  if (id == 0) return Status::invalid("the world (process set 0) cannot be removed");
  const auto info = set(id);
  if (!info) return Status::invalid("there is no process set " + std::to_string(id));
  if (info->me >= 0) FARANDOLE_RETURN_IF_ERROR(conductor_->removeSet(id));
  logDebug("removed process set " + std::to_string(id));
  const MutexLock lock(mutex_);
  sets_.erase(id);
  return {};
}

}  // namespace farandole::runtime
