#include "api/runtime.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "bootstrap/meeting.h"
#include "collective/shm/shm_communicator.h"
#include "conductor/leave_mark.h"
#include "conductor/process_state.h"
#include "control/shm_control.h"

namespace farandole {
namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

std::string show(const std::vector<std::int32_t>& ranks) {
  std::string text = "{";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(ranks[i]);
  return text + "}";
}

// Short enough for a bootstrap key, however many ranks.
std::string digest(const std::vector<std::int32_t>& ranks) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const auto rank : ranks) hash = (hash ^ static_cast<std::uint32_t>(rank)) * 1099511628211u;
  return std::to_string(ranks.size()) + "-" + std::to_string(ranks.front()) + "-" +
         std::to_string(hash);
}

}  // namespace

Runtime::Runtime(const Config& config, std::uint64_t epoch, AgentClient* agent, Timeline& timeline)
    : config_(config), epoch_(epoch), agent_(agent), timeline_(timeline) {}

Result<std::shared_ptr<Runtime>> Runtime::start(const Config& config, std::uint64_t epoch,
                                                AgentClient* agent, Timeline& timeline,
                                                Deadline deadline) {
  if (config.size != config.localSize) {
    return Status::unavailable(
        "this build connects ranks of one machine; the job spans several (FARANDOLE_SIZE=" +
        std::to_string(config.size) + ", FARANDOLE_LOCAL_SIZE=" + std::to_string(config.localSize) +
        ")");
  }
  if (config.size > kMaxLocalRanks) {
    return Status::invalid(std::to_string(config.size) + " ranks on one machine: at most " +
                           std::to_string(kMaxLocalRanks) + " are possible");
  }
  std::shared_ptr<Runtime> runtime(new Runtime(config, epoch, agent, timeline));
  if (Status status = runtime->join(deadline); !status.ok()) {
    if (runtime->conductor_) runtime->stop();
    return status;
  }
  return runtime;
}

Status Runtime::join(Deadline deadline) {
  auto arena = Arena::create(static_cast<std::size_t>(config_.arenaBytes));
  FARANDOLE_RETURN_IF_ERROR(arena.status());
  const std::string prefix =
      "e" + std::to_string(epoch_) + "/h" + std::to_string(config_.crossRank);
  std::vector<UniqueFd> arenas;
  std::vector<UniqueFd> pidfds;
  if (config_.size > 1) {
    auto met = meet(*agent_, config_.job, config_.secret, epoch_, config_.localRank,
                    config_.localSize, prefix, (*arena)->fd(), deadline);
    FARANDOLE_RETURN_IF_ERROR(met.status());
    arenas = std::move(met->arenas);
    pidfds = std::move(met->pidfds);
    pids_ = std::move(met->pids);
  } else {
    arenas.emplace_back();
    pidfds.emplace_back();
  }
  auto neighbourhood = Neighbourhood::create(std::move(arena).value(), config_.localRank, epoch_,
                                             std::move(arenas), std::move(pidfds), deadline);
  FARANDOLE_RETURN_IF_ERROR(neighbourhood.status());
  neighbourhood_ = std::move(neighbourhood).value();

  Conductor::Options options;
  options.spin = config_.spin;
  options.stallWarning = config_.stallWarning;
  options.stallShutdown = config_.stallShutdown;
  options.stopped = [pids = pids_](std::int32_t rank) {
    const auto at = static_cast<std::size_t>(rank);
    return at < pids.size() && isStopped(processState(pids[at]));
  };
  conductor_ = std::make_unique<Conductor>(*neighbourhood_, timeline_, options);

  std::vector<Watch::Peer> peers;
  for (int i = 0; i < config_.localSize; ++i) {
    if (i == config_.localRank) continue;
    peers.push_back({i, i, config_.host, pids_[static_cast<std::size_t>(i)]});
  }
  auto watch = Watch::start(*neighbourhood_, *conductor_, std::move(peers));
  FARANDOLE_RETURN_IF_ERROR(watch.status());
  {
    const std::lock_guard lock(watchMutex_);
    watch_ = std::move(watch).value();
  }

  SetInfo world;
  world.ranks.resize(static_cast<std::size_t>(config_.size));
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  world.me = config_.rank;
  return makeSet(0, world, prefix + "/world", deadline);
}

