// Board: one member's view of a communicator's shared area: its flags, its slots, and what it has
// already seen of the others. The only place that knows memory order; operations (operation.h) see
// steps, slots and questions that are answered with yes or not yet.
//
// Steps. Every operation uses a run of consecutive step numbers which all members agree on. At a
// step a member may fill its contribution slot and, later, its answer slot; others read them.
// Slots of step s are reused at step s + kRing.
//
// Invariants.
//  1. contributed, answered, consumed of a member only grow, and only that member writes them.
//  2. A slot is written before the counter that announces it (release), and read after that counter
//     was seen (acquire): the reader sees the whole content.
//  3. A slot is written again only after every other member is known to have read it: from its
//     `consumed` (release after the reads, acquire here), or because a later sign from that member
//     implies it (see the notes in allreduce_exchange.cc).
//  4. A member takes up an operation only when it is done with the one before: a sign of a member
//     from an operation means that all earlier steps are consumed by it.
//
// Used by one thread at a time; owned by the communicator; the area outlives it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/reduce.h"
#include "collective/shm/layout.h"
#include "machine/neighbourhood.h"

namespace farandole::collective::shm {

class Board {
 public:
  Board(machine::Neighbourhood& neighbourhood, void* area, std::vector<int> members, int me);

  int me() const { return me_; }
  int size() const { return static_cast<int>(members_.size()); }
  machine::Neighbourhood& neighbourhood() { return neighbourhood_; }
  const AreaLayout& layout() const { return layout_; }
  int localRank(int member) const { return members_[static_cast<std::size_t>(member)]; }
  SharedChoices& choices();

  // The first step of the operation that runs now.
  std::uint64_t base() const { return base_; }
  // Ends the operation: all its steps, up to but not including end, are over for this member.
  void finish(std::uint64_t end);

  std::byte* contribution(int member, std::uint64_t step) const;
  std::byte* answer(int member, std::uint64_t step) const;

  // May this member fill its slot of that step? Not yet, as long as someone may still read the
  // slot's former content.
  bool mayContribute(std::uint64_t step) {
    return step < contributionsRead_ + kRing || refresh(step);
  }
  bool mayAnswer(std::uint64_t step) { return step < answersRead_ + kRing || refresh(step); }
  // For operations that learn from their own data flow what the others have read.
  void noteContributionsRead(std::uint64_t below);
  void noteAnswersRead(std::uint64_t below);

  // Announces all own slots below a step, and wakes the members that sleep.
  void contribute(std::uint64_t below);
  void answerUpTo(std::uint64_t below);
  void consume(std::uint64_t below);

  // Has that member filled its slot of that step?
  bool contributed(int member, std::uint64_t step);
  bool answered(int member, std::uint64_t step);
  // Have all members? Remembers what it has seen.
  bool allContributed(std::uint64_t step);
  bool allAnswered(std::uint64_t step);

  // Tiny operations have numbers and lines of their own.
  std::uint64_t nextTiny() { return tiny_++; }
  void writeTiny(std::uint64_t number, std::span<const std::byte> payload);
  // The payload of that member, or nullptr.
  const std::byte* readTiny(int member, std::uint64_t number);
  // The same for a number that was read before: never nullptr, whatever was written there since.
  const std::byte* tinyPayload(int member, std::uint64_t number) const {
    return flags(member).tiny[number % 2].payload;
  }
  // Everybody has begun the operation that runs now: invariant 4.
  void noteAllBegun();

  Channel& channel(int from, int to) const;
  std::byte* stream(int from, int to) const;

  // A member's memory as (offset, bytes) in its arena; nullptr if it does not fit.
  std::byte* at(int member, std::uint64_t offset, std::uint64_t bytes) const {
    return neighbourhood_.at(localRank(member), offset, bytes);
  }

  void ringOthers() { neighbourhood_.ring(othersMask_); }
  void ring(int member) { neighbourhood_.ring(localRank(member)); }

  // A member whose flags are of another epoch than this rank's, or -1. Looked at once per member.
  int strangerFound() const { return stranger_; }
  // A member whose sign was asked for and will never come, because its process is gone; or -1.
  int missedFor() const { return missed_; }

 private:
  struct Seen {
    std::uint64_t contributed = 0;
    std::uint64_t answered = 0;
    bool checked = false;
  };
  MemberFlags& flags(int member) const { return *flags_[static_cast<std::size_t>(member)]; }
  bool refresh(std::uint64_t step);
  void check(int member);
  // Asked before that member's flags are looked at: if they lack something then, they always will.
  bool isGone(int member) const { return neighbourhood_.isGone(localRank(member)); }

  // Constant after construction.
  machine::Neighbourhood& neighbourhood_;
  std::byte* const area_;
  const std::vector<int> members_;
  const int me_;
  const AreaLayout layout_;
  std::vector<MemberFlags*> flags_;
  std::array<std::uint64_t, machine::kMaxLocalRanks / 64> othersMask_{};

  // What this member has said.
  std::uint64_t base_ = 0;
  std::uint64_t contributed_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t tiny_ = 0;

  // What it knows of the others.
  std::vector<Seen> seen_;
  std::uint64_t allContributed_ = 0;  // everybody has contributed below this
  std::uint64_t allAnswered_ = 0;
  // The search for who is missing goes on where it stopped: no member before `member` is missing at
  // `step`.
  struct Search {
    std::uint64_t step = 0;
    int member = 0;
  };
  Search contributionSearch_;
  Search answerSearch_;
  std::uint64_t contributionsRead_ = 0;  // own slots below this were read by everybody
  std::uint64_t answersRead_ = 0;
  int stranger_ = -1;
  int missed_ = -1;
};

}  // namespace farandole::collective::shm
