// LinkControl: the control channel of a process set whose members are on several machines: a star
// of authenticated connections around the sequencer.
//
// Windows bound what may wait on the way: the log by the least acknowledged position of all
// members, submissions by what the sequencer has taken. Who sends keeps to them, and who receives
// checks that: what comes beyond is RingRead::kTooMuch, and nothing behind it is kept. That
// somebody waits is told with the submissions, and separately only when it is news, so that a
// program that waits for every operation sends one message for each. A member that leaves tells the
// sequencer, which tells the others; when the sequencer has left nothing can run any more, so
// nobody else needs to be heard.
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
    // Something may have come for the driver. Any thread.
    std::function<void()> wake;
    // What this rank says when it leaves (leave_mark.h).
    std::function<std::uint32_t()> mark;
    // What another said; on the mesh's thread.
    std::function<void(std::int32_t rank, std::uint32_t mark)> onLeft;
  };

  // The switchboard outlives it.
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
    std::uint64_t owed = 0;                          // of what was read, not acknowledged
    std::uint64_t untaken = 0;                       // of what came, not acknowledged
    std::uint64_t logRead = 0;
    bool waits = false;
    RingRead trouble = RingRead::kEmpty;  // kCorrupt or kTooMuch, behind the submissions
    std::atomic<bool> something{false};   // submissions or trouble; a look without the lock
    std::atomic<std::uint64_t> left{0};   // 0, or its last position + 1
  };

  int size() const { return static_cast<int>(options_.ranks.size()); }
  bool sequencing() const { return options_.me == 0; }
  int memberOf(int rank) const;
  void send(int member, std::span<const std::byte> message);
  // On the mesh's thread.
  void receive(int from, std::span<const std::byte> message);
  // kRecord: it was in order.
  RingRead receiveAsSequencer(int member, std::span<const std::byte> message);
  RingRead receiveAsMember(std::span<const std::byte> message);
  void noteLeft(int member, std::uint64_t executed, std::uint32_t mark);

  Switchboard& switchboard_;
  const Options options_;

  mutable Mutex mutex_;
  std::vector<Member> members_;  // their queues and troubles under mutex_, what is atomic without
  std::deque<std::vector<std::byte>> log_ GUARDED_BY(mutex_);  // not read by this member
  RingRead logTrouble_ GUARDED_BY(mutex_) = RingRead::kEmpty;  // behind the log, as a member's
  std::uint64_t received_ GUARDED_BY(mutex_) = 0;              // of the log
  std::uint64_t acknowledged_ GUARDED_BY(mutex_) = 0;          // of the log, to the sequencer
  std::atomic<bool> somethingLogged_{false};
  // Bytes of this member's submissions that the sequencer has not read.
  std::uint64_t untaken_ GUARDED_BY(mutex_) = 0;
  bool announcedWaiting_ GUARDED_BY(mutex_) = false;
  // Submissions that still count as those of somebody who waits.
  int recentWait_ GUARDED_BY(mutex_) = 0;

  // The driver's.
  std::uint64_t position_ = 0;
  std::uint64_t head_ = 0;  // of the log; the sequencer's

  std::atomic<int> waiting_{0};
};

}  // namespace farandole::control
