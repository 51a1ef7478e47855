#include "conductor/process_set.h"

#include <algorithm>
#include <utility>

namespace farandole {
namespace {

// Names by call order are used again and again, so that unnamed operations have plans too.
constexpr std::uint64_t kCallOrderNames = 1024;
// One set must not keep the driver from the others.
constexpr int kEntriesPerStep = 64;
// Nor one member the sequencer from the others: more than a ring holds.
constexpr int kSubmissionsPerStep = 4096;
// Decisions for which the log has no room yet: then no more submissions are read.
constexpr std::size_t kMostUnappended = 4096;

bool isPointToPoint(Kind kind) { return kind == Kind::kSend || kind == Kind::kReceive; }

std::uint64_t hashNames(const std::vector<Request*>& requests) {
  std::uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (const auto* each : requests) {
    for (const char c : each->name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    hash = (hash ^ 0xffu) * 1099511628211u;
  }
  return hash == 0 ? 1 : hash;
}

// The groups as all members know them, by the names of their operations.
void identifyGroups(std::span<const EntryPtr> entries) {
  std::unordered_map<std::uint64_t, std::vector<Request*>> groups;
  for (const auto& entry : entries) {
    Request& request = entry->request;
    const bool named = !isPointToPoint(request.meta.kind) && request.meta.kind != Kind::kJoin;
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

// Whether the order of submissions tells it from others of its name.
bool keepsOrder(const Request& request) { return request.ordered && request.group == 0; }

// Whether a plan is of this request's operation. Shapes of a scatter are not compared between
// ranks, but the root's is the one that counts.
bool fits(const Meta& plan, const Meta& request, int me) {
  const bool rootsShape = request.kind == Kind::kScatter && request.root == me;
  return agree(plan, request) && (!rootsShape || plan.shape == request.shape);
}

// Whether the batch can be the group of both of these.
bool isWholeGroup(const Batch& batch, const Meta& first, const Meta& other) {
  return first.group != 0 && first.group == other.group &&
         static_cast<std::size_t>(first.groupSize) == batch.plans.size();
}

bool mayBothBeInFlight(const Request& a, const Request& b) {
  return keepsOrder(a) && keepsOrder(b);
}

}  // namespace

ProcessSet::ProcessSet(Parts parts, SetObserver& observer)
    : parts_(std::move(parts)), observer_(observer), seenGone_(parts_.ranks.size()) {}

Status ProcessSet::submit(std::span<const EntryPtr> entries) {
  const std::lock_guard lock(mutex_);
  FARANDOLE_RETURN_IF_ERROR(over_);
  if (inFlight_ + entries.size() > kMaxPlans) {
    return Status::invalid("more than " + std::to_string(kMaxPlans) +
                           " operations would be in flight in process set " +
                           std::to_string(parts_.id) + ": wait for some of them first");
  }
  // First everything that can be refused, then nothing that can.
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Request& request = entries[i]->request;
    entries[i]->exchange = exchangeOf(request);
    if (request.meta.kind == Kind::kJoin) {
      if (join_) {
        return Status(Code::kDuplicateName,
                      "this rank has already joined and waits for the others");
      }
      continue;
    }
    if (entries.size() > kMaxGroupPlans && request.group != 0 &&
        othersDecideSize(request.meta.kind)) {
      const auto together = std::count_if(entries.begin(), entries.end(), [&](const auto& other) {
        return other->request.group == request.group;
      });
      if (static_cast<std::size_t>(together) > kMaxGroupPlans) {
        return Status::invalid("a group of " + std::to_string(together) + " operations with " +
                               std::string(name(request.meta.kind)) + " among them: at most " +
                               std::to_string(kMaxGroupPlans) + " are possible");
      }
    }
    if (isPointToPoint(request.meta.kind) || request.name.empty()) continue;
    const auto found = names_.find(request.name);
    bool duplicate = found != names_.end() && found->second.inFlight &&
                     !mayBothBeInFlight(found->second.inFlight->request, request);
    duplicate |=
        !keepsOrder(request) && parts_.ordered && parts_.ordered->channel().holds(request.name);
    for (std::size_t j = 0; j < i && !duplicate; ++j) {
      duplicate = entries[j]->request.name == request.name &&
                  !mayBothBeInFlight(entries[j]->request, request);
    }
    if (duplicate) {
      return Status(Code::kDuplicateName, "'" + request.name +
                                              "' is already in flight: wait for it, or give the "
                                              "second operation another name")
          .withTensor(request.name);
    }
  }
  // Before they are visible: a driver may complete them at once.
  inFlight_ += entries.size();
  bool anyGroup = false;
  for (const auto& entry : entries) {
    Request& request = entry->request;
    if (isPointToPoint(request.meta.kind) || request.meta.kind == Kind::kJoin) continue;
    if (entry->exchange) {
      ++orderedInFlight_;
      parts_.ordered->submit(entry);
      continue;
    }
    if (request.ordered && parts_.ordered && Exchange::serves(size())) {
      parts_.ordered->countByName(entry);
    }
    if (request.name.empty()) request.name = nameByCallOrder(request.meta.kind);
    anyGroup |= request.group != 0;
  }
  if (anyGroup) identifyGroups(entries);
  for (const auto& entry : entries) {
    if (!entry->exchange) publish(entry);
  }
  return {};
}

std::string ProcessSet::nameByCallOrder(Kind kind) {
  const std::uint64_t call = callOrder_[static_cast<std::size_t>(kind)]++;
  return std::string(name(kind)) + "#" + std::to_string(call % kCallOrderNames);
}

bool ProcessSet::inSharedMemory(const Request& request) const {
  const auto bytes = static_cast<std::size_t>(request.meta.bytes());
  return parts_.isShared(request.input, bytes) && parts_.isShared(request.output, bytes);
}

std::optional<Exchange> ProcessSet::exchangeOf(const Request& request) const {
  if (!parts_.ordered || !keepsOrder(request)) return std::nullopt;
  return OrderedOperations::exchangeOf(request.meta, size());
}

ProcessSet::Counters ProcessSet::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void ProcessSet::publish(const EntryPtr& entry) {
  const Request& request = entry->request;
  if (isPointToPoint(request.meta.kind)) {
    newPointToPoint_.push_back(entry);
    anyNewPointToPoint_.store(true, std::memory_order_release);
    return;
  }
  if (request.meta.kind == Kind::kJoin) {
    join_ = entry;
    send(Join{});
    return;
  }
  // Before the channel is asked: a driver that ends there what this one must wait for then sees it.
  if (entry->byName) anyDeferred_ = true;
  // A name by call order, a thousand calls ago; or that of an ordered one, which waits its turn.
  Name& known = names_[request.name];
  if (known.inFlight || deferred_.contains(request.name) || isHeld(*entry)) {
    deferred_[request.name].push_back(entry);
    anyDeferred_ = true;
    return;
  }
  tellSequencer(entry, known);
}

void ProcessSet::tellSequencer(const EntryPtr& entry, Name& known) {
  const Request& request = entry->request;
  known.inFlight = entry;
  known.repeated.reset();
  if (known.plan >= 0) {
    const Plan& plan = plans_[static_cast<std::size_t>(known.plan)];
    if (fits(*plan.meta, request.meta, parts_.me)) {
      ++counters_.planHits;
      const PlanId id{static_cast<std::uint32_t>(known.plan), plan.generation};
      known.repeated = id;
      send(Repeat{id, inSharedMemory(request)});
      return;
    }
  }
  announce(entry);
}

void ProcessSet::announce(const EntryPtr& entry) {
  ++counters_.planMisses;
  const Request& request = entry->request;
  send(Announce{request.name, request.meta, inSharedMemory(request)});
}

void ProcessSet::send(const Submission& submission) {
  encode(submission, submission_);
  const auto record = submission_.bytes();
  flushOutbox();
  if (!outbox_.empty() || !parts_.control->submit(record)) {
    outbox_.emplace_back(record.begin(), record.end());
    outboxWaits_.store(true, std::memory_order_release);
  }
}

void ProcessSet::flushOutbox() {
  while (!outbox_.empty() && parts_.control->submit(outbox_.front())) outbox_.pop_front();
  if (outbox_.empty()) outboxWaits_.store(false, std::memory_order_relaxed);
}

void ProcessSet::cancel(const EntryPtr& entry) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(entry->request.name);
  if (found == names_.end() || found->second.inFlight != entry || entry->byName) return;
  send(Withdraw{entry->request.name});
}

bool ProcessSet::step(TimePoint now) {
  bool moved = advancePointToPoint(now);
  if (parts_.ordered) moved |= advanceOrdered();
  if (outboxWaits_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    flushOutbox();
  }
  bool sequenced = sequence(now);
  for (int i = 0; i < kEntriesPerStep; ++i) {
    if (running_) {
      if (!advanceExecution(now)) {
        moved |= running_->moved();
        break;
      }
      sequenced = true;
    }
    if (!readLog(now)) break;
    sequenced = true;
  }
  // A batch that ended may let the next one go.
  if (sequenced && !running_) sequence(now);
  moved |= sequenced;
  if (!moved) moved = checkLeavers();
  return moved;
}

std::optional<TimePoint> ProcessSet::due() const {
  if (!parts_.sequencer || running_) return std::nullopt;
  return parts_.sequencer->due();
}

Duration ProcessSet::nap() const {
  Duration nap = running_ ? running_->nap() : Duration::max();
  for (const auto& each : pointToPoint_) nap = std::min(nap, each.operation->nap());
  return nap;
}

bool ProcessSet::sequence(TimePoint now) {
  if (!parts_.sequencer) return false;
  bool moved = false;
  // The reading below adds nothing to it.
  const bool mayRead = unappended_.empty() || unappended_.size() < kMostUnappended;
  for (int member = 0; mayRead && member < size(); ++member) {
    for (int i = 0; i < kSubmissionsPerStep; ++i) {
      const RingRead read = parts_.control->nextSubmission(member, buffer_);
      if (read == RingRead::kEmpty) break;
      moved = true;
      if (read == RingRead::kTooMuch) {
        corrupt(rankName(member) + " sends more submissions than it was allowed to");
        return true;
      }
      if (read != RingRead::kRecord || !decode(buffer_, size(), received_)) {
        corrupt("a submission of " + rankName(member) + " makes no sense");
        return true;
      }
      if (Status status = parts_.sequencer->submit(member, std::move(received_), now);
          !status.ok()) {
        corrupt(status.message());
        return true;
      }
    }
  }
  const bool idle = batchesDecided_ == batchesFinished_;
  if (parts_.sequencer->undecided()) {
    parts_.sequencer->decide({idle, parts_.control->anyoneWaits(), now}, decided_);
  }
  for (const auto& entry : decided_) {
    if (std::holds_alternative<Batch>(entry)) ++batchesDecided_;
    append(entry);
    moved = true;
  }
  decided_.clear();
  return moved || (!unappended_.empty() && flushUnappended());
}

void ProcessSet::append(const LogEntry& entry) {
  encode(entry, logEntry_);
  const auto record = logEntry_.bytes();
  flushUnappended();
  if (!unappended_.empty() || !parts_.control->append(record)) {
    unappended_.emplace_back(record.begin(), record.end());
  }
}

bool ProcessSet::flushUnappended() {
  bool moved = false;
  while (!unappended_.empty() && parts_.control->append(unappended_.front())) {
    unappended_.pop_front();
    moved = true;
  }
  return moved;
}

bool ProcessSet::readLog(TimePoint now) {
  const RingRead read = parts_.control->nextEntry(buffer_);
  if (read == RingRead::kEmpty) return false;
  if (read == RingRead::kTooMuch) {
    corrupt(rankName(0) + " sends more of the log than it was allowed to");
    return true;
  }
  if (read != RingRead::kRecord || !decode(buffer_, size(), read_)) {
    corrupt("the log makes no sense");
    return true;
  }
  std::visit(
      [&](auto& each) {
        if constexpr (std::is_same_v<std::decay_t<decltype(each)>, Batch>) {
          handle(each, now);
        } else {
          handle(each);
        }
      },
      read_);
  if (!running_) executed_ = parts_.control->position();
  return true;
}

void ProcessSet::handle(Define& entry) {
  const std::lock_guard lock(mutex_);
  if (entry.plan.index >= plans_.size()) plans_.resize(entry.plan.index + 1);
  Plan& plan = plans_[entry.plan.index];
  if (plan.meta && plan.name != entry.name) {
    if (const auto old = names_.find(plan.name);
        old != names_.end() && old->second.plan == entry.plan.index) {
      old->second.plan = -1;
      if (!old->second.inFlight) names_.erase(old);
    }
  }
  plan.generation = entry.plan.generation;
  plan.meta = std::make_shared<const Meta>(std::move(entry.meta));
  plan.name = std::move(entry.name);
  names_[plan.name].plan = entry.plan.index;
}

void ProcessSet::handle(Batch& entry, TimePoint now) {
  std::vector<Execution::Part> parts;
  parts.reserve(entry.plans.size());
  const bool joinedHere =
      std::find(entry.joined.begin(), entry.joined.end(), parts_.me) != entry.joined.end();
  bool consistent = true;
  {
    const std::lock_guard lock(mutex_);
    // Its operations have failed here, because of a member that has left: the others' will, too.
    if (!over_.ok()) return;
    consistent = !joinedHere || join_ != nullptr;
    for (std::size_t i = 0; i < entry.plans.size() && consistent; ++i) {
      const PlanId& id = entry.plans[i];
      consistent = id.index < plans_.size() && plans_[id.index].generation == id.generation &&
                   plans_[id.index].meta;
      if (!consistent) break;
      Plan& plan = plans_[id.index];
      const auto found = names_.find(plan.name);
      // Once in a batch, by its own plan: an entry ends once.
      consistent = found != names_.end() && found->second.plan == id.index &&
                   std::exchange(plan.lastBatch, batchesRead_ + 1) != batchesRead_ + 1 &&
                   runsWithout(*plan.meta, entry.joined) &&
                   (parts.empty() || fusible(*parts.front().meta, *plan.meta) ||
                    isWholeGroup(entry, *parts.front().meta, *plan.meta));
      if (!consistent) break;
      auto& part = parts.emplace_back(nullptr, plan.meta);
      if (joinedHere) continue;
      part.entry = found->second.inFlight;
      consistent = part.entry && fits(*plan.meta, part.entry->request.meta, parts_.me);
    }
  }
  if (!consistent) return corrupt("the log names an operation that this rank has not submitted");
  ++batchesRead_;
  runningSince_ = now;
  runningPosition_ = parts_.control->position();
  running_.emplace(*parts_.communicator, std::move(parts), static_cast<int>(entry.joined.size()),
                   now);
}

void ProcessSet::handle(Refuse& entry) {
  EntryPtr refused;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = names_.find(entry.name); found != names_.end()) found->second.plan = -1;
    const auto& spared = entry.spared;
    if (std::find(spared.begin(), spared.end(), parts_.me) == spared.end()) {
      refused = takeInFlight(entry.name);
    }
  }
  if (refused) complete(refused, fault(Code::kMismatch, entry.text, entry.culprit));
}

