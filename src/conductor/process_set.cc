#include "conductor/process_set.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"

namespace farandole::conductor {
namespace {

// One set must not keep the driver from the others.
constexpr int kEntriesPerStep = 64;

std::uint64_t hashNames(const std::vector<Request*>& requests) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const auto* each : requests) {
    for (const char c : each->name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    hash = (hash ^ 0xffu) * 1099511628211u;
  }
  return hash == 0 ? 1 : hash;
}

Status checkGroup(const Request& request, std::span<const EntryPtr> entries) {
  if (entries.size() <= control::kMaxGroupPlans || request.group == 0 ||
      !control::othersDecideSize(request.meta.kind)) {
    return {};
  }
  const auto together = std::count_if(entries.begin(), entries.end(), [&](const auto& other) {
    return other->request.group == request.group;
  });
  if (static_cast<std::size_t>(together) <= control::kMaxGroupPlans) return {};
  return Status::invalid("a group of " + std::to_string(together) + " operations with " +
                         std::string(control::name(request.meta.kind)) + " among them: at most " +
                         std::to_string(control::kMaxGroupPlans) + " are possible");
}

void identifyGroups(std::span<const EntryPtr> entries) {
  std::unordered_map<std::uint64_t, std::vector<Request*>> groups;
  for (const auto& entry : entries) {
    Request& request = entry->request;
    const bool named =
        !isPointToPoint(request.meta.kind) && request.meta.kind != control::Kind::kJoin;
    if (request.group != 0 && named) groups[request.group].push_back(&request);
  }
  for (const auto& [user, members] : groups) {
    const std::uint64_t group = hashNames(members);
    for (auto* each : members) {
      each->meta.group = group;
      each->meta.groupSize = static_cast<std::int32_t>(members.size());
    }
  }
}

}  // namespace

ProcessSet::ProcessSet(Components components, SetObserver& observer)
    : memory_(std::move(components.memory)),
      id_(components.id),
      members_(std::move(components.ranks), std::move(components.hosts), components.me),
      betweenMachines_(components.betweenMachines),
      isShared_(std::move(components.isShared)),
      endTraffic_(std::move(components.endTraffic)),
      observer_(observer),
      control_(std::move(components.control)),
      communicator_(std::move(components.communicator)),
      ordered_(std::move(components.ordered)),
      outbox_(*control_),
      names_({.me = components.me,
              .isShared = [this](const Request& request) { return inSharedMemory(request); },
              .isHeld =
                  [this](const Entry& entry) {
                    return ordered_->channel().holds(entry.request.name, entry.place);
                  }},
             outbox_),
      culprits_(observer, members_),
      leavers_(*control_, members_, observer, !betweenMachines_),
      stalls_(observer, members_),
      runner_(*communicator_, members_, culprits_),
      pointToPoint_(*communicator_, members_, culprits_) {
  if (components.sequencer)
    sequencing_.emplace(std::move(components.sequencer), *control_, members_);
}

Status ProcessSet::submit(std::span<const EntryPtr> entries) {
  const MutexLock lock(mutex_);
  FARANDOLE_RETURN_IF_ERROR(over_);
  // First everything that can be refused, then nothing that can.
  FARANDOLE_RETURN_IF_ERROR(check(entries));
  // Before they are visible: a driver may complete them at once.
  inFlight_ += entries.size();
  bool anyGroup = false;
  for (const auto& entry : entries) {
    Request& request = entry->request;
    entry->exchange = exchangeOf(request);
    if (isPointToPoint(request.meta.kind) || request.meta.kind == control::Kind::kJoin) continue;
    if (entry->exchange) {
      ++orderedInFlight_;
      ordered_->submit(entry);
      continue;
    }
    if (request.ordered && ordered_ && collective::Exchange::serves(size()))
      ordered_->countByName(entry);
    if (request.name.empty()) request.name = names_.nameByCallOrder(request.meta.kind);
    anyGroup |= request.group != 0;
  }
  if (anyGroup) identifyGroups(entries);
  for (const auto& entry : entries) {
    if (!entry->exchange) publish(entry);
  }
  return {};
}

