// OrderedChannel: operations whose order the caller promises need no agreement before they run.
//
// Names let ranks submit in any order, and cost a way to the sequencer and back before the data's
// own way. Where all members promise to submit their ordered operations in the same order, the n-th
// one of every member is the same operation. So each member sends a record of what it is, with its
// data, straight to the others, and finishes the operation when it has everybody's n-th record. The
// promise is checked: members whose records disagree all fail that operation with the same text,
// and the next one is not affected.
//
// Two kinds of ordered operations are counted here, with one counter:
//   direct    small ones (the caller decides what is small; the same on all members), sent as above
//   by name   all others: they are agreed upon like any named operation, and nothing is sent here
//
// Members may disagree about which kind their n-th operation is, because their sizes differ. A
// member whose operation goes by name notices when a direct record has the same number: the
// operation is disputed. It takes the operation back from the sequencer first, and only then tells
// the others what it was. So nobody goes on before all are out, and all fail with one text.
//
// Flow. At most kWindow operations are sent before the oldest one is finished.
//
// Threads. submit, countByName, leave: any, but one at a time decides the order. receive: any. The
// rest: the driver.
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

// An operation as the channel knows it. Its owner derives from it and gets it back in the end.
class OrderedOperation {
 public:
  virtual const std::string& orderedName() const = 0;  // may be empty
  virtual const Meta& orderedMeta() const = 0;
  virtual TimePoint orderedSince() const = 0;

  // Set by the channel before anybody else sees the operation.
  std::uint64_t place = 0;  // among this member's ordered operations, from 0
  bool byName = false;      // counted here, but agreed upon elsewhere

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
    // A message in two parts, to that member; those of a member arrive in order. Any thread.
    // Its first `room` bytes are the sender's.
    std::function<void(int member, std::string& front, std::span<const std::byte> body)> send;
    std::size_t room = 0;
    // Something came for the driver. Any thread.
    std::function<void()> wake;
    // Called by the destructor: afterwards nobody calls receive(). May be empty.
    std::function<void()> detach;
  };
  // An operation that is finished as far as the channel is concerned.
  struct Delivery {
    OrderedOperationPtr operation;
    Status status;     // ok: all members agree, and their data is in `data`
    int culprit = -1;  // member
    // What each member has sent; one's own input at [me]. Valid until the next call of next().
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

  // A direct operation. The data lives until the operation is given back; `receivers` need it (bit
  // i: member i).
  void submit(const OrderedOperationPtr& operation, std::span<const std::byte> data,
              std::uint32_t receivers);
  // Counts an operation that goes by its name; without a name it is to get nameAt(its place).
  void countByName(const OrderedOperationPtr& operation);
  // By the common count, so that members stay in step after they have disagreed.
  static std::string nameAt(std::uint64_t place);
  // One that went by its name has ended.
  void ended(const OrderedOperation& operation);
  // Operations by name that are disputed since the last call. The driver takes each of them back
  // from the sequencer and then calls retracted(); they come out of next() in the end.
  std::vector<OrderedOperationPtr> takeDisputed() { return std::exchange(disputed_, {}); }
  bool anyDisputed() const { return !disputed_.empty(); }
  void retracted(const OrderedOperation& operation);
  // Whether a direct operation of that name is in flight here that was submitted before that place.
  bool holds(const std::string& name, std::uint64_t before = ~0ULL) const;
  // From another member, as it came; what is left in the message's place is memory to use again.
  void receive(int member, RawBytes& message);
  // Tells the others that nothing comes any more. Once.
  void leave();

  // The next operation that is finished, in order; false: none for now. A member that breaks the
  // protocol is an error in broken(), and there is never another one.
  bool next(Delivery& delivery);
  Status broken() const;
  // Whether next() may have something to do. Any thread.
  bool stirred() const { return stirred_.load(std::memory_order_acquire); }
  // Whether a direct operation is in flight. Any thread.
  bool busy() const { return busy_.load(std::memory_order_relaxed) > 0; }
  // The member that has left without its part of the oldest operation; -1: none.
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
  // What others have sent for places before this member's oldest direct operation.
  Settled settle(Delivery& delivery) REQUIRES(order_);
  void deliverDisputed(std::uint64_t place, const ByName& mine, Delivery& delivery)
      REQUIRES(order_);
  bool takeOldest() REQUIRES(order_);

  // The driver's.
  void deliverOldest(Delivery& delivery);
  // A mismatch, or a head that cannot be read, and whose.
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
  // Memory to use again.
  std::vector<std::byte> spareHead_ GUARDED_BY(order_);
  std::string front_ GUARDED_BY(order_);

  // The driver's: the operation that is being delivered, and its records.
  std::vector<OrderedOperationPtr> disputed_;
  Direct oldest_;
  std::vector<RawBytes> taken_;
  std::vector<std::span<const std::byte>> data_;
  bool more_ = false;  // next() may find another one although nothing has come since
};

}  // namespace farandole::control