void ProcessSet::handle(Joined& entry) {
  EntryPtr join;
  {
    const std::lock_guard lock(mutex_);
    if (!over_.ok()) return;
    join = std::move(join_);
    join_ = nullptr;
  }
  if (!join) return corrupt("the log says that everyone has joined, but this rank has not");
  join->outcome.lastJoined = parts_.ranks[static_cast<std::size_t>(entry.last)];
  complete(join, {});
}

void ProcessSet::handle(Resend& entry) {
  if (entry.member != parts_.me) return;
  const std::lock_guard lock(mutex_);
  for (auto& [name, known] : names_) {
    if (!known.inFlight || known.repeated != entry.plan) continue;
    known.repeated.reset();
    announce(known.inFlight);
    // What was asked of the forgotten one is asked of this one.
    if (known.disputed) retract(known.inFlight);
    return;
  }
}

void ProcessSet::handle(Withdrawn& entry) {
  if (entry.member != parts_.me) return;
  EntryPtr withdrawn;
  {
    const std::lock_guard lock(mutex_);
    withdrawn = takeInFlight(entry.name);
  }
  if (withdrawn && withdrawn->byName) return parts_.ordered->channel().takenBack(*withdrawn);
  if (withdrawn) {
    complete(withdrawn,
             Status(Code::kCancelled, "'" + entry.name + "' was cancelled by this rank"));
  }
}

