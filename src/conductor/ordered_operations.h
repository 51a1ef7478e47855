// OrderedOperations: the entries of one process set whose order the caller promises. It connects
// the channel that carries them (control/ordered_channel.h) with the computation of their results
// (collective/exchange.h).
//
// Threads. As for OrderedChannel: any thread may call submit, countByName and leave, one at a time.
// The rest is called by the driver only.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collective/exchange.h"
#include "conductor/entry.h"
#include "control/ordered_channel.h"

namespace farandole::conductor {

class OrderedOperations {
 public:
  struct Finished {
    EntryPtr entry;
    Status status;
    int culprit = -1;  // member
  };
  struct Stall {
    std::string name;
    std::vector<int> missing;  // members
    Duration age{};
  };

  // Sets `options.mostPayload`.
  explicit OrderedOperations(control::OrderedChannel::Options options);

  control::OrderedChannel& channel() { return channel_; }
  const control::OrderedChannel& channel() const { return channel_; }

  // How such an operation is exchanged directly; nullopt if it must go by its name. All members get
  // the same answer.
  static std::optional<collective::Exchange> exchangeOf(const control::Meta& meta, int members);

  // Submits an entry that has an exchange.
  void submit(const EntryPtr& entry);
  // Counts any other ordered entry. It gets a name if it has none.
  void countByName(const EntryPtr& entry);

  // Appends what is finished by now, in order. An error if a member breaks the protocol.
  Status step(std::vector<Finished>& finished);
  // See OrderedChannel.
  std::vector<EntryPtr> takeDisputed();
  std::vector<EntryPtr> takeAll();
  std::optional<Stall> stall(TimePoint now, Duration olderThan) const;

 private:
  // Computes the entry's result from what all members have sent.
  void finish(Finished& finished, std::span<const std::span<const std::byte>> data) const;

  control::OrderedChannel channel_;
};

}  // namespace farandole::conductor
