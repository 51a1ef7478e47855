// OrderedChannel: operations whose order the caller promises need no agreement before they run.
//
// Names let ranks submit in any order, at the cost of a round trip to the sequencer before the data
// is sent. If all members promise to submit their ordered operations in the same order, the n-th
// one of every member is the same operation. So each member sends a record of what it is, with its
// data, directly to the others, and finishes the operation when it has the n-th record of every
// member. The promise is checked: if records disagree, all members fail that operation with the
// same text, and the next one is not affected.
//
// Two kinds of ordered operations are counted here, with one counter:
//   direct    small ones (the caller decides what is small, the same on all members), sent as above
//   by name   all others: they are agreed on like any named operation, and nothing is sent here
//
// Members may disagree about which kind their n-th operation is, because their sizes differ. A
// member whose operation goes by name notices that when a direct record has the same number: the
// operation is disputed. The member first retracts the operation from the sequencer, and only then
// tells the others what it was. So no member goes on before all have given the operation up, and
// all fail with the same text.
//
// Flow control. At most kWindow operations are sent before the oldest one is finished.
//
// Threads. Any thread may call submit, countByName and leave, one at a time, which decides the
// order. Any thread may call receive. The rest is called by the driver only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/raw_bytes.h"
#include "base/status.h"
#include "control/ordered_arrivals.h"
#include "control/ordered_record.h"

namespace farandole::control {

// An operation as the channel knows it. Its owner derives from it, and gets it back in the end.
class OrderedOperation {
 public:
  virtual const std::string& orderedName() const = 0;  // may be empty
  virtual const Meta& orderedMeta() const = 0;
  virtual TimePoint orderedSince() const = 0;

  // Set by the channel before any other thread sees the operation.
  std::uint64_t place = 0;  // among this member's ordered operations, from 0
  bool byName = false;      // counted here, but agreed on by its name

 protected:
  ~OrderedOperation() = default;
};
using OrderedOperationPtr = std::shared_ptr<OrderedOperation>;

class OrderedChannel {
 public:
  static constexpr std::size_t kWindow = 16;

  struct Options {
    std::vector<std::string> memberNames;  // "rank 3"
    int me = 0;
    std::size_t mostPayload = 0;  // no record of any member carries more
    // Sends a message in two parts to that member. Messages to a member arrive in order. The first
    // `room` bytes of the front belong to this function. Any thread may call it.
    std::function<void(int member, std::string& front, std::span<const std::byte> body)> send;
    std::size_t room = 0;
    // Called when something has arrived for the driver. Any thread may call it.
    std::function<void()> wake;
    // Called by the destructor. Afterwards receive() is not called any more. May be empty.
    std::function<void()> detach;
  };
  // An operation that is finished as far as the channel is concerned.
  struct Delivery {
    OrderedOperationPtr operation;
    Status status;     // ok: all members agree, and their data is in `data`
    int culprit = -1;  // member
    // What each member has sent; this member's own input at [me]. Valid until the next call of
    // next().
    std::span<const std::span<const std::byte>> data;
  };
  struct Stall {
    OrderedOperationPtr operation;
    std::vector<int> missing;  // members
    Duration age{};
  };

  explicit OrderedChannel(Options options);
  ~OrderedChannel();
  OrderedChannel(const OrderedChannel&) = delete;
  OrderedChannel& operator=(const OrderedChannel&) = delete;

  int size() const { return static_cast<int>(options_.memberNames.size()); }
  int me() const { return options_.me; }
  const std::string& nameOf(int member) const {
    return options_.memberNames[static_cast<std::size_t>(member)];
  }