Result<void*> Runtime::areaOf(const SetInfo& info, std::size_t bytes, const std::string& key,
                              Deadline deadline) {
  const bool provider = info.me == 0;
  if (provider) {
    auto memory = arena().allocate(bytes);
    FARANDOLE_RETURN_IF_ERROR(memory.status());
    if (info.ranks.size() > 1) {
      const Status told =
          agent_->put(key, std::to_string(neighbourhood_->offsetOf(*memory)), deadline);
      if (!told.ok()) {
        arena().free(*memory);
        return told;
      }
    }
    return *memory;
  }
  auto text = agent_->get(key, deadline);
  FARANDOLE_RETURN_IF_ERROR(text.status());
  std::uint64_t offset = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), offset);
  std::byte* area = nullptr;
  if (error == std::errc() && end == text->data() + text->size()) {
    area = neighbourhood_->at(info.ranks.front(), offset, bytes);
  }
  if (area == nullptr) {
    return Status::internal("rank " + std::to_string(info.ranks.front()) +
                            " announced shared memory outside of its arena");
  }
  return static_cast<void*>(area);
}

Status Runtime::makeSet(std::int32_t id, const SetInfo& info, const std::string& key,
                        Deadline deadline) {
  const int members = static_cast<int>(info.ranks.size());
  const std::size_t controlBytes = aligned(ShmControl::bytesNeeded(members));
  auto area = areaOf(info, controlBytes + shmCommunicatorBytes(members), key, deadline);
  FARANDOLE_RETURN_IF_ERROR(area.status());

  // On one machine a local rank is a global rank.
  const std::vector<int> locals(info.ranks.begin(), info.ranks.end());
  auto* control = static_cast<std::byte*>(*area);
  ProcessSet::Parts parts;
  parts.id = id;
  parts.ranks = info.ranks;
  parts.me = info.me;
  parts.hosts.assign(info.ranks.size(), config_.host);
  parts.control = std::make_unique<ShmControl>(*neighbourhood_, control, locals, info.me);
  parts.communicator =
      makeShmCommunicator(*neighbourhood_, control + controlBytes, locals, info.me);
  parts.isShared = [arena = &arena()](const void* p, std::size_t bytes) {
    return arena->owns(p, bytes);
  };
  if (info.me == 0) {
    Sequencer::Options options;
    for (const auto rank : info.ranks)
      options.memberNames.push_back("rank " + std::to_string(rank));
    options.fusionBytes = config_.fusionBytes;
    options.eagerBytes = config_.eagerBytes;
    options.batchDelay = config_.batchDelay;
    options.planCapacity = static_cast<std::size_t>(config_.planCapacity);
    parts.sequencer = std::make_unique<Sequencer>(std::move(options));
  }
  conductor_->addSet(std::make_unique<ProcessSet>(std::move(parts), *conductor_));
  const std::lock_guard lock(mutex_);
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
    const std::lock_guard lock(mutex_);
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
  // Its shared memory stays until shutdown: slower members may still be reading there.
  const std::lock_guard lock(mutex_);
  sets_.erase(id);
  return {};
}

std::shared_ptr<const Runtime::SetInfo> Runtime::set(std::int32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sets_.find(id);
  return found != sets_.end() ? found->second : nullptr;
}

std::vector<std::int32_t> Runtime::setIds() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::int32_t> ids;
  for (const auto& [id, info] : sets_) ids.push_back(id);
  return ids;
}

void Runtime::rankEnded(const RankEnd& end) {
  const std::lock_guard lock(watchMutex_);
  if (watch_) watch_->rankEnded(end);
}

void Runtime::stop() {
  conductor_->stop();
  // After the last word on every control channel: from now on this process may end.
  std::uint32_t here = kStillHere;
  neighbourhood_->header().leaves[neighbourhood_->rank()].left.compare_exchange_strong(
      here, kLeftInGoodOrder, std::memory_order_release, std::memory_order_relaxed);
  neighbourhood_->ringAll();
  std::unique_ptr<Watch> watch;  // ends with this function, outside of the lock
  {
    const std::lock_guard lock(watchMutex_);
    watch = std::move(watch_);
  }
}

void Runtime::closeAfterFork() {
  if (!neighbourhood_) return;
  for (int i = 0; i < neighbourhood_->size(); ++i) {
    if (neighbourhood_->pidfd(i) >= 0) ::close(neighbourhood_->pidfd(i));
  }
  ::close(neighbourhood_->arena().fd());
}

}  // namespace farandole
