// LinkControl: the control channel of a process set whose members are on several machines: a star
// of authenticated connections around the sequencer.
//
// Windows bound what may be in flight: the log by the least acknowledged position of all members,
// submissions by what the sequencer has taken. The sender keeps to them, and the receiver checks
// that: what exceeds a window is RingRead::kTooMuch, and nothing after it is kept. Submissions also
// say whether a thread waits. A message of its own is sent only when that changes, so that a
// program that waits for every operation sends one message for each. A member that leaves tells the
// sequencer, which tells the others. When the sequencer has left, nothing can run any more, so no
// other member needs to be heard.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "base/mutex.h"
#include "control/control_channel.h"
#include "control/switchboard.h"

namespace farandole::control {

class LinkControl final : public ControlChannel {
 public:
  struct Options {
    std::uint32_t key = 0;            // of the set, the same on all members
    std::vector<std::int32_t> ranks;  // global
    int me = 0;
    // Called when something may have arrived for the driver. Any thread may call it.
    std::function<void()> wake;
    // Returns this rank's leave mark when it leaves (conductor/rank_states.h).
    std::function<std::uint32_t()> mark;
    // Called with the leave mark of another rank, on the mesh's thread.
    std::function<void(std::int32_t rank, std::uint32_t mark)> onLeft;
  };

  // The switchboard outlives this object.
  LinkControl(Switchboard& switchboard, Options options);
  ~LinkControl() override;

  bool submit(std::span<const std::byte> record) override;
  RingRead nextEntry(std::vector<std::byte>& entry) override;
  std::uint64_t position() const override { return position_; }
  RingRead nextSubmission(int member, std::vector<std::byte>& record) override;
  bool append(std::span<const std::byte> entry) override;
  void setWaiting(int delta) override;
  bool anyoneWaits() const override;
  void leave(std::uint64_t executed) override;
  std::optional<std::uint64_t> leftAt(int member) const override;

 private:
  struct Member {
    std::deque<std::vector<std::byte>> submissions;  // not read by the sequencer
    std::uint64_t owed = 0;                          // bytes that were read and not acknowledged
    std::uint64_t untaken = 0;  // bytes that have arrived and are not acknowledged
    std::uint64_t logRead = 0;
    bool waits = false;
    RingRead trouble = RingRead::kEmpty;  // kCorrupt or kTooMuch, after the submissions
    std::atomic<bool> something{false};   // there are submissions or trouble; read without the lock
    std::atomic<std::uint64_t> left{0};   // 0, or its last position + 1
  };

  int size() const { return static_cast<int>(options_.ranks.size()); }
  bool sequencing() const { return options_.me == 0; }
  int memberOf(int rank) const;
  void send(int member, std::span<const std::byte> message);
  // Called on the mesh's thread.
  void receive(int from, std::span<const std::byte> message);
  // Returns kRecord if the message is as it must be.
  RingRead receiveAsSequencer(int member, std::span<const std::byte> message);
  RingRead receiveAsMember(std::span<const std::byte> message);
  void noteLeft(int member, std::uint64_t executed, std::uint32_t mark);

  Switchboard& switchboard_;
  const Options options_;

  mutable Mutex mutex_;
  std::vector<Member> members_;  // atomic fields are used without mutex_, the others under it
  std::deque<std::vector<std::byte>> log_ GUARDED_BY(mutex_);  // not read by this member
  RingRead logTrouble_ GUARDED_BY(mutex_) =
      RingRead::kEmpty;                                // kCorrupt or kTooMuch, after the log
  std::uint64_t received_ GUARDED_BY(mutex_) = 0;      // bytes of the log
  std::uint64_t acknowledged_ GUARDED_BY(mutex_) = 0;  // bytes of the log, to the sequencer
  std::atomic<bool> somethingLogged_{false};
  // Bytes of this member's submissions that the sequencer has not read.
  std::uint64_t untaken_ GUARDED_BY(mutex_) = 0;
  bool announcedWaiting_ GUARDED_BY(mutex_) = false;
  // The number of further submissions that say that a thread waits.
  int recentWait_ GUARDED_BY(mutex_) = 0;

  // Only the driver uses these.
  std::uint64_t position_ = 0;
  std::uint64_t head_ = 0;  // of the log; used by the sequencer

  std::atomic<int> waiting_{0};
};

}  // namespace farandole::control