Status ProcessSet::check(std::span<const EntryPtr> entries) const {
  if (inFlight_ + entries.size() > control::kMaxPlans) {
    return Status::invalid("more than " + std::to_string(control::kMaxPlans) +
                           " operations would be in flight in process set " + std::to_string(id_) +
                           ": wait for some of them first");
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Request& request = entries[i]->request;
    if (request.meta.kind == control::Kind::kJoin) {
      if (!join_) continue;
      return Status(Code::kDuplicateName, "this rank has already joined and waits for the others");
    }
    FARANDOLE_RETURN_IF_ERROR(checkGroup(request, entries));
    if (isPointToPoint(request.meta.kind) || request.name.empty()) continue;
    if (!isDuplicate(entries.first(i), request)) continue;
    return Status(Code::kDuplicateName, "'" + request.name +
                                            "' is already in flight: wait for it, or give the "
                                            "second operation another name")
        .withTensor(request.name);
  }
  return {};
}

bool ProcessSet::isDuplicate(std::span<const EntryPtr> before, const Request& request) const {
  if (names_.isTaken(request)) return true;
  if (!keepsOrder(request) && ordered_ && ordered_->channel().holds(request.name)) return true;
  return std::any_of(before.begin(), before.end(), [&](const EntryPtr& other) {
    return other->request.name == request.name && !NameTable::mayShareName(other->request, request);
  });
}

bool ProcessSet::inSharedMemory(const Request& request) const {
  const auto bytes = static_cast<std::size_t>(request.meta.bytes());
  return isShared_(request.input, bytes) && isShared_(request.output, bytes);
}

std::optional<collective::Exchange> ProcessSet::exchangeOf(const Request& request) const {
  if (!ordered_ || !keepsOrder(request)) return std::nullopt;
  return OrderedOperations::exchangeOf(request.meta, size());
}

void ProcessSet::publish(const EntryPtr& entry) {
  const control::Kind kind = entry->request.meta.kind;
  if (isPointToPoint(kind)) return pointToPoint_.add(entry);
  if (kind != control::Kind::kJoin) return names_.publish(entry);
  join_ = entry;
  outbox_.send(control::Join{});
  debug("this rank has joined");
}

void ProcessSet::cancel(const EntryPtr& entry) {
  const MutexLock lock(mutex_);
  names_.withdraw(entry);
}

ProcessSet::Counters ProcessSet::counters() const {
  const MutexLock lock(mutex_);
  return {names_.counters().hits, names_.counters().misses, zeroCopyBytes_};
}

bool ProcessSet::step(TimePoint now) {
  bool moved = advancePointToPoint(now);
  if (ordered_) moved |= advanceOrdered();
  if (anythingToFlush()) {
    const MutexLock lock(mutex_);
    outbox_.flush();
  }
  bool sequenced = sequencing_ && sequence(now);
  for (int i = 0; i < kEntriesPerStep; ++i) {
    if (runner_.runs()) {
      if (!advanceBatch(now)) {
        moved |= runner_.moved();
        break;
      }
      sequenced = true;
    }
    if (!readLog(now)) break;
    sequenced = true;
  }
  // A batch that ended may let the next one go.
  if (sequenced && sequencing_ && !runner_.runs()) sequence(now);
  moved |= sequenced;
  if (!moved) moved = checkLeavers();
  return moved;
}

std::optional<TimePoint> ProcessSet::due() const {
  if (!sequencing_ || runner_.runs()) return std::nullopt;
  return sequencing_->sequencer().due();
}

bool ProcessSet::sequence(TimePoint now) {
  const bool moved = sequencing_->step(now, runner_.ended());
  if (!sequencing_->trouble().ok()) corrupt(sequencing_->trouble().message());
  return moved;
}

bool ProcessSet::readLog(TimePoint now) {
  const control::RingRead read = control_->nextEntry(bytes_);
  if (read == control::RingRead::kEmpty) return false;
  if (read == control::RingRead::kTooMuch) {
    corrupt(members_.name(0) + " sends more of the log than it was allowed to");
    return true;
  }
  if (read != control::RingRead::kRecord || !control::decode(bytes_, size(), entry_)) {
    corrupt("the log makes no sense");
    return true;
  }
  std::visit([&](auto& each) REQUIRES(driverRole) { handle(each, now); }, entry_);
  if (!runner_.runs()) runner_.executedUpTo(control_->position());
  return true;
}

void ProcessSet::handle(control::Define& entry, TimePoint) {
  // Names that are never used twice are defined all the time, so texts are made only if wanted.
  const bool tells = logs(LogLevel::kDebug);
  const std::string what =
      tells ? "'" + entry.name + "': " + control::describe(entry.meta) : std::string();
  bool first = false;
  {
    const MutexLock lock(mutex_);
    first = names_.define(entry);
  }
  if (tells && first) debug("all members agree on " + what);
}

