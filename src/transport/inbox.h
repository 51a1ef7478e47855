// Inbox: receives that wait for their messages and messages that wait for their receives. Pure
// bookkeeping: no socket, no lock; guarded by its connection. How messages travel: outbox.h.
//
// Within a slot the n-th message belongs to the n-th receive, and both must have the same size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "transport/frame.h"
#include "transport/outbox.h"

namespace farandole::transport {

struct ReceiveOperation {
  std::uint64_t slot = 0;
  std::span<std::uint8_t> memory;
  LinkCallback done;
  std::uint64_t id = 0;    // what cancel() names it by
  bool cancelled = false;  // keeps its place; its message is thrown away
};

class Inbox {
 public:
  // outbox: where announcements and credit are put.
  Inbox(Outbox& outbox, std::uint64_t window) : outbox_(outbox), window_(window) {}

  // The callback to be called with success if its message was here already. On an error (sizes that
  // differ) the operation was not taken and is as it was.
  Result<std::optional<LinkCallback>> post(ReceiveOperation& operation);

  Status offered(std::uint64_t slot, std::uint64_t total);
  // Where the payload of this data frame belongs.
  Result<std::span<std::uint8_t>> begin(const FrameHeader& header);
  // That payload is there, and genuine. The callback of its receive if that is complete.
  std::optional<LinkCallback> finish();

  // The callback of a receive into whose memory nothing was or will be written; none if it is
  // unknown, or has begun.
  std::optional<LinkCallback> cancel(std::uint64_t slot, std::uint64_t id);

  // A message of this slot, or its offer, is here and belongs to no receive yet.
  bool hasUnclaimed(std::uint64_t slot) const;
  // Fired once, when hasUnclaimed() becomes true or everything is abandoned.
  void watch(std::uint64_t slot, std::uint64_t id, LinkCallback arrived);
  void unwatch(std::uint64_t slot, std::uint64_t id);
  bool anyFired() const { return !fired_.empty(); }
  std::vector<LinkCallback> takeFired() { return std::exchange(fired_, {}); }

  // For a connection that was closed in good order: a message that came before the end is still
  // there for its receive.
  bool holdsWhole(std::uint64_t slot) const;
  std::uint64_t heldBytes() const { return held_; }
  // Every receive and watch, for being failed.
  std::vector<LinkCallback> abandon();

 private:
  struct Arrival {
    std::uint64_t total = 0;
    bool offered = false;
    bool started = false;
    bool whole = false;
    std::vector<std::uint8_t> buffer;  // the bytes of a message without a receive
    bool costsCredit() const { return !offered && total <= kEagerBytes; }
  };
  struct Slot {
    std::deque<Arrival> arrivals;
    std::deque<ReceiveOperation> receives;
  };
  struct Current {
    std::uint64_t slot = 0;
    std::uint64_t total = 0;
    std::uint64_t received = 0;
    std::size_t fragment = 0;
  };

  Status startMessage(const FrameHeader& header);
  void fire(std::uint64_t slot);
  LinkCallback complete(std::unordered_map<std::uint64_t, Slot>::iterator entry);
  void returnCredit(std::uint64_t bytes);

  Outbox& outbox_;
  std::uint64_t window_;
  std::uint64_t held_ = 0;  // bytes of the window that unasked messages use
  std::uint64_t owed_ = 0;  // free again, and not reported yet
  std::size_t offers_ = 0;
  std::optional<Current> current_;
  std::unordered_map<std::uint64_t, Slot> slots_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<std::uint64_t, LinkCallback>>> watches_;
  std::vector<LinkCallback> fired_;
  std::vector<std::uint8_t> sink_;  // the bytes of messages that are thrown away
};

}  // namespace farandole::transport
