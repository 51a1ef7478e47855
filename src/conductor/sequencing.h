// Sequencing: the sequencer of a set at work, on its first member: submissions come in from the
// control channel, what is decided goes into the log.
//
// The driver's alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "conductor/members.h"
#include "control/control_channel.h"
#include "control/sequencer.h"

namespace farandole::conductor {

class Sequencing {
 public:
  // The references outlive it.
  Sequencing(std::unique_ptr<control::Sequencer> sequencer, control::ControlChannel& control,
             const Members& members)
      : sequencer_(std::move(sequencer)), control_(control), members_(members) {}

  // Reads, decides and appends. executed: how many batches this member has executed. True if
  // something moved.
  bool step(TimePoint now, std::uint64_t executed);
  // Not ok: a member does not keep to the protocol; nothing more is sequenced.
  const Status& trouble() const { return trouble_; }
  // Puts an entry into the log, now or when there is room.
  void append(const control::LogEntry& entry);

  const control::Sequencer& sequencer() const { return *sequencer_; }

 private:
  Status take(int member, control::RingRead read, TimePoint now);
  bool flush();

  const std::unique_ptr<control::Sequencer> sequencer_;
  control::ControlChannel& control_;
  const Members& members_;
  std::deque<std::vector<std::byte>> unappended_;  // entries that found the log full
  std::uint64_t batches_ = 0;                      // decided so far
  Status trouble_;
  // What follows is memory that is used again.
  std::vector<std::byte> record_;
  control::Submission submission_;
  std::vector<control::LogEntry> decided_;
  ByteWriter entry_;
};

}  // namespace farandole::conductor
