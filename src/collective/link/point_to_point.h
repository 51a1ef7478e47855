// Messages between two members, matched by tag.
//
// The sender announces a message with an envelope (its number, size and tag), on a slot of which
// the receiver always has one receive posted once it has ever waited for that member. The receiver
// matches envelopes with its receives and answers each, taken or refused, on a slot of the
// message's own. The bytes follow at once if they are few, otherwise when they were accepted, in
// parts, on another slot of the message's own; so messages with different tags do not wait for each
// other. Messages to oneself are copied.
//
// Used by the driver only.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "collective/link/operation.h"

namespace farandole::collective::link {

// Up to here the bytes follow their envelope at once, from a copy.
inline constexpr std::size_t kEagerSend = std::size_t{32} << 10;

class PointToPoint {
 public:
  explicit PointToPoint(Context& context);
  ~PointToPoint();
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  OperationPtr send(const void* in, std::size_t bytes, int to, int tag);
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag, Received* received);

 private:
  class Send;
  class Receive;
  // A message to oneself: what its two ends tell each other.
  struct Local {
    const std::byte* memory = nullptr;  // null: its sender is gone
    bool taken = false;
    bool refused = false;
    std::uint64_t capacity = 0;
  };
  struct Envelope {
    int source = -1;
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    std::int32_t tag = 0;
    std::shared_ptr<Local> local;  // only for a message to oneself
  };
  // What this member knows about another.
  struct Peer {
    std::shared_ptr<Traffic> mail;  // the posted receive of an envelope, once there is one
    bool posted = false;
    std::uint64_t sent = 0;     // messages to it
    std::uint64_t arrived = 0;  // envelopes from it
    std::size_t waiting = 0;    // of those, how many have no receive
    Status end;                 // not ok: nothing comes any more
  };

  Peer& peer(int member) { return peers_[static_cast<std::size_t>(member)]; }
  // Takes what has come and matches it. True if something was there.
  bool pump();
  void listen(int member);
  void postEnvelope(int member);
  bool fetch(int member);
  Result<Envelope> decode(int member);
  bool match();
  // Why a receive can never be matched; ok if it can.
  Status hopeless(int from) const;

  Context& context_;
  std::vector<Peer> peers_;
  std::deque<Envelope> unmatched_;  // in the order of arrival
  std::list<Receive*> receives_;    // that wait for an envelope, in the order of their start
};

}  // namespace farandole::collective::link
