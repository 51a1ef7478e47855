// OrderedLane: small operations between machines whose order the caller promises.
//
// Names let ranks submit in any order, and cost a way to the sequencer and back before the data's
// own way. Whoever promises that all members submit their ordered operations in the same order
// needs neither: the n-th one of every member is the same operation. So each member sends what it
// is, and its data, straight to all others, and whoever has everybody's n-th record finishes by
// itself, in the order of the ranks, with the kernels of base/reduce.h. The promise is checked: a
// record says what it is, and members that disagree all fail that operation with the same text; the
// next is not affected.
//
// Only for what is small (takes()): everything goes to everybody. A member has at most kAhead
// operations under way, which bounds what waits at the others. Ordered operations that are not
// small go by their names, but are counted here (pass()). Nothing is sent for them, unless another
// member's record has the same number: then members disagree about what is small. Each that passed
// takes its operation back from the sequencer, and only then tells everybody what it was, so that
// nobody goes on before all are out, and all fail with one text (ordered_contest.cc).
//
// Threads. submit, leave: any, one at a time decides the order. receive: any. The rest: the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/raw_bytes.h"
#include "conductor/entry.h"
#include "control/agreement.h"
#include "control/ordered_record.h"

namespace farandole {

class OrderedLane {
 public:
  struct Options {
    std::vector<std::string> memberNames;  // "rank 3"
    int me = 0;
    // A message in two parts, to that member; those of a member arrive in order. Any thread.
    // Its first `room` bytes are the sender's.
    std::function<void(int member, std::string& front, std::span<const std::byte> body)> send;
    std::size_t room = 0;
    // Something came for the driver. Any thread.
    std::function<void()> wake;
    // Called by the destructor: afterwards nobody calls receive(). May be empty.
    std::function<void()> detach;
  };
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

  explicit OrderedLane(Options options);
  ~OrderedLane();
  OrderedLane(const OrderedLane&) = delete;
  OrderedLane& operator=(const OrderedLane&) = delete;

  // Whether such an operation may go this way: the same answer on all members.
  static bool takes(const Meta& meta, int members);

  // Whether sets of that size have operations that go this way.
  static bool serves(int members);

  void submit(const EntryPtr& entry);
  // Counts an ordered operation that goes by its name, and gives a nameless one a name.
  void pass(const EntryPtr& entry);
  // One that passed has ended.
  void passed(const Entry& entry);
  // Those that passed and must be taken back; the driver calls withdrawn() when they are. They come
  // out of step() in the end.
  std::vector<EntryPtr> takeContested() { return std::exchange(contested_, {}); }
  bool anyContested() const { return !contested_.empty(); }
  void withdrawn(const Entry& entry);
  // Whether an operation of that name is under way here that was submitted before that number.
  bool holds(const std::string& name, std::uint64_t before = ~0ULL) const;
  // From another member, as it came; what is left in the message's place is memory to use again.
  void receive(int member, RawBytes& message);
  // Tells the others that nothing comes any more. Once.
  void leave();

  // Finishes what can be finished, in order. An error: a member does not keep to the protocol.
  Status step(std::vector<Finished>& finished);
  // Whether something is under way. Any thread.
  bool busy() const { return busy_.load(std::memory_order_relaxed) > 0; }
  // Whether step() may have something to do.
  bool stirred() const { return stirred_.load(std::memory_order_acquire); }
  // The member that has left without its part of what is under way; -1: none.
  int lostTo() const;
  std::optional<Stall> stall(TimePoint now, Duration olderThan) const;
  // Forgets and returns everything under way.
  std::vector<EntryPtr> takeAll();

 private:
  struct Flight {
    EntryPtr entry;
    std::vector<std::byte> head;
    std::uint64_t number = 0;
    bool sent = false;
  };
  struct Arrived {
    std::uint64_t number = 0;
    RawBytes message;
  };
  struct Pass {
    EntryPtr entry;
    bool nameless = false;
    enum { kUnderWay, kContested, kWithdrawn } state = kUnderWay;
  };
  struct Member {
    std::deque<Arrived> records;               // ascending
    std::map<std::uint64_t, RawBytes> asides;  // by number
    std::uint64_t next = 0;                    // the least number that its next record may have
    bool left = false;
    bool corrupt = false;
  };

  int size() const { return static_cast<int>(options_.memberNames.size()); }
  std::optional<OrderedRecord> recordIn(const RawBytes& message) const {
    return decodeOrdered(message.bytes().subspan(options_.room));
  }
  // Under order_.
  void sendWhatMay();
  void send(Flight& flight);
  void sendAside(std::uint64_t number, std::span<const std::byte> head);
  // Settles what others have here and this member has not, before its oldest operation. False: that
  // is not over yet.
  bool settlePasses(std::vector<Finished>& finished);
  // The least number, below that, of a record that has come.
  std::optional<std::uint64_t> earliestRecord(std::uint64_t below) const;
  Finished contested(std::uint64_t number, const Pass& pass) const;
  // What is usual, at once: nothing is to be settled, and everybody's part of the oldest operation
  // is here. False: perhaps not.
  bool takeOldest();
  // Everybody's part of that operation into taken_; false: not all are here.
  bool takeRecords(std::uint64_t number);
  void takeParts(std::uint64_t number);                    // under mutex_, when all are here
  bool lacksPart(int member, std::uint64_t number) const;  // under mutex_
  Finished finish(Flight& flight);
  // A mismatch, or a head that cannot be read, and whose.
  Status agreement(const Flight& flight, std::span<const OrderedRecord> parts, int& culprit) const;
  Status makesNoSense(int member) const;

  const Options options_;
  std::atomic<std::size_t> busy_{0};
  std::atomic<bool> stirred_{false};  // step() has something to look at
  std::atomic<bool> trouble_{false};  // a member has left, or is corrupt
  std::vector<EntryPtr> contested_;   // the driver's

  mutable Mutex order_;
  // Guarded by order_, which is held while sending and never taken by receive().
  std::deque<Flight> flights_;
  std::map<std::uint64_t, Pass> passes_;
  std::uint64_t next_ = 0;
  bool leaving_ = false;
  // Memory to use again.
  std::vector<std::byte> spareHead_;
  std::string front_;

  mutable Mutex mutex_;
  // Guarded by mutex_; taken after order_.
  std::vector<Member> members_;
  std::vector<RawBytes> spare_;  // memory of records that are done with

  // The driver's: the operation that is being finished, and its records.
  Flight oldest_;
  std::vector<RawBytes> taken_;
  std::vector<OrderedRecord> parts_;
  bool moreRecords_ = true;  // perhaps; found out by takeOldest()
};

}  // namespace farandole
