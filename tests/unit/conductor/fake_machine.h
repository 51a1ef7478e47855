// A machine without shared memory, ranks and network, for a conductor.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conductor/bell.h"
#include "conductor/network.h"
#include "conductor/rank_states.h"

namespace farandole::test {

class FakeBell final : public conductor::Bell {
 public:
  std::function<bool()> onSleep;  // instead of the sleep: false for a signal

  void ring() override {
    const std::lock_guard lock(mutex_);
    ++rung_;
    changed_.notify_all();
  }
  std::uint32_t announceSleep() override {
    const std::lock_guard lock(mutex_);
    return rung_;
  }
  bool sleep(std::uint32_t seen, Deadline deadline) override {
    if (onSleep) return onSleep();
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline.at(), [&] { return rung_ != seen; });
    return true;
  }
  void awake() override {}
  void fail(Status status) override {
    {
      const std::lock_guard lock(mutex_);
      if (failure_.ok()) failure_ = std::move(status);
    }
    ring();
  }
  bool failed() const override {
    const std::lock_guard lock(mutex_);
    return !failure_.ok();
  }
  Status failure() const override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::uint32_t rung_ = 0;
  Status failure_;
};

class FakeRankStates final : public conductor::RankStates {
 public:
  std::map<std::int32_t, std::uint32_t> marks;
  std::uint32_t mine = conductor::kStillHere;
  std::set<std::int32_t> goneRanks;

  std::uint32_t markOf(std::int32_t rank) const override {
    const auto found = marks.find(rank);
    return found == marks.end() ? conductor::kStillHere : found->second;
  }
  void leave(std::uint32_t mark) override {
    if (mine == conductor::kStillHere) mine = mark;
  }
  bool gone(std::int32_t rank) const override { return goneRanks.contains(rank); }
  std::uint32_t ends() const override { return static_cast<std::uint32_t>(goneRanks.size()); }
  bool stopped(std::int32_t) const override { return false; }
};

class FakeNetwork final : public conductor::Network {
 public:
  std::vector<std::string> calls;

  bool poll() override { return note("poll"); }
  void rest() override { note("rest"); }
  void hold() override { note("hold"); }
  void letGo() override { note("let go"); }
  void end() override { note("end"); }

 private:
  bool note(const char* call) {
    calls.emplace_back(call);
    return false;
  }
};

}  // namespace farandole::test
