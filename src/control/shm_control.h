// ShmControl: the control channel among ranks of one machine, with rings in shared memory and
// doorbells.
#pragma once

#include <memory>
#include <vector>

#include "control/control_channel.h"
#include "machine/neighbourhood.h"

namespace farandole::control {

class ShmControl final : public ControlChannel {
 public:
  // The bytes of shared memory that a set of that many members needs.
  static std::size_t bytesNeeded(int members);

  // `area`: as for makeShmCommunicator, zeroed, the same for all members, and it outlives this
  // object. `members`: local ranks in the order of the set. `me`: the member index of this rank.
  ShmControl(machine::Neighbourhood& neighbourhood, void* area, std::vector<int> members, int me);

  bool submit(std::span<const std::byte> record) override;
  RingRead nextEntry(std::vector<std::byte>& entry) override;
  std::uint64_t position() const override { return log_.position(); }
  RingRead nextSubmission(int member, std::vector<std::byte>& record) override;
  bool append(std::span<const std::byte> entry) override;
  void setWaiting(int delta) override;
  bool anyoneWaits() const override;
  void leave(std::uint64_t executed) override;
  std::optional<std::uint64_t> leftAt(int member) const override;

 private:
  struct Header;
  struct Member;

  Member& member(int index) const;

  machine::Neighbourhood& neighbourhood_;
  const std::vector<int> members_;
  const int me_;
  Header* header_;
  RingReader log_;
  RingWriter logWriter_;                                    // used by member 0
  RingWriter submissionWriter_;                             // this member's
  std::vector<RingReader> submissions_;                     // used by member 0
  mutable std::vector<std::optional<std::uint64_t>> left_;  // by member: what was said first
};

}  // namespace farandole::control
