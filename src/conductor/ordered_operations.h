// OrderedOperations: the entries of one process set whose order the caller promises. It joins the
// channel that carries them (control/ordered_channel.h) with what makes their results
// (collective/exchange.h).
//
// Threads. As OrderedChannel: submit, countByName and leave any, one at a time decides the order;
// the rest the driver.
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

  // `options.mostPayload` is set here.
  explicit OrderedOperations(control::OrderedChannel::Options options);

  control::OrderedChannel& channel() { return channel_; }
  const control::OrderedChannel& channel() const { return channel_; }

  // How such an operation goes directly, if it may: the same answer on all members.
  static std::optional<collective::Exchange> exchangeOf(const control::Meta& meta, int members);

  // One that has its exchange.
  void submit(const EntryPtr& entry);
  // Any other ordered one; gives a nameless one its name.
  void countByName(const EntryPtr& entry);

  // Appends what is finished now, in order. An error: a member breaks the protocol.
  Status step(std::vector<Finished>& finished);
  // See OrderedChannel.
  std::vector<EntryPtr> takeDisputed();
  std::vector<EntryPtr> takeAll();
  std::optional<Stall> stall(TimePoint now, Duration olderThan) const;

 private:
  // Turns what all members have sent into the entry's result.
  void finish(Finished& finished, std::span<const std::span<const std::byte>> data) const;

  control::OrderedChannel channel_;
};

}  // namespace farandole::conductor
