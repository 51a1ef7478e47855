// The conductor's own thread: drives while operations are in flight and nobody waits for them.
#include <algorithm>

#include "base/futex.h"
#include "conductor/conductor.h"

namespace farandole::conductor {
namespace {

// It competes with the program's own work, so it hardly spins.
constexpr Duration kBackgroundSpin = std::chrono::microseconds(5);

}  // namespace

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
  if (waiters_.load(std::memory_order_seq_cst) > 0 || !drive_.try_lock()) return;
  step();
  lookAround();
  stepDown();
}

void Conductor::runInBackground() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint32_t seen = backgroundWord_.load(std::memory_order_seq_cst);
    if (backgroundNeeded() && drive_.try_lock()) {
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
    if (!drive_.try_lock()) return;
    bell_.awake();
    lookAround();
    idleSince = TimePoint{};
  }
  bell_.awake();
  stepDown();
}

}  // namespace farandole::conductor