void ProcessSet::handle(Abort& entry) {
  observer_.broken(fault(Code::kPeerLost, entry.text, entry.culprit));
}

EntryPtr ProcessSet::takeInFlight(const std::string& name) {
  const auto found = names_.find(name);
  if (found == names_.end() || !found->second.inFlight) return nullptr;
  EntryPtr entry = std::move(found->second.inFlight);
  found->second.inFlight = nullptr;
  found->second.disputed = false;
  if (!publishDeferred(name) && found->second.plan < 0) names_.erase(found);
  return entry;
}

bool ProcessSet::publishDeferred(const std::string& name) {
  const auto waiting = deferred_.find(name);
  if (waiting == deferred_.end()) return false;
  if (isHeld(*waiting->second.front())) return true;
  const EntryPtr next = std::move(waiting->second.front());
  waiting->second.pop_front();
  if (waiting->second.empty()) deferred_.erase(waiting);
  tellSequencer(next, names_[name]);
  return true;
}

bool ProcessSet::advanceExecution(TimePoint now) {
  const Progress progress = running_->progress();
  if (progress == Progress::kPending) return false;
  Status status = running_->status();
  if (progress == Progress::kFailed && !findCulprit(status, runningFailedAt_, now)) return false;
  // Parts of a failed operation may still be under way.
  if (progress == Progress::kFailed && parts_.endTraffic) parts_.endTraffic(status);
  const BatchRun run = std::move(*running_);
  running_.reset();
  if (const auto refused = run.refusal()) {
    status = fault(Code::kMismatch, describe(*refused), refused->output.member);
  }
  ++batchesFinished_;
  executed_ = runningPosition_;
  for (const auto& step : run.steps()) observer_.ran(step.execution, step.started);
  {
    const std::lock_guard lock(mutex_);
    for (const auto& step : run.steps()) {
      for (const auto& part : step.execution.parts()) {
        if (part.entry) takeInFlight(part.entry->request.name);
      }
    }
    counters_.zeroCopyBytes = parts_.communicator->statistics().zeroCopyBytes;
  }
  for (const auto& step : run.steps()) {
    for (const auto& part : step.execution.parts()) {
      if (part.entry) complete(part.entry, status);
    }
  }
  // A failed engine stays failed, and the others wait for this rank in vain.
  if (progress == Progress::kFailed) observer_.broken(status);
  return true;
}

