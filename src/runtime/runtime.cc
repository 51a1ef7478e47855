#include "runtime/runtime.h"

#include <unistd.h>

#include <chrono>
#include <numeric>

#include "base/log.h"
#include "base/process_state.h"
#include "bootstrap/meeting.h"

namespace farandole::runtime {
namespace {

// MPI's own starters usually give none at all.
constexpr Duration kGraceUnderMpi = std::chrono::seconds(10);

// For the log.
const char* startedBy(const Config& config, const collective::Engine* mpi) {
  if (!config.agent.empty()) return "started by farandole run";
  if (mpi != nullptr) return "started by MPI";
  return config.size > 1 ? "started by another launcher" : "started alone";
}

// Also where MPI has started the ranks.
bool runsOnTheLink(EngineChoice engine) {
  return engine == EngineChoice::kLink || engine == EngineChoice::kGloo;
}

}  // namespace

Runtime::Runtime(const Config& config, std::uint64_t epoch, bootstrap::Bootstrap* bootstrap,
                 collective::Engine* engine, observe::Timeline& timeline)
    : config_(config),
      epoch_(epoch),
      bootstrap_(bootstrap),
      engine_(runsOnTheLink(config.engine) ? nullptr : engine),
      mpi_(engine),
      timeline_(timeline),
      stopped_(static_cast<std::size_t>(config.size)) {}

Result<std::shared_ptr<Runtime>> Runtime::start(const Config& config, std::uint64_t epoch,
                                                bootstrap::Bootstrap* bootstrap,
                                                collective::Engine* engine,
                                                observe::Timeline& timeline, Deadline deadline) {
  if (config.localSize > machine::kMaxLocalRanks) {
    return Status::invalid(std::to_string(config.localSize) + " ranks on one machine: at most " +
                           std::to_string(machine::kMaxLocalRanks) + " are possible");
  }
  if (config.engine == EngineChoice::kShm && config.size != config.localSize) {
    return Status::invalid(
        "FARANDOLE_ENGINE=shm connects the ranks of one machine, and this job has"
        " several: leave it away, or take link");
  }
  if (config.engine == EngineChoice::kMpi && engine == nullptr && config.size > 1) {
    return Status::invalid(
        "FARANDOLE_ENGINE=mpi: MPI must start its ranks itself: mpirun -np N PROGRAM");
  }
  logDebug("joins epoch " + std::to_string(epoch) + ": rank " + std::to_string(config.rank) +
           " of " + std::to_string(config.size) + ", local rank " +
           std::to_string(config.localRank) + " of " + std::to_string(config.localSize) + " on " +
           config.host + ", " + startedBy(config, engine));
  std::shared_ptr<Runtime> runtime(new Runtime(config, epoch, bootstrap, engine, timeline));
  if (Status status = runtime->join(deadline); !status.ok()) {
    if (runtime->conductor_) runtime->stop();
    return status;
  }
  return runtime;
}

Status Runtime::join(Deadline deadline) {
  if (config_.engine == EngineChoice::kGloo && config_.size > 1) {
    FARANDOLE_ASSIGN_OR_RETURN(gloo_, collective::gloo::GlooEngine::load());
  }
  FARANDOLE_RETURN_IF_ERROR(joinNeighbourhood(deadline));
  FARANDOLE_RETURN_IF_ERROR(joinMesh(deadline));
  FARANDOLE_RETURN_IF_ERROR(startConducting());
  SetInfo world;
  world.ranks.resize(static_cast<std::size_t>(config_.size));
  std::iota(world.ranks.begin(), world.ranks.end(), 0);
  world.me = config_.rank;
  return makeSet(0, world, "e" + std::to_string(epoch_) + "/world", deadline);
}

Status Runtime::joinNeighbourhood(Deadline deadline) {
  FARANDOLE_ASSIGN_OR_RETURN(auto arena,
                             machine::Arena::create(static_cast<std::size_t>(config_.arenaBytes)));
  std::vector<UniqueFd> arenas;
  std::vector<UniqueFd> pidfds;
  if (config_.localSize > 1) {
    const std::string prefix =
        "e" + std::to_string(epoch_) + "/h" + std::to_string(config_.machine);
    FARANDOLE_ASSIGN_OR_RETURN(
        auto met,
        bootstrap::meet(*bootstrap_, config_.job, config_.secret, epoch_, config_.localRank,
                        config_.localSize, prefix, arena->fd(), deadline));
    arenas = std::move(met.arenas);
    pidfds = std::move(met.pidfds);
    pids_ = std::move(met.pids);
  } else {
    arenas.emplace_back();
    pidfds.emplace_back();
    pids_.push_back(::getpid());
  }
  FARANDOLE_ASSIGN_OR_RETURN(neighbourhood_, machine::Neighbourhood::create(
                                                 std::move(arena), config_.localRank, epoch_,
                                                 std::move(arenas), std::move(pidfds), deadline));
  areas_ = std::make_unique<collective::shm::SharedAreas>(*neighbourhood_);
  logDebug("mapped the shared memory of " + std::to_string(neighbourhood_->size()) +
           " ranks of this machine");
  return {};
}

Status Runtime::joinMesh(Deadline deadline) {
  const bool everybody =
      !config_.hierarchy && config_.engine != EngineChoice::kShm && config_.size > 1;
  if (config_.size == config_.localSize && !everybody) {
    topology_ = Topology::ofOneMachine(config_);
    logDebug("needs no connections: all ranks are on this machine");
    return {};
  }
  FARANDOLE_ASSIGN_OR_RETURN(link_, JobLink::start(config_, epoch_));
  FARANDOLE_ASSIGN_OR_RETURN(
      topology_, Topology::exchange(*bootstrap_, config_, epoch_, link_->mesh().card(), deadline));
  if (static_cast<int>(topology_.ranksOn(config_.machine).size()) != config_.localSize) {
    return Status::internal("the ranks disagree on how many of them are on " + config_.host);
  }
  logDebug("knows where all " + std::to_string(config_.size) + " ranks are");
  return link_->introduce(topology_, config_.rank);
}

Status Runtime::startConducting() {
  const std::vector<std::int32_t> here = topology_.ranksOn(topology_.at(config_.rank).machine);
  std::vector<int> localRanks(static_cast<std::size_t>(config_.size), -1);
  for (const auto rank : here) {
    localRanks[static_cast<std::size_t>(rank)] = topology_.at(rank).localRank;
  }
  marks_ = std::make_unique<conductor::LeaveMarks>(*neighbourhood_, localRanks);

  bell_ = std::make_unique<conductor::MachineBell>(*neighbourhood_);
  const auto stopped = [this, localRanks](std::int32_t rank) {
    const int local = localRanks[static_cast<std::size_t>(rank)];
    if (local < 0) return stopped_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
    return standstillOf(pids_[static_cast<std::size_t>(local)]) != Standstill::kNone;
  };
  rankStates_ = std::make_unique<conductor::MachineRankStates>(*neighbourhood_, *marks_, stopped);
  conductor::Conductor::Options options;
  options.spin = neighbourhood_->crowded() ? Duration::zero() : config_.spin;
  options.yield = config_.yield;
  options.linkSpin = neighbourhood_->roomy() ? config_.linkSpin : Duration::zero();
  options.stallWarning = config_.stallWarning;
  options.stallShutdown = config_.stallShutdown;
  options.tidy = [areas = areas_.get()] { areas->collect(); };
  conductor_ = std::make_unique<conductor::Conductor>(*bell_, *rankStates_, link_.get(), timeline_,
                                                      std::move(options));
  FARANDOLE_RETURN_IF_ERROR(conductor_->start());

  conductor::Watch::Options watched;
  watched.me = config_.rank;
  watched.stopsReported = !config_.agent.empty();
  watched.lost = [this](const Status& status) { lost(status); };
  for (const auto rank : here) {
    if (rank == config_.rank) continue;
    const int local = topology_.at(rank).localRank;
    watched.peers.push_back({rank, local, config_.host, pids_[static_cast<std::size_t>(local)]});
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto watch, conductor::Watch::start(*neighbourhood_, *marks_,
                                                                 *conductor_, std::move(watched)));
  {
    const MutexLock lock(watchMutex_);
    watch_ = std::move(watch);
  }
  if (link_) {
    link_->listen([this](int rank, const Status& status) {
      const MutexLock lock(watchMutex_);
      if (watch_) watch_->connectionEnded(rank, status);
    });
  }
  return {};
}

void Runtime::lost(const Status& status) {
  logDebug("a rank is lost: " + status.message());
  if (mpi_ == nullptr) return;
  mpi_->rankLost(status.message());
  // Under our launcher, that ends the ranks, after its own --grace.
  if (config_.agent.empty()) abortAfter_.start(*mpi_, kGraceUnderMpi, status.message());
}

std::shared_ptr<const Runtime::SetInfo> Runtime::set(std::int32_t id) const {
  const MutexLock lock(mutex_);
  const auto found = sets_.find(id);
  return found != sets_.end() ? found->second : nullptr;
}

std::vector<std::int32_t> Runtime::setIds() const {
  const MutexLock lock(mutex_);
  std::vector<std::int32_t> ids;
  for (const auto& [id, info] : sets_) ids.push_back(id);
  return ids;
}

void Runtime::rankEnded(const bootstrap::RankEnd& end) {
  const MutexLock lock(watchMutex_);
  if (watch_) watch_->rankEnded(end);
}

void Runtime::rankStopped(const bootstrap::RankStop& stop) {
  if (stop.rank < 0 || stop.rank >= config_.size) return;
  const bool stands = stop.how != Standstill::kNone;
  stopped_[static_cast<std::size_t>(stop.rank)].store(stands, std::memory_order_relaxed);
  if (link_) link_->mesh().peerStopped(stop.rank, stands);
  const MutexLock lock(watchMutex_);
  if (watch_) watch_->rankStopped(stop);
}

bool Runtime::halt() {
  if (link_) return false;
  logDebug("ends what is in flight without a word to the others");
  conductor_->halt();
  return true;
}

void Runtime::stop() {
  logDebug("leaves epoch " + std::to_string(epoch_));
  conductor_->stop();
  // After the last word on every control channel: from now on this process may end.
  marks_->leave(conductor::kLeftInGoodOrder);
  neighbourhood_->ringAll();
  if (link_) link_->stop();
  std::unique_ptr<conductor::Watch> watch;  // ends with this function, outside of the lock
  {
    const MutexLock lock(watchMutex_);
    watch = std::move(watch_);
  }
  abortAfter_.cancel();
  logDebug("has left epoch " + std::to_string(epoch_));
}

void Runtime::closeAfterFork() {
  if (!neighbourhood_) return;
  for (int i = 0; i < neighbourhood_->size(); ++i) {
    if (neighbourhood_->pidfd(i) >= 0) ::close(neighbourhood_->pidfd(i));
  }
  ::close(neighbourhood_->arena().fd());
  if (link_) link_->mesh().forgetAfterFork();
}

}  // namespace farandole::runtime
