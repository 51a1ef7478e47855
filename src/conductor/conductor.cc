#include "conductor/conductor.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/futex.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "conductor/rank_states.h"

namespace farandole::conductor {
namespace {

// When another rank has given up because of a third one, this rank's own watch knows of that one
// within this time, with a better account.
constexpr Duration kOwnAccount = std::chrono::milliseconds(700);
constexpr std::size_t kMaxTracks = 4096;

// It competes with the program's own work, so it hardly spins.
constexpr Duration kBackgroundSpin = std::chrono::microseconds(5);

// The lesser of the two.
Deadline earlier(Deadline a, Deadline b) { return a.at() < b.at() ? a : b; }

void add(ProcessSet::Counters& sum, const ProcessSet::Counters& each) {
  sum.planHits += each.planHits;
  sum.planMisses += each.planMisses;
  sum.zeroCopyBytes += each.zeroCopyBytes;
}

// Only the driver writes it, others read.
void count(std::atomic<std::uint64_t>& counter, std::uint64_t more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

Conductor::Conductor(Bell& bell, RankStates& rankStates, Network* network,
                     observe::Timeline& timeline, Options options)
    : bell_(bell),
      rankStates_(rankStates),
      network_(network),
      timeline_(timeline),
      options_(std::move(options)),
      // With other machines, the network's threads are among those that want the processor.
      yieldLimit_(options_.spin == Duration::zero() || network != nullptr ? Duration::zero()
                                                                          : options_.yield) {}

Status Conductor::start() {
  auto thread = startThread("fd-conductor", [this] { runInBackground(); });
  FARANDOLE_RETURN_IF_ERROR(thread.status());
  background_ = std::move(thread).value();
  return {};
}

Conductor::~Conductor() = default;

void Conductor::addSet(std::unique_ptr<ProcessSet> set) {
  const MutexLock lock(mutex_);
  sets_[set->id()] = std::move(set);
  setsVersion_.fetch_add(1, std::memory_order_release);
}

Status Conductor::removeSet(std::int32_t id) {
  std::shared_ptr<ProcessSet> removed;
  {
    const Driving driving(drive_);
    const MutexLock lock(mutex_);
    const auto found = sets_.find(id);
    if (found == sets_.end())
      return Status::invalid("there is no process set " + std::to_string(id));
    if (found->second->anythingInFlight()) {
      return Status::invalid("process set " + std::to_string(id) +
                             " has operations in flight: wait for them before removing it");
    }
    removed = std::move(found->second);
    add(removed_, removed->counters());
    sets_.erase(found);
    std::erase(stepped_, removed);
    setsVersion_.fetch_add(1, std::memory_order_release);
    removed->leave();
  }
  return {};
}

Status Conductor::submit(std::int32_t id, std::span<const EntryPtr> entries) {
  std::shared_ptr<ProcessSet> set;
  {
    const MutexLock lock(mutex_);
    const auto found = sets_.find(id);
    if (found == sets_.end())
      return Status::invalid("there is no process set " + std::to_string(id));
    set = found->second;
  }
  if (bell_.failed()) return bell_.failure();
  if (stopping_.load(std::memory_order_relaxed)) {
    return Status(Code::kShutdown, "farandole has been shut down on this rank");
  }
  for (const auto& entry : entries) {
    // Here its absence can still be told.
    if (!entry->request.onComplete || entry->request.callbackAnywhere) continue;
    FARANDOLE_RETURN_IF_ERROR(completionThread_.start());
    break;
  }
  // Before they are visible: a driver may complete them at once.
  inFlight_.fetch_add(static_cast<std::int64_t>(entries.size()), std::memory_order_relaxed);
  for (const auto& entry : entries) {
    if (entry->request.queue) entry->request.queue->expect();
  }
  if (Status status = set->submit(entries); !status.ok()) {
    for (const auto& entry : entries) {
      if (entry->request.queue) entry->request.queue->forget();
    }
    inFlight_.fetch_sub(static_cast<std::int64_t>(entries.size()), std::memory_order_relaxed);
    return status;
  }
  const bool callerWaits = std::all_of(entries.begin(), entries.end(), [](const EntryPtr& entry) {
    return entry->request.willWait;
  });
  bell_.ring();  // a driver of this process that sleeps
  // A callback cannot wait, whatever it says.
  if (!callerWaits || inCallback()) kickBackground();
  return {};
}

Code Conductor::wait(const EntryPtr& entry, Deadline deadline, TimePoint since) {
  if (entry->done.load(std::memory_order_acquire)) return Code::kOk;
  // Told to wait, a sequencer hurries; what goes by order needs none.
  std::shared_ptr<ProcessSet> set;
  if (!entry->exchange) {
    const MutexLock lock(mutex_);
    if (const auto found = sets_.find(entry->set); found != sets_.end()) set = found->second;
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  if (set) set->control().setWaiting(1);
  Left left = Left::kDone;
  DirectCallbacks::Batch callbacks;
  // When the deadline was looked at: a stop of this process shows in a long time between two looks.
  TimePoint looked = since;
  while (!entry->done.load(std::memory_order_acquire)) {
    if (drive_.tryLock()) {
      left = driveUntil(entry, deadline, looked);
      callbacks = direct_.take();
      drive_.unlock();
      if (left != Left::kCallbacks) break;
      left = Left::kDone;
      if (waiters_.load(std::memory_order_seq_cst) > 1) wakeWaiters();
      direct_.run(std::exchange(callbacks, {}));
      looked = TimePoint{};  // callbacks take as long as they like
      continue;
    }
    // Somebody else drives, and says when something is done or the role is free.
    const std::uint32_t seen = completionWord_.load(std::memory_order_acquire);
    if (entry->done.load(std::memory_order_acquire)) break;
    if (passed(deadline, looked)) {
      left = Left::kTimeout;
      break;
    }
    const auto outcome = futexWait(
        completionWord_, seen, earlier(deadline, Deadline::after(std::chrono::milliseconds(20))),
        FutexScope::kPrivate);
    if (outcome == FutexWait::kInterrupted) {
      left = Left::kInterrupted;
      break;
    }
  }
  if (set) set->control().setWaiting(-1);
  const int others = waiters_.fetch_sub(1, std::memory_order_seq_cst) - 1;
  if (others > 0) {
    wakeWaiters();
  } else if (anythingInFlight()) {
    kickBackground();
  }
  // Last: from here on others drive.
  direct_.run(std::move(callbacks));
  switch (left) {
    case Left::kDone:
    case Left::kCallbacks: return Code::kOk;
    case Left::kTimeout: return Code::kTimeout;
    case Left::kInterrupted: return Code::kInterrupted;
  }
  return Code::kOk;
}

// Without the time in which this process was stopped since the last look.
bool Conductor::passed(Deadline& deadline, TimePoint& looked, TimePoint now) {
  if (deadline.isNever()) return false;
  const TimePoint last = std::exchange(looked, now);
  if (last != TimePoint{} && now - last > kStoppedFor) {
    deadline = Deadline::after(now - last, deadline.at());
  }
  return now >= deadline.at();
}

Conductor::Left Conductor::driveUntil(const EntryPtr& entry, Deadline& deadline,
                                      TimePoint& looked) {
  // The background thread may have announced its sleep and still be in it: whoever drives is awake.
  bell_.awake();
  TimePoint idleSince{};
  TimePoint waitsSince{};  // the same, but for sleeps
  for (int round = 0;; ++round) {
    const bool moved = pollAndStep();
    if ((moved || entry->done.load(std::memory_order_acquire)) && waitsSince != TimePoint{}) {
      const Duration waited = Clock::now() - waitsSince;
      if (waited > options_.spin) yieldLimit_.waited(waited);
      waitsSince = TimePoint{};
    }
    if (entry->done.load(std::memory_order_acquire)) return Left::kDone;
    if (direct_.any()) return Left::kCallbacks;
    if (moved) {
      // What came while this process was stopped must not hide that it was.
      if (looked != TimePoint{} && !deadline.isNever()) passed(deadline, looked);
      idleSince = looked = TimePoint{};
      round = 0;
      continue;
    }
    const TimePoint now = Clock::now();
    if (passed(deadline, looked, now)) return Left::kTimeout;
    if (idleSince == TimePoint{}) idleSince = now;
    if (waitsSince == TimePoint{}) waitsSince = now;
    if (now - idleSince < spinLimit()) {
      pause(round);
      continue;
    }
    if (now - waitsSince < yieldFor()) {
      yield();
      continue;
    }
    if (network_ != nullptr) network_->rest();
    const std::uint32_t seen = bell_.announceSleep();
    if (step() || entry->done.load(std::memory_order_acquire)) {
      bell_.awake();
      idleSince = TimePoint{};
      continue;
    }
    const bool rung = bell_.sleep(seen, sleepLimit(deadline));
    bell_.awake();
    if (!rung) return Left::kInterrupted;
    lookAround();
    idleSince = TimePoint{};
    round = 0;
  }
}

Duration Conductor::spinLimit() const {
  const bool network =
      std::any_of(stepped_.begin(), stepped_.end(),
                  [](const auto& set) REQUIRES(driverRole) { return set->awaitsNetwork(); });
  return network ? std::max(options_.spin, options_.linkSpin) : options_.spin;
}

Duration Conductor::yieldFor() const {
  // All have submitted what runs, so they are about to drive it.
  const bool runs = std::any_of(stepped_.begin(), stepped_.end(),
                                [](const auto& set) REQUIRES(driverRole) { return set->runs(); });
  return runs ? yieldLimit_.limit() : yieldLimit_.now();
}

bool Conductor::test(const EntryPtr& entry) {
  if (entry->done.load(std::memory_order_acquire)) return true;
  if (drive_.tryLock()) {
    pollAndStep();
    stepDown();
  }
  return entry->done.load(std::memory_order_acquire);
}

bool Conductor::cancel(const EntryPtr& entry, Deadline deadline) {
  if (!entry->done.load(std::memory_order_acquire)) {
    std::shared_ptr<ProcessSet> set;
    {
      const MutexLock lock(mutex_);
      if (const auto found = sets_.find(entry->set); found != sets_.end()) set = found->second;
    }
    if (set) set->cancel(entry);
    wait(entry, deadline);
  }
  return entry->done.load(std::memory_order_acquire) &&
         entry->outcome.status.code() == Code::kCancelled;
}

bool Conductor::step() {
  // Also before everything fails: the others must learn of the end from every set, even if nothing
  // ever ran here.
  if (const auto version = setsVersion_.load(std::memory_order_acquire);
      version != steppedVersion_) {
    const MutexLock lock(mutex_);
    steppedVersion_ = version;
    stepped_.clear();
    for (const auto& [id, set] : sets_) stepped_.push_back(set);
  }
  if (bell_.failed() && !failedEverything_) {
    failEverything(bell_.failure());
    return true;
  }
  const TimePoint now = Clock::now();
  bool moved = false;
  for (const auto& set : stepped_) {
    moved |= set->step(now);
    if (!brokenBy_.ok()) break;
  }
  if (!brokenBy_.ok()) {
    bell_.fail(std::exchange(brokenBy_, Status()));
    failEverything(bell_.failure());
    return true;
  }
  return moved;
}

bool Conductor::pollAndStep() {
  if (network_ == nullptr) return step();
  const bool came = network_->poll();
  network_->hold();
  const bool moved = step();
  network_->letGo();
  return moved || came;
}

Deadline Conductor::sleepLimit(Deadline deadline) {
  Deadline limit = earlier(deadline, Deadline::after(kLookAround));
  for (const auto& set : stepped_) {
    if (const auto due = set->due()) {
      limit = earlier(limit, Deadline::after(std::max(*due - Clock::now(), Duration::zero())));
    }
    // An engine that cannot ring is looked at again.
    if (const Duration nap = set->nap(); nap < kLookAround) {
      limit = earlier(limit, Deadline::after(nap));
    }
  }
  return limit;
}

void Conductor::runs(TimePoint now, bool wasStopped) {
  if (wasStopped) {
    logDebug("was stopped, and runs again");
    resumedAt_.store(now, std::memory_order_relaxed);
  }
  ranAt_.store(now, std::memory_order_relaxed);
}

void Conductor::lookAround() {
  if (options_.tidy) options_.tidy();
  const TimePoint now = Clock::now();
  const TimePoint ran = ranAt_.load(std::memory_order_relaxed);
  // The watch has not run either: this process has just been continued.
  const bool wasStopped = ran != TimePoint{} && now - ran > kStoppedFor;
  const TimePoint resumed = wasStopped ? now : resumedAt_.load(std::memory_order_relaxed);
  for (const auto& set : stepped_) {
    set->checkStalls(now, resumed, options_.stallWarning, options_.stallShutdown);
  }
  if (!brokenBy_.ok()) {
    bell_.fail(std::exchange(brokenBy_, Status()));
    failEverything(bell_.failure());
  }
}

void Conductor::failEverything(const Status& status) {
  failedEverything_ = true;
  const bool shutdown = status.code() == Code::kShutdown;
  const std::string count = std::to_string(inFlight_.load(std::memory_order_relaxed));
  logDebug(shutdown ? "shuts down with " + count + " operations in flight"
                    : "fails all " + count + " operations in flight: " + status.message());
  if (silent_) {
    for (const auto& set : stepped_) set->failAll(status);
    return;
  }
  if (!shutdown || lostTo_ >= 0) {
    // Before the others can see that it leaves.
    rankStates_.leave(gaveUpBecauseOf(shutdown ? lostTo_ : status.rank()));
  }
  // The others must not wait for this rank.
  for (const auto& set : stepped_) set->leave();
  if (network_ != nullptr) network_->end();
  for (const auto& set : stepped_) set->failAll(status);
}

void Conductor::fail(Status status) {
  bell_.fail(std::move(status));
  // At once: whatever ends this process before a driver says good-bye, the others shall not take it
  // for the cause.
  if (const Status first = bell_.failure(); first.code() != Code::kShutdown) {
    rankStates_.leave(gaveUpBecauseOf(first.rank()));
  }
  kickBackground();
  wakeWaiters();
}

void Conductor::completed(const EntryPtr& entry) {
  count(operations_, 1);
  count(bytes_, entry->outcome.bytes);
  // Copied first: once done is set, the owner may release the entry.
  const auto onComplete = entry->request.onComplete;
  const bool anywhere = entry->request.callbackAnywhere;
  const auto queue = entry->request.queue;
  Completion completion{};
  if (queue || onComplete) {
    completion = {entry->handle, entry->request.queueTag, entry->outcome.status.code()};
  }
  inFlight_.fetch_sub(1, std::memory_order_relaxed);
  entry->done.store(true, std::memory_order_release);
  if (queue) queue->push(completion);
  if (onComplete) {
    auto callback = [=] { onComplete(completion.handle, completion.code); };
    if (anywhere) {
      direct_.add(std::move(callback));
    } else {
      completionThread_.post(std::move(callback));
    }
  }
  // The driver itself is one of the waiters.
  if (waiters_.load(std::memory_order_relaxed) > 1) wakeWaiters();
}

void Conductor::ran(const Execution& execution) {
  count(batches_, 1);
  if (timeline_.enabled()) record(execution);
}

void Conductor::record(const Execution& execution) {
  const auto nanoseconds = [](TimePoint at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  };
  const std::int64_t begin = nanoseconds(execution.startedAt());
  const std::int64_t end = nowNanoseconds();
  const std::string kind(control::name(execution.entries().front()->agreed->kind));
  const observe::TimelineArgument batch[] = {
      {"tensors", static_cast<std::int64_t>(execution.entries().size())},
      {"bytes", execution.bytes()},
  };
  timeline_.event(kind, "engine", begin, end, batch);
  for (const EntryPtr& entry : execution.entries()) {
    if (entry->neutral) continue;
    const std::string& tensor = entry->request.name;
    // A track for each tensor, as long as a viewer can show them.
    auto track = tracks_.find(tensor);
    if (track == tracks_.end()) {
      if (tracks_.size() >= kMaxTracks) continue;
      track = tracks_.emplace(tensor, static_cast<int>(tracks_.size()) + 1).first;
      timeline_.nameTrack(track->second, tensor);
    }
    const observe::TimelineArgument size[] = {{"bytes", entry->agreed->bytes()}};
    timeline_.event("wait for all", "tensor", nanoseconds(entry->submitted), begin, {},
                    track->second);
    timeline_.event(kind, "tensor", begin, end, size, track->second);
  }
}

void Conductor::broken(Status status) {
  if (!brokenBy_.ok()) return;
  logDebug("cannot go on: " + status.message());
  brokenBy_ = std::move(status);
}

void Conductor::lostTo(std::int32_t rank) {
  if (lostTo_ < 0) lostTo_ = rank;
}

SetObserver::Blame Conductor::blameFor(std::int32_t rank) {
  const auto mark = rankStates_.markOf(rank);
  if (!hasGivenUp(mark)) return {rank, true};
  const TimePoint now = Clock::now();
  if (gaveUpSeen_ == TimePoint{}) gaveUpSeen_ = now;
  const std::int32_t culprit = culpritOf(mark);
  return {culprit >= 0 ? culprit : rank, now - gaveUpSeen_ >= kOwnAccount};
}

void Conductor::wakeWaiters() {
  completionWord_.fetch_add(1, std::memory_order_release);
  futexWakeAll(completionWord_, FutexScope::kPrivate);
}

void Conductor::pause(int round) {
  for (int i = 0; i < std::min(round + 1, 16); ++i) relax();
}

void Conductor::yield() {
  for (int i = 0; i < 4; ++i) pause(15);
  ::sched_yield();
}

void Conductor::stepDown() {
  auto callbacks = direct_.take();
  drive_.unlock();
  if (waiters_.load(std::memory_order_seq_cst) > 0) wakeWaiters();
  direct_.run(std::move(callbacks));
}

Conductor::Counters Conductor::counters() const {
  Counters counters;
  counters.operations = operations_.load(std::memory_order_relaxed);
  counters.batches = batches_.load(std::memory_order_relaxed);
  counters.bytes = bytes_.load(std::memory_order_relaxed);
  const MutexLock lock(mutex_);
  ProcessSet::Counters all = removed_;
  for (const auto& [id, set] : sets_) add(all, set->counters());
  counters.planHits = all.planHits;
  counters.planMisses = all.planMisses;
  counters.zeroCopyBytes = all.zeroCopyBytes;
  return counters;
}

void Conductor::halt() {
  silent_ = true;
  endThreads();
}

void Conductor::stop() {
  // Not before the failure is known: a driver that sleeps keeps its role until then.
  endThreads();
  if (!silent_.exchange(false)) return;
  const Driving driving(drive_);
  for (const auto& set : stepped_) set->leave();
}

void Conductor::endThreads() {
  stopping_.store(true, std::memory_order_seq_cst);
  backgroundWord_.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(backgroundWord_, FutexScope::kPrivate);
  bell_.fail(Status(Code::kShutdown, "farandole was shut down on this rank"));
  if (background_.joinable()) background_.join();
  DirectCallbacks::Batch callbacks;
  {
    const Driving driving(drive_);
    step();  // with the failure set: ends everything in flight and says good-bye to the others
    if (!failedEverything_) failEverything(bell_.failure());
    bell_.awake();
    callbacks = direct_.take();
  }
  wakeWaiters();
  direct_.run(std::move(callbacks));
  // Threads inside wait() leave on their own: their entries are done.
  for (int i = 0; waiters_.load(std::memory_order_seq_cst) > 0 && i < 10'000; ++i) {
    wakeWaiters();
    ::usleep(100);
  }
  direct_.awaitAll();
  completionThread_.stop();
}

// The background thread.

void Conductor::kickBackground() {
  backgroundWord_.fetch_add(1, std::memory_order_seq_cst);
  if (backgroundParked_.load(std::memory_order_seq_cst)) {
    futexWakeAll(backgroundWord_, FutexScope::kPrivate);
  }
}

bool Conductor::backgroundNeeded() const {
  return anythingInFlight() && waiters_.load(std::memory_order_seq_cst) == 0 &&
         !stopping_.load(std::memory_order_relaxed);
}

// The sequencer may have nothing of its own in flight for an hour; what the others wait for must
// still be sequenced, and their stalls be noticed.
void Conductor::lookAroundIdle() {
  if (waiters_.load(std::memory_order_seq_cst) > 0 || !drive_.tryLock()) return;
  step();
  lookAround();
  stepDown();
}

void Conductor::runInBackground() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint32_t seen = backgroundWord_.load(std::memory_order_seq_cst);
    if (backgroundNeeded() && drive_.tryLock()) {
      driveInBackground();
      continue;
    }
    backgroundParked_.store(true, std::memory_order_seq_cst);
    if (backgroundWord_.load(std::memory_order_seq_cst) == seen &&
        !stopping_.load(std::memory_order_acquire)) {
      const auto left =
          futexWait(backgroundWord_, seen, Deadline::after(kLookAround), FutexScope::kPrivate);
      if (left == FutexWait::kTimeout) lookAroundIdle();
    }
    backgroundParked_.store(false, std::memory_order_seq_cst);
  }
}

void Conductor::driveInBackground() {
  TimePoint idleSince{};
  while (backgroundNeeded() && !direct_.any()) {
    bell_.awake();
    if (pollAndStep()) {
      idleSince = TimePoint{};
      continue;
    }
    const TimePoint now = Clock::now();
    if (idleSince == TimePoint{}) idleSince = now;
    if (now - idleSince < std::min(options_.spin, kBackgroundSpin)) {
      pause(0);
      continue;
    }
    if (network_ != nullptr) network_->rest();
    const std::uint32_t bell = bell_.announceSleep();
    if (step() || !backgroundNeeded()) continue;
    const Deadline limit = sleepLimit(Deadline::never());
    // Whoever starts to wait meanwhile can take the role without waking this thread.
    drive_.unlock();
    bell_.sleep(bell, limit);
    if (!drive_.tryLock()) return;
    bell_.awake();
    lookAround();
    idleSince = TimePoint{};
  }
  bell_.awake();
  stepDown();
}

}  // namespace farandole::conductor