  // Submits a direct operation. The data stays valid until the operation is given back. `receivers`
  // says which members need it (bit i: member i).
  void submit(const OrderedOperationPtr& operation, std::span<const std::byte> data,
              std::uint32_t receivers);
  // Counts an operation that goes by its name. If it has no name, the caller names it nameAt(its
  // place).
  void countByName(const OrderedOperationPtr& operation);
  // Names by the common count, so that the members' names still match after a disagreement.
  static std::string nameAt(std::uint64_t place);
  // An operation that went by its name has ended.
  void ended(const OrderedOperation& operation);
  // Returns the operations by name that have become disputed since the last call. The driver
  // retracts each of them from the sequencer and then calls retracted(). In the end next() returns
  // them.
  std::vector<OrderedOperationPtr> takeDisputed() { return std::exchange(disputed_, {}); }
  bool anyDisputed() const { return !disputed_.empty(); }
  void retracted(const OrderedOperation& operation);
  // True if a direct operation of that name, submitted before that place, is in flight here.
  bool holds(const std::string& name, std::uint64_t before = ~0ULL) const;
  // Takes a message of another member. What is left in `message` is memory to be used again.
  void receive(int member, RawBytes& message);
  // Tells the others that nothing more comes. Only the first call has an effect.
  void leave();

  // Returns the next finished operation, in order; false if there is none now. If a member breaks
  // the protocol, broken() says so and no further operation is returned.
  bool next(Delivery& delivery);
  Status broken() const;
  // True if next() may have something to do. Any thread may call it.
  bool stirred() const { return stirred_.load(std::memory_order_acquire); }
  // True if a direct operation is in flight. Any thread may call it.
  bool busy() const { return busy_.load(std::memory_order_relaxed) > 0; }
  // The member that has left without sending its record of the oldest operation; -1 if there is
  // none.
  int lostTo() const;
  // The oldest direct operation, if it is older than that.
  std::optional<Stall> stall(TimePoint now, Duration olderThan) const;
  // Forgets and returns everything that is in flight here.
  std::vector<OrderedOperationPtr> takeAll();

 private:
  struct Direct {
    OrderedOperationPtr operation;
    std::vector<std::byte> head;
    std::span<const std::byte> data;
    std::uint32_t receivers = 0;
    std::uint64_t place = 0;
    bool sent = false;
  };
  struct ByName {
    OrderedOperationPtr operation;
    bool nameless = false;
    enum { kInFlight, kDisputed, kRetracted } state = kInFlight;
  };
  enum class Settled { kNothing, kDelivery, kWaits };

  void sendWhatMay() REQUIRES(order_);
  void send(Direct& direct) REQUIRES(order_);
  void sendByName(std::uint64_t place, std::span<const std::byte> head) REQUIRES(order_);
  // Handles records of other members for places before this member's oldest direct operation.
  Settled settle(Delivery& delivery) REQUIRES(order_);
  void deliverDisputed(std::uint64_t place, const ByName& mine, Delivery& delivery)
      REQUIRES(order_);
  bool takeOldest() REQUIRES(order_);

  // Called by the driver only.
  void deliverOldest(Delivery& delivery);
  // Describes a mismatch, or a head that cannot be read, and names the culprit.
  Status disagreement(std::uint64_t place, const OrderedRecord& mine, int& culprit) const;

  const Options options_;
  OrderedArrivals arrivals_;
  std::atomic<std::size_t> busy_{0};
  std::atomic<bool> stirred_{false};

  mutable Mutex order_;  // held while sending, never taken by receive()
  std::deque<Direct> direct_ GUARDED_BY(order_);
  std::map<std::uint64_t, ByName> byName_ GUARDED_BY(order_);
  std::uint64_t next_ GUARDED_BY(order_) = 0;
  bool leaving_ GUARDED_BY(order_) = false;
  // Memory to be used again.
  std::vector<std::byte> spareHead_ GUARDED_BY(order_);
  std::string front_ GUARDED_BY(order_);

  // Only the driver uses these: the operation that is being delivered, and its records.
  std::vector<OrderedOperationPtr> disputed_;
  Direct oldest_;
  std::vector<RawBytes> taken_;
  std::vector<std::span<const std::byte>> data_;
  bool more_ = false;  // next() may find another one although nothing has arrived since
};

}  // namespace farandole::control