std::string ProcessSet::describe(const BatchRun::Refusal& refusal) const {
  const Execution::TooSmall& output = refusal.output;
  const std::string of =
      refusal.name.empty() ? "" : "'" + refusal.name + "' of this group cannot run: ";
  return of + "the output of " + rankName(output.member) + " has room for " +
         std::to_string(output.room) + " bytes, but " + std::to_string(output.needed) +
         " are to be received there: nothing was written anywhere";
}

void ProcessSet::startPointToPoint(const EntryPtr& entry) {
  const Request& request = entry->request;
  const auto bytes = static_cast<std::size_t>(request.meta.bytes());
  PointToPoint started{entry, nullptr, std::make_unique<Received>()};
  if (request.meta.kind == Kind::kSend) {
    started.operation =
        parts_.communicator->send(request.input, bytes, request.meta.root, request.tag);
  } else {
    started.operation = parts_.communicator->receive(request.output, bytes, request.meta.root,
                                                     request.tag, started.received.get());
  }
  pointToPoint_.push_back(std::move(started));
}

bool ProcessSet::advanceEachPointToPoint(TimePoint now) {
  bool moved = false;
  if (anyNewPointToPoint_.load(std::memory_order_acquire)) {
    std::deque<EntryPtr> fresh;
    {
      const std::lock_guard lock(mutex_);
      fresh.swap(newPointToPoint_);
      anyNewPointToPoint_ = false;
    }
    for (const auto& entry : fresh) {
      startPointToPoint(entry);
      moved = true;
    }
  }
  for (std::size_t i = 0; i < pointToPoint_.size();) {
    auto& each = pointToPoint_[i];
    const Progress progress = each.operation->progress();
    if (progress == Progress::kPending) {
      moved |= each.operation->moved();
      ++i;
      continue;
    }
    Status status = each.operation->status();
    if (progress == Progress::kFailed && !findCulprit(status, each.failedAt, now)) {
      ++i;
      continue;
    }
    moved = true;
    auto& outcome = each.entry->outcome;
    outcome.shape = each.entry->request.meta.shape;
    if (each.entry->request.meta.kind == Kind::kReceive) {
      outcome.data = each.entry->request.output;
      outcome.bytes = each.received->bytes;
      const int source = each.received->source;
      if (source >= 0 && source < size()) {
        outcome.source = parts_.ranks[static_cast<std::size_t>(source)];
      }
    }
    const EntryPtr entry = each.entry;
    pointToPoint_.erase(pointToPoint_.begin() + static_cast<std::ptrdiff_t>(i));
    complete(entry, status);
  }
  return moved;
}

