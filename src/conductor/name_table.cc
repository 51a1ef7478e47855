#include "conductor/name_table.h"

#include <algorithm>
#include <utility>

namespace farandole::conductor {
namespace {

constexpr std::uint64_t kCallOrderNames = 1024;

// Whether a plan is of this request's operation. Shapes of a scatter are not compared between
// ranks, but the root's is the one that counts.
bool fits(const control::Meta& plan, const control::Meta& request, int me) {
  const bool rootsShape = request.kind == control::Kind::kScatter && request.root == me;
  return control::agree(plan, request) && (!rootsShape || plan.shape == request.shape);
}

// Whether the batch can be the group of both of these.
bool isWholeGroup(const control::Batch& batch, const control::Meta& first,
                  const control::Meta& other) {
  return first.group != 0 && first.group == other.group &&
         static_cast<std::size_t>(first.groupSize) == batch.plans.size();
}

}  // namespace

NameTable::NameTable(Options options, SubmissionOutbox& outbox)
    : options_(std::move(options)), outbox_(outbox) {}

bool NameTable::isTaken(const Request& request) const {
  const auto found = names_.find(request.name);
  return found != names_.end() && found->second.inFlight &&
         !mayShareName(found->second.inFlight->request, request);
}

std::string NameTable::nameByCallOrder(control::Kind kind) {
  const std::uint64_t call = callOrder_[static_cast<std::size_t>(kind)]++;
  return std::string(control::name(kind)) + "#" + std::to_string(call % kCallOrderNames);
}

void NameTable::publish(const EntryPtr& entry) {
  const Request& request = entry->request;
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

void NameTable::tellSequencer(const EntryPtr& entry, Name& known) {
  const Request& request = entry->request;
  known.inFlight = entry;
  known.repeated.reset();
  if (known.plan >= 0) {
    const KnownPlan& plan = plans_[static_cast<std::size_t>(known.plan)];
    if (fits(*plan.meta, request.meta, options_.me)) {
      ++counters_.hits;
      const control::PlanId id{static_cast<std::uint32_t>(known.plan), plan.generation};
      known.repeated = id;
      outbox_.send(control::Repeat{id, options_.isShared(request)});
      return;
    }
  }
  announce(*entry);
}

void NameTable::announce(const Entry& entry) {
  ++counters_.misses;
  const Request& request = entry.request;
  outbox_.send(control::Announce{request.name, request.meta, options_.isShared(request)});
}

void NameTable::sendRetract(const Entry& entry) {
  outbox_.send(control::Retract{entry.request.name, options_.isShared(entry.request)});
}

void NameTable::withdraw(const EntryPtr& entry) {
  const auto found = names_.find(entry->request.name);
  if (found == names_.end() || found->second.inFlight != entry || entry->byName) return;
  outbox_.send(control::Withdraw{entry->request.name});
}

bool NameTable::retract(const EntryPtr& entry) {
  if (const auto known = names_.find(entry->request.name);
      known != names_.end() && known->second.inFlight == entry) {
    known->second.disputed = true;
    sendRetract(*entry);
    return false;
  }
  const auto waiting = deferred_.find(entry->request.name);
  if (waiting == deferred_.end() || std::erase(waiting->second, entry) == 0) return false;
  if (waiting->second.empty()) deferred_.erase(waiting);
  return true;
}

void NameTable::publishNext(const std::string& name) {
  const auto known = names_.find(name);
  if (known == names_.end() || !known->second.inFlight) publishDeferred(name);
  anyDeferred_ = !deferred_.empty();
}

bool NameTable::publishDeferred(const std::string& name) {
  const auto waiting = deferred_.find(name);
  if (waiting == deferred_.end()) return false;
  if (isHeld(*waiting->second.front())) return true;
  const EntryPtr next = std::move(waiting->second.front());
  waiting->second.pop_front();
  if (waiting->second.empty()) deferred_.erase(waiting);
  tellSequencer(next, names_[next->request.name]);
  return true;
}

bool NameTable::define(control::Define& entry) {
  if (entry.plan.index >= plans_.size()) plans_.resize(entry.plan.index + 1);
  KnownPlan& plan = plans_[entry.plan.index];
  if (plan.meta && plan.name != entry.name) {
    if (const auto old = names_.find(plan.name);
        old != names_.end() && old->second.plan == entry.plan.index) {
      old->second.plan = -1;
      if (!old->second.inFlight) names_.erase(old);
    }
  }
  plan.generation = entry.plan.generation;
  plan.meta = std::make_shared<const control::Meta>(std::move(entry.meta));
  plan.name = std::move(entry.name);
  return std::exchange(names_[plan.name].plan, entry.plan.index) < 0;
}

EntryPtr NameTable::refuse(const control::Refuse& entry) {
  if (const auto found = names_.find(entry.name); found != names_.end()) found->second.plan = -1;
  const auto& spared = entry.spared;
  if (std::find(spared.begin(), spared.end(), options_.me) != spared.end()) return nullptr;
  return take(entry.name);
}

void NameTable::resend(const control::PlanId& plan) {
  for (auto& [name, known] : names_) {
    if (!known.inFlight || known.repeated != plan) continue;
    known.repeated.reset();
    announce(*known.inFlight);
    // What was asked of the forgotten one is asked of this one.
    if (known.disputed) sendRetract(*known.inFlight);
    return;
  }
}

bool NameTable::entriesOf(const control::Batch& batch, bool joinedHere,
                          std::vector<EntryPtr>& entries) {
  ++batches_;
  entries.reserve(batch.plans.size());
  for (const control::PlanId& id : batch.plans) {
    if (id.index >= plans_.size()) return false;
    KnownPlan& plan = plans_[id.index];
    if (plan.generation != id.generation || !plan.meta) return false;
    const auto found = names_.find(plan.name);
    // Once in a batch, by its own plan: an entry ends once.
    if (found == names_.end() || found->second.plan != id.index ||
        std::exchange(plan.lastBatch, batches_) == batches_) {
      return false;
    }
    const bool together = entries.empty() ||
                          control::fusible(*entries.front()->agreed, *plan.meta) ||
                          isWholeGroup(batch, *entries.front()->agreed, *plan.meta);
    if (!together || !control::runsWithout(*plan.meta, batch.joined)) return false;
    EntryPtr& entry =
        entries.emplace_back(joinedHere ? std::make_shared<Entry>() : found->second.inFlight);
    if (!entry) return false;
    entry->neutral = joinedHere;
    entry->agreed = plan.meta;
    if (!joinedHere && !fits(*plan.meta, entry->request.meta, options_.me)) return false;
  }
  return true;
}

EntryPtr NameTable::take(const std::string& name) {
  const auto found = names_.find(name);
  if (found == names_.end() || !found->second.inFlight) return nullptr;
  EntryPtr entry = std::move(found->second.inFlight);
  found->second.inFlight = nullptr;
  found->second.disputed = false;
  if (!publishDeferred(name) && found->second.plan < 0) names_.erase(found);
  return entry;
}

std::vector<EntryPtr> NameTable::takeAll() {
  std::vector<EntryPtr> all;
  for (auto& [name, known] : names_) {
    if (known.inFlight) all.push_back(std::move(known.inFlight));
    known.inFlight = nullptr;
  }
  for (auto& [name, waiting] : deferred_) all.insert(all.end(), waiting.begin(), waiting.end());
  deferred_.clear();
  return all;
}

std::optional<std::string> NameTable::submittedBefore(TimePoint then) const {
  for (const auto& [name, known] : names_) {
    if (known.inFlight && known.inFlight->submitted < then) return name;
  }
  return std::nullopt;
}

}  // namespace farandole::conductor