void ProcessSet::handle(control::Batch& entry, TimePoint now) {
  std::vector<EntryPtr> entries;
  const bool joinedHere =
      std::find(entry.joined.begin(), entry.joined.end(), me()) != entry.joined.end();
  bool consistent = true;
  {
    const MutexLock lock(mutex_);
    // Its operations have failed here, because of a member that has left: the others' will, too.
    if (!over_.ok()) return;
    consistent = (!joinedHere || join_ != nullptr) && names_.entriesOf(entry, joinedHere, entries);
  }
  if (!consistent) return corrupt("the log names an operation that this rank has not submitted");
  runner_.start(std::move(entries), static_cast<int>(entry.joined.size()), now,
                control_->position());
}

void ProcessSet::handle(control::Refuse& entry, TimePoint) {
  EntryPtr refused;
  {
    const MutexLock lock(mutex_);
    refused = names_.refuse(entry);
  }
  if (!refused) return;
  debug("refused '" + entry.name + "': " + entry.text);
  complete(refused, members_.fault(Code::kMismatch, entry.text, entry.culprit));
}

void ProcessSet::handle(control::Joined& entry, TimePoint) {
  EntryPtr join;
  {
    const MutexLock lock(mutex_);
    if (!over_.ok()) return;
    join = std::exchange(join_, nullptr);
  }
  if (!join) return corrupt("the log says that everyone has joined, but this rank has not");
  join->outcome.lastJoined = members_.rank(entry.last);
  debug("all members have joined, the last was rank " + std::to_string(join->outcome.lastJoined));
  complete(join, {});
}

void ProcessSet::handle(control::Resend& entry, TimePoint) {
  if (entry.member != me()) return;
  const MutexLock lock(mutex_);
  names_.resend(entry.plan);
}

void ProcessSet::handle(control::Withdrawn& entry, TimePoint) {
  if (entry.member != me()) return;
  EntryPtr withdrawn;
  {
    const MutexLock lock(mutex_);
    withdrawn = names_.take(entry.name);
  }
  if (!withdrawn) return;
  debug((withdrawn->byName ? "retracted '" : "withdrew '") + entry.name + "'");
  if (withdrawn->byName) return ordered_->channel().retracted(*withdrawn);
  complete(withdrawn, Status(Code::kCancelled, "'" + entry.name + "' was cancelled by this rank"));
}

void ProcessSet::handle(control::Abort& entry, TimePoint) {
  observer_.broken(members_.fault(Code::kPeerLost, entry.text, entry.culprit));
}

bool ProcessSet::advanceBatch(TimePoint now) {
  const auto ended = runner_.advance(now);
  if (!ended) return false;
  // Some of a failed operation may still be running.
  if (ended->failed && endTraffic_) endTraffic_(ended->status);
  const auto executions = ended->run.executions();
  for (const Execution& each : executions) observer_.ran(each);
  {
    const MutexLock lock(mutex_);
    for (const Execution& each : executions) {
      for (const EntryPtr& entry : each.entries()) {
        if (!entry->neutral) names_.take(entry->request.name);
      }
    }
    zeroCopyBytes_ = communicator_->statistics().zeroCopyBytes;
  }
  for (const Execution& each : executions) {
    for (const EntryPtr& entry : each.entries()) {
      if (!entry->neutral) complete(entry, ended->status);
    }
  }
  // A failed engine stays failed, and the others wait for this rank in vain.
  if (ended->failed) observer_.broken(ended->status);
  return true;
}

bool ProcessSet::advancePointToPoint(TimePoint now) {
  if (!pointToPoint_.advance(now, transferred_)) return false;
  for (auto& each : transferred_) complete(each.entry, std::move(each.status));
  transferred_.clear();
  return true;
}

bool ProcessSet::advanceOrdered() {
  if (!ordered_->channel().stirred()) return false;
  if (Status status = ordered_->step(finished_); !status.ok()) {
    observer_.broken(std::move(status));
    return true;
  }
  const bool disputed = ordered_->channel().anyDisputed();
  if (disputed) {
    for (const auto& entry : ordered_->takeDisputed()) retract(entry);
  }
  if (finished_.empty()) return disputed;
  completeOrdered();
  return true;
}

