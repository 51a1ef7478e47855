#include "control/sequencer.h"

#include <algorithm>
#include <limits>

#include "control/agreement.h"

namespace farandole::control {
namespace {

// Of one member's announcements that wait for other members: more than kMaxPlans of the usual size.
constexpr std::size_t kMostAnnouncedBytes = std::size_t{64} << 20;

std::size_t bytesOf(const std::string& name, const Meta& meta) {
  return name.size() + (meta.shape.size() + meta.splits.size()) * sizeof(std::int64_t);
}

}  // namespace

Sequencer::Sequencer(Options options)
    : options_(std::move(options)),
      announcedBytes_(options_.memberNames.size(), 0),
      joined_(options_.memberNames.size(), false) {}

Status Sequencer::submit(int member, Submission&& submission, TimePoint now) {
  now_ = now;
  struct Visitor {
    Sequencer& self;
    int member;
    TimePoint now;

    Status operator()(Announce& m) {
      TrackedPlan* plan = self.planFor(m.name);
      if (plan == nullptr) {
        return Status::internal("more than " + std::to_string(kMaxPlans) +
                                " operations wait for other ranks: '" + m.name + "' of " +
                                self.options_.memberNames[static_cast<std::size_t>(member)] +
                                " is one too many");
      }
      const Arrival before = plan->arrivals[static_cast<std::size_t>(member)];
      if (before == Arrival::kAbsent || before == Arrival::kWithdrawn) {
        FARANDOLE_RETURN_IF_ERROR(self.keepAnnouncement(*plan, member, std::move(m.meta)));
      }
      return self.arrive(*plan, member, Arrival::kAnnounced, m.shared, now);
    }
    Status operator()(Repeat& m) {
      if (m.plan.index >= self.plans_.size()) {
        return Status::internal("a submission names plan " + std::to_string(m.plan.index) +
                                ", which never existed");
      }
      TrackedPlan& plan = self.plans_[m.plan.index];
      if (plan.id != m.plan || !plan.defined) {
        self.out_.emplace_back(Resend{member, m.plan});
        return {};
      }
      return self.arrive(plan, member, Arrival::kRepeated, m.shared, now);
    }
    Status operator()(Join&) {
      if (self.joined_[static_cast<std::size_t>(member)]) {
        return Status::internal(self.options_.memberNames[static_cast<std::size_t>(member)] +
                                " joined twice");
      }
      self.joined_[static_cast<std::size_t>(member)] = true;
      self.lastJoined_ = member;
      ++self.joinedCount_;
      for (auto& plan : self.plans_) self.completeIfAllAreHere(plan);
      if (self.joinedCount_ == self.members()) {
        self.joined_.assign(self.joined_.size(), false);
        self.joinedCount_ = 0;
        // Behind the batches of what was still ready.
        self.batchReadyPlans(self.out_);
        self.out_.emplace_back(Joined{self.lastJoined_});
      }
      return {};
    }
    Status operator()(Withdraw& m) {
      const auto found = self.byName_.find(m.name);
      if (found == self.byName_.end()) return {};
      TrackedPlan& plan = self.plans_[found->second];
      auto& arrival = plan.arrivals[static_cast<std::size_t>(member)];
      // Too late once it is ready: a batch with it is on its way, and the member will see that
      // instead.
      if (plan.ready || arrival == Arrival::kAbsent || arrival == Arrival::kWithdrawn) return {};
      arrival = Arrival::kWithdrawn;
      self.dropAnnouncement(plan, member);
      self.out_.emplace_back(Withdrawn{member, m.name});
      return {};
    }
    Status operator()(Retract& m) {
      const auto found = self.byName_.find(m.name);
      if (found == self.byName_.end()) return {};
      TrackedPlan& plan = self.plans_[found->second];
      auto& arrival = plan.arrivals[static_cast<std::size_t>(member)];
      // Too late, as above.
      if (plan.ready || arrival == Arrival::kAbsent || arrival == Arrival::kWithdrawn) return {};
      arrival = Arrival::kAbsent;
      self.dropAnnouncement(plan, member);
      if (--plan.present == 0) self.noneIdle_ = false;
      if (m.shared && plan.shared > 0) --plan.shared;
      self.out_.emplace_back(Withdrawn{member, m.name});
      return {};
    }
  };
  return std::visit(Visitor{*this, member, now}, submission);
}

Status Sequencer::keepAnnouncement(TrackedPlan& plan, int member, Meta meta) {
  auto& held = announcedBytes_[static_cast<std::size_t>(member)];
  const std::size_t bytes = bytesOf(plan.name, meta);
  if (held + bytes > kMostAnnouncedBytes) {
    return Status::internal(
        options_.memberNames[static_cast<std::size_t>(member)] + " has announced more than " +
        std::to_string(kMostAnnouncedBytes >> 20) + " MiB of operations that wait for other ranks");
  }
  held += bytes;
  plan.announced.emplace(member, std::move(meta));
  return {};
}

void Sequencer::dropAnnouncement(TrackedPlan& plan, int member) {
  const auto found = plan.announced.find(member);
  if (found == plan.announced.end()) return;
  announcedBytes_[static_cast<std::size_t>(member)] -= bytesOf(plan.name, found->second);
  plan.announced.erase(found);
}

Status Sequencer::arrive(TrackedPlan& plan, int member, Arrival arrival, bool shared,
                         TimePoint now) {
  auto& mine = plan.arrivals[static_cast<std::size_t>(member)];
  if (mine == Arrival::kAnnounced || mine == Arrival::kRepeated || plan.ready) {
    return Status::internal(options_.memberNames[static_cast<std::size_t>(member)] +
                            " submitted '" + plan.name + "' twice");
  }
  if (plan.present == 0) plan.first = now;
  if (mine == Arrival::kAbsent) ++plan.present;
  if (shared) ++plan.shared;
  mine = arrival;
  completeIfAllAreHere(plan);
  return {};
}

void Sequencer::completeIfAllAreHere(TrackedPlan& plan) {
  if (plan.present == 0 || plan.ready || plan.present < members() - joinedCount_) return;
  for (int i = 0; i < members(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (plan.arrivals[at] == Arrival::kAbsent && !joined_[at]) return;
  }
  complete(plan);
}

void Sequencer::complete(TrackedPlan& plan) {
  plan.lastUse = ++uses_;
  if (auto refusal = disagreement(plan)) return refuse(plan, std::move(*refusal));
  if (!plan.announced.empty()) {
    // The root's shape is the one that counts in a scatter; elsewhere they agree where they must.
    const Meta& first = plan.announced.begin()->second;
    const auto root = plan.announced.find(first.root);
    const bool ofRoot = first.kind == Kind::kScatter && root != plan.announced.end();
    if (first.kind != Kind::kScatter || ofRoot) plan.meta = ofRoot ? root->second : first;
  }
  if (auto refusal = objectionToJoined(plan)) return refuse(plan, std::move(*refusal));
  if (!plan.defined || !plan.announced.empty()) {
    plan.defined = true;
    out_.emplace_back(Define{plan.id, plan.name, plan.meta});
  }
  if (plan.meta.group == 0) return makeReady(plan);

  // A group leaves together, or not at all.
  const auto group = plan.meta.group;
  if (auto failed = failedGroups_.find(group); failed != failedGroups_.end()) {
    Refuse refusal{plan.name, failed->second.because, failed->second.culprit};
    if (--failed->second.remaining <= 0) failedGroups_.erase(failed);
    out_.emplace_back(std::move(refusal));
    return erase(plan);
  }
  auto& waiting = groups_[group];
  if (!waiting.empty()) {
    const int odd = onlyInOne(plan, plans_[waiting.front()]);
    if (odd >= 0) {
      return refuse(plan,
                    Refuse{plan.name,
                           options_.memberNames[static_cast<std::size_t>(odd)] +
                               " has submitted only a part of the group of '" + plan.name + "'",
                           odd});
    }
  }
  plan.ready = true;  // complete: nothing more can arrive for it
  waiting.push_back(plan.id.index);
  if (static_cast<int>(waiting.size()) < plan.meta.groupSize) return;
  const auto all = std::move(waiting);
  groups_.erase(group);
  // Only when the members have told each other sizes is it known whether it can run.
  const bool whole = all.size() > 1 && all.size() <= kMaxGroupPlans &&
                     std::any_of(all.begin(), all.end(), [&](std::uint32_t index) {
                       return othersDecideSize(plans_[index].meta.kind);
                     });
  for (const auto index : all) {
    makeReady(plans_[index]);
    plans_[index].whole = whole;
  }
}

void Sequencer::makeReady(TrackedPlan& plan) {
  if (ready_.empty()) readySince_ = now_;
  plan.ready = true;
  ready_.push_back(plan.id.index);
  // Whoever is alone with members that have joined may announce any size.
  if (__builtin_add_overflow(readyBytes_, plan.meta.bytes(), &readyBytes_)) {
    readyBytes_ = std::numeric_limits<std::int64_t>::max();
  }
}

std::optional<Refuse> Sequencer::disagreement(const TrackedPlan& plan) const {
  std::vector<std::int64_t> withdrawn;
  for (int i = 0; i < members(); ++i) {
    if (plan.arrivals[static_cast<std::size_t>(i)] == Arrival::kWithdrawn) withdrawn.push_back(i);
  }
  if (!withdrawn.empty()) {
    const auto first = static_cast<std::size_t>(withdrawn.front());
    return Refuse{plan.name, "'" + plan.name + "' was cancelled by " + options_.memberNames[first],
                  static_cast<std::int32_t>(first), std::move(withdrawn)};
  }
  if (plan.announced.empty()) return std::nullopt;

  std::vector<MemberMeta> metas;
  for (const int member : membersWhere(plan, true)) {
    const auto found = plan.announced.find(member);
    metas.push_back({member, found != plan.announced.end() ? &found->second : &plan.meta});
  }
  auto found = disagreementAbout(plan.name, metas, options_.memberNames);
  if (!found) return std::nullopt;
  return Refuse{plan.name, std::move(found->text), found->culprit};
}

std::optional<Refuse> Sequencer::objectionToJoined(const TrackedPlan& plan) const {
  if (joinedCount_ == 0) return std::nullopt;
  const auto absent = membersWhere(plan, false);
  if (absent.empty()) return std::nullopt;
  const std::vector<std::int64_t> joined(absent.begin(), absent.end());
  if (runsWithout(plan.meta, joined)) return std::nullopt;
  return Refuse{plan.name,
                "'" + plan.name + "' (" + std::string(name(plan.meta.kind)) + ") needs " +
                    listMembers(absent, options_.memberNames) +
                    ", which has joined: it has no more data",
                absent.front()};
}

void Sequencer::refuse(TrackedPlan& plan, Refuse refusal) {
  // Whoever announced a group wanted it whole: what is complete of it fails now, the rest as it
  // completes.
  for (const auto& [member, meta] : plan.announced) {
    if (meta.group != 0) plan.meta.group = meta.group, plan.meta.groupSize = meta.groupSize;
  }
  const auto group = plan.meta.group;
  if (group != 0) {
    FailedGroup failed{plan.meta.groupSize - 1, refusal.text, refusal.culprit};
    if (const auto waiting = groups_.find(group); waiting != groups_.end()) {
      for (const auto index : waiting->second) {
        TrackedPlan& other = plans_[index];
        out_.emplace_back(Refuse{other.name, refusal.text, refusal.culprit});
        --failed.remaining;
        erase(other);
      }
      groups_.erase(waiting);
    }
    const auto already = failedGroups_.find(group);
    if (already != failedGroups_.end()) {
      if (--already->second.remaining <= 0) failedGroups_.erase(already);
    } else if (failed.remaining > 0) {
      failedGroups_.emplace(group, std::move(failed));
    }
  }
  out_.emplace_back(std::move(refusal));
  erase(plan);
}

void Sequencer::resetArrivals(TrackedPlan& plan) {
  plan.arrivals.assign(static_cast<std::size_t>(members()), Arrival::kAbsent);
  while (!plan.announced.empty()) dropAnnouncement(plan, plan.announced.begin()->first);
  plan.present = 0;
  plan.shared = 0;
  plan.ready = false;
  plan.whole = false;
}

void Sequencer::erase(TrackedPlan& plan) {
  byName_.erase(plan.name);
  resetArrivals(plan);
  plan.defined = false;
  plan.name.clear();
  ++plan.id.generation;
  freeIndices_.push_back(plan.id.index);
}

Sequencer::TrackedPlan* Sequencer::planFor(const std::string& name) {
  if (const auto found = byName_.find(name); found != byName_.end()) return &plans_[found->second];
  if (freeIndices_.empty() &&
      plans_.size() >= std::min<std::size_t>(options_.planCapacity, kMaxPlans)) {
    if (TrackedPlan* old = leastRecentlyUsed()) erase(*old);
  }
  if (freeIndices_.empty()) {
    if (plans_.size() >= kMaxPlans) return nullptr;
    TrackedPlan plan;
    plan.id.index = static_cast<std::uint32_t>(plans_.size());
    plan.id.generation = 1;
    plans_.push_back(std::move(plan));
    freeIndices_.push_back(plans_.back().id.index);
  }
  TrackedPlan& plan = plans_[freeIndices_.back()];
  freeIndices_.pop_back();
  plan.name = name;
  plan.meta = Meta();
  resetArrivals(plan);
  byName_.emplace(name, plan.id.index);
  return &plan;
}

Sequencer::TrackedPlan* Sequencer::leastRecentlyUsed() {
  // Looking through all of them once per name would take the longer the more are in flight.
  if (noneIdle_) return nullptr;
  TrackedPlan* oldest = nullptr;
  for (auto& plan : plans_) {
    if (plan.present > 0 || plan.ready || plan.name.empty()) continue;
    if (oldest == nullptr || plan.lastUse < oldest->lastUse) oldest = &plan;
  }
  noneIdle_ = oldest == nullptr;
  return oldest;
}

std::vector<int> Sequencer::membersWhere(const TrackedPlan& plan, bool present) const {
  std::vector<int> indices;
  for (int i = 0; i < members(); ++i) {
    if ((plan.arrivals[static_cast<std::size_t>(i)] != Arrival::kAbsent) == present)
      indices.push_back(i);
  }
  return indices;
}

void Sequencer::decide(const Situation& situation, std::vector<LogEntry>& entries) {
  now_ = situation.now;
  std::move(out_.begin(), out_.end(), std::back_inserter(entries));
  out_.clear();
  if (ready_.empty()) return;
  const bool enough = readyBytes_ >= (situation.idle ? options_.eagerBytes : options_.fusionBytes);
  const bool waitedFor = situation.idle && situation.someoneWaits;
  const bool lateEnough = situation.idle && situation.now >= readySince_ + options_.batchDelay;
  if (enough || waitedFor || lateEnough) batchReadyPlans(entries);
}

std::optional<TimePoint> Sequencer::due() const {
  if (ready_.empty()) return std::nullopt;
  return readySince_ + options_.batchDelay;
}

int Sequencer::onlyInOne(const TrackedPlan& a, const TrackedPlan& b) const {
  if (a.present == members() && b.present == members()) return -1;
  for (int i = 0; i < members(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if ((a.arrivals[at] == Arrival::kAbsent) != (b.arrivals[at] == Arrival::kAbsent)) return i;
  }
  return -1;
}

void Sequencer::batchReadyPlans(std::vector<LogEntry>& entries) {
  for (const auto index : ready_) {
    TrackedPlan& plan = plans_[index];
    const bool shared = plan.shared == members();
    const std::int64_t bytes = plan.meta.bytes();
    std::vector<std::int64_t> joined;
    if (plan.present < members()) {
      for (const int member : membersWhere(plan, false)) joined.push_back(member);
    }
    const auto fits = std::find_if(open_.begin(), open_.end(), [&](const Open& other) {
      if (plan.whole || other.whole) {
        return plan.whole && other.whole && other.meta->group == plan.meta.group;
      }
      return fusible(*other.meta, plan.meta) && other.shared == shared &&
             other.batch.joined == joined && bytes <= options_.fusionBytes - other.bytes &&
             other.batch.plans.size() < kMaxBatchPlans;
    });
    if (fits != open_.end()) {
      fits->batch.plans.push_back(plan.id);
      fits->bytes += bytes;
    } else {
      open_.push_back({Batch{{plan.id}, std::move(joined)}, &plan.meta, shared, bytes, plan.whole});
    }
    resetArrivals(plan);
  }
  noneIdle_ = false;
  ready_.clear();
  readyBytes_ = 0;
  for (auto& each : open_) entries.emplace_back(std::move(each.batch));
  open_.clear();
}

std::vector<Sequencer::Stall> Sequencer::stalls(TimePoint now, Duration olderThan) const {
  std::vector<Stall> found;
  for (const auto& plan : plans_) {
    if (plan.present == 0 || plan.ready || now - plan.first < olderThan) continue;
    Stall stall{plan.name, {}, membersWhere(plan, true), now - plan.first};
    for (const int member : membersWhere(plan, false)) {
      if (!joined_[static_cast<std::size_t>(member)]) stall.missing.push_back(member);
    }
    found.push_back(std::move(stall));
  }
  return found;
}

}  // namespace farandole::control
