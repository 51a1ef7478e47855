// OrderedArrivals: what the other members of an ordered channel have sent, until this member has
// submitted the same operation.
//
// Threads. Any thread may call receive. The rest is called by one thread at a time. Every function
// takes the lock itself.
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
  // room: the number of bytes at the beginning of every message that are not part of it.
  // mostPayload: no record has a larger payload. window: the number of records that a member sends
  // ahead.
  struct Limits {
    std::size_t room = 0;
    std::size_t mostPayload = 0;
    std::size_t window = 0;
  };
  OrderedArrivals(int members, int me, Limits limits);

  // Takes a message of another member. What is left in `message` is memory to be used again.
  void receive(int member, RawBytes& message);
  // Returns the record in a message that receive() has accepted; nullopt for anything else.
  std::optional<OrderedRecord> recordIn(const RawBytes& message) const {
    return decodeOrdered(message.bytes().subspan(limits_.room));
  }

  // True if a member has left or has broken the protocol. Any thread may call it; it takes no lock.
  bool trouble() const { return trouble_; }
  // The first member that has broken the protocol; -1 if there is none.
  int offender() const;
  // The first member that has left without sending its record of that operation; -1 if there is
  // none.
  int leftWithout(std::uint64_t number) const;
  // The members whose record of that operation is not here.
  std::vector<int> missing(std::uint64_t number) const;

  // Moves the records of that operation into `taken`, by member. What `taken` held is memory to be
  // used again. False if not all are here.
  bool take(std::uint64_t number, std::vector<RawBytes>& taken);
  // Does the same in the usual case: every member has sent that operation as its next one, and
  // there is nothing else to settle. False if that is perhaps not so. more: set to whether further
  // records are here.
  bool takeUsual(std::uint64_t number, std::vector<RawBytes>& taken, bool& more);
  // The least number, below `limit`, of a record that is here. Also forgets which members went by
  // name before `oldest`, because that is not needed any more.
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
  std::vector<RawBytes> spare_ GUARDED_BY(mutex_);  // memory of finished records
};

}  // namespace farandole::control