void ProcessSet::completeOrdered() {
  for (const auto& each : finished_) {
    if (!each.entry->byName) --orderedInFlight_;
  }
  if (anythingDeferred()) {
    const MutexLock lock(mutex_);
    for (const auto& each : finished_) names_.publishNext(each.entry->request.name);
  }
  for (auto& each : finished_) {
    const bool broken = each.status.code() == Code::kInternal;
    Status status = each.status.ok()
                        ? Status()
                        : members_.fault(each.status.code(), each.status.message(), each.culprit);
    complete(each.entry, status);
    if (broken) observer_.broken(std::move(status));
  }
  finished_.clear();
}

void ProcessSet::retract(const EntryPtr& entry) {
  {
    const MutexLock lock(mutex_);
    if (!names_.retract(entry)) return;
  }
  ordered_->channel().retracted(*entry);
}

bool ProcessSet::checkLeavers() {
  if (ordered_) {
    // In the channel a member says itself that it leaves, behind all that it has sent there.
    if (const int member = ordered_->channel().lostTo(); member >= 0 && endBecauseOf(member))
      return true;
    const MutexLock lock(mutex_);
    if (inFlight_ == orderedInFlight_) return false;
  }
  if (!anythingInFlight()) return false;
  if (leavers_.any(runner_.position(),
                   [this](int member) REQUIRES(driverRole) { return endBecauseOf(member); })) {
    return true;
  }
  leavers_.lookForEnds();
  return false;
}

bool ProcessSet::endBecauseOf(int member) {
  const auto leaving = culprits_.leavingOf(member);
  if (!leaving) return false;
  debug("ends because of rank " + std::to_string(leaving->culprit) + ": " +
        leaving->status.message());
  observer_.lostTo(leaving->culprit);
  failAll(leaving->status);
  return true;
}

void ProcessSet::checkStalls(TimePoint now, TimePoint resumed, Duration warnAfter,
                             Duration endAfter) {
  auto verdict = stalls_.check({.now = now,
                                .resumed = resumed,
                                .runsSince = runner_.since(),
                                .ordered = ordered_.get(),
                                .sequencer = sequencing_ ? &sequencing_->sequencer() : nullptr,
                                .submittedBefore =
                                    [this](TimePoint then) {
                                      const MutexLock lock(mutex_);
                                      return names_.submittedBefore(then);
                                    }},
                               {warnAfter, endAfter});
  if (!verdict.broken.ok()) observer_.broken(std::move(verdict.broken));
  if (verdict.abort) sequencing_->append(std::move(*verdict.abort));
}

void ProcessSet::failAll(const Status& status) {
  auto transfers = pointToPoint_.takeInFlight();
  std::vector<EntryPtr> failed;
  const auto add = [&](const std::vector<EntryPtr>& more) {
    failed.insert(failed.end(), more.begin(), more.end());
  };
  for (const auto& each : transfers) failed.push_back(each.entry);
  {
    const MutexLock lock(mutex_);
    if (over_.ok()) over_ = status;
    add(pointToPoint_.takeNew());
    add(names_.takeAll());
    if (join_) failed.push_back(std::exchange(join_, nullptr));
    outbox_.clear();
    orderedInFlight_ = 0;
  }
  if (ordered_) add(ordered_->takeAll());
  // The engine's operations end before anyone is told that their buffers are free.
  if (endTraffic_ && (runner_.runs() || !transfers.empty())) endTraffic_(status);
  runner_.giveUp();
  transfers.clear();
  for (const auto& entry : failed) complete(entry, status);
}

void ProcessSet::leave() {
  debug("this rank leaves, with " + std::to_string(inFlight_) + " operations in flight");
  if (ordered_) ordered_->channel().leave();
  control_->leave(runner_.executed());
}

void ProcessSet::complete(const EntryPtr& entry, Status status) {
  if (!status.ok() && status.tensor().empty()) status.withTensor(nameOf(*entry));
  entry->outcome.status = std::move(status);
  if (entry->byName) ordered_->channel().ended(*entry);
  --inFlight_;
  observer_.completed(entry);
}

void ProcessSet::debug(const std::string& what) const {
  logDebug("process set " + std::to_string(id_) + ": " + what);
}

void ProcessSet::corrupt(const std::string& what) {
  observer_.broken(
      Status::internal("control channel of process set " + std::to_string(id_) + ": " + what));
}

}  // namespace farandole::conductor