void ProcessSet::failAll(const Status& status) {
  std::vector<EntryPtr> failed;
  for (auto& each : pointToPoint_) failed.push_back(each.entry);
  {
    const std::lock_guard lock(mutex_);
    if (over_.ok()) over_ = status;
    failed.insert(failed.end(), newPointToPoint_.begin(), newPointToPoint_.end());
    newPointToPoint_.clear();
    for (auto& [name, known] : names_) {
      if (known.inFlight) failed.push_back(std::move(known.inFlight));
      known.inFlight = nullptr;
    }
    for (auto& [name, waiting] : deferred_)
      failed.insert(failed.end(), waiting.begin(), waiting.end());
    deferred_.clear();
    if (join_) failed.push_back(std::move(join_));
    join_ = nullptr;
    outbox_.clear();
    orderedInFlight_ = 0;
  }
  if (parts_.ordered) {
    for (auto& entry : parts_.ordered->takeAll()) failed.push_back(std::move(entry));
  }
  // The engine's operations end before anyone is told that their buffers are free.
  if (parts_.endTraffic && (running_ || !pointToPoint_.empty())) parts_.endTraffic(status);
  running_.reset();
  pointToPoint_.clear();
  for (const auto& entry : failed) complete(entry, status);
}

void ProcessSet::leave() {
  if (parts_.ordered) parts_.ordered->channel().leave();
  parts_.control->leave(executed_);
}

void ProcessSet::complete(const EntryPtr& entry, Status status) {
  if (!status.ok() && status.tensor().empty()) status.withTensor(nameOf(*entry));
  entry->outcome.status = std::move(status);
  if (entry->byName) parts_.ordered->channel().ended(*entry);
  --inFlight_;
  observer_.completed(entry);
}

void ProcessSet::corrupt(std::string what) {
  observer_.broken(Status::internal("control channel of process set " + std::to_string(parts_.id) +
                                    ": " + what));
}

std::string ProcessSet::rankName(int member) const {
  return "rank " + std::to_string(parts_.ranks[static_cast<std::size_t>(member)]) + " on " +
         parts_.hosts[static_cast<std::size_t>(member)];
}

Status ProcessSet::fault(Code code, std::string text, int member) const {
  Status status(code, std::move(text));
  if (member >= 0 && member < size()) {
    status.withRank(parts_.ranks[static_cast<std::size_t>(member)],
                    parts_.hosts[static_cast<std::size_t>(member)]);
  }
  return status;
}

}  // namespace farandole
