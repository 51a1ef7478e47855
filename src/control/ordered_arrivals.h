// OrderedArrivals: what the other members of an ordered channel have sent, until this member has
// its own part of the same operation.
//
// Threads. receive: any. The rest: one at a time. Everything locks for itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/raw_bytes.h"
#include "control/ordered_record.h"

namespace farandole::control {

class OrderedArrivals {
 public:
  // room: the first bytes of every message, which are not its own. mostPayload: no record has more.
  // window: the most records that a member sends ahead.
  struct Limits {
    std::size_t room = 0;
    std::size_t mostPayload = 0;
    std::size_t window = 0;
  };
  OrderedArrivals(int members, int me, Limits limits);

  // As it came; what is left in the message's place is memory to use again.
  void receive(int member, RawBytes& message);
  // The record in a message that receive() has accepted; nullopt for anything else.
  std::optional<OrderedRecord> recordIn(const RawBytes& message) const {
    return decodeOrdered(message.bytes().subspan(limits_.room));
  }

  // Whether a member has left or has broken the protocol. Any thread, no lock.
  bool trouble() const { return trouble_; }
  // The first member that has broken the protocol; -1: none.
  int offender() const;
  // The first member that has left without its part of that operation; -1: none.
  int leftWithout(std::uint64_t number) const;
  // The members whose part of that operation is not here.
  std::vector<int> missing(std::uint64_t number) const;

  // Moves everybody's part of that operation into `taken`, by member; what that held is memory to
  // use again. False: not all are here.
  bool take(std::uint64_t number, std::vector<RawBytes>& taken);
  // The same in the usual case: everybody has sent it as the next one, and nothing else is to be
  // settled. False: perhaps not. more: whether further records are here.
  bool takeUsual(std::uint64_t number, std::vector<RawBytes>& taken, bool& more);
  // The least number, below `limit`, of a record that is here. Forgets who went by name before
  // `oldest`: nobody asks for that any more.
  std::optional<std::uint64_t> earliest(std::uint64_t limit, std::uint64_t oldest);
  // Forgets the records of that number, which are the earliest.
  void drop(std::uint64_t number);

 private:
  struct Arrived {
    std::uint64_t number = 0;
    RawBytes message;
  };
  struct Member {
    std::deque<Arrived> records;               // ascending
    std::map<std::uint64_t, RawBytes> byName;  // by number
    std::uint64_t next = 0;                    // the least number that its next record may have
    bool left = false;
    bool offends = false;
  };

  bool breaksProtocol(const Member& from, const std::optional<OrderedRecord>& record) const
      REQUIRES(mutex_);
  bool lacks(int member, std::uint64_t number) const REQUIRES(mutex_);
  void moveRecords(std::uint64_t number, std::vector<RawBytes>& taken) REQUIRES(mutex_);

  const int me_;
  const Limits limits_;
  std::atomic<bool> trouble_{false};

  mutable Mutex mutex_;
  std::vector<Member> members_ GUARDED_BY(mutex_);
  std::vector<RawBytes> spare_ GUARDED_BY(mutex_);  // memory of records that are done with
};

}  // namespace farandole::control
