// PointToPoint: messages between two members, matched by tag.
//
// The sender posts an envelope (tag, size) in the channel of the pair; the receiver claims the
// oldest one that fits and either copies the message from the sender's arena or grants the sender
// the channel's byte stream, to one message of a pair at a time. Envelopes of different tags never
// stand in each other's way; a pair holds Channel::kEnvelopes unclaimed ones, further sends wait
// their turn in the sender.
//
// States of an envelope, and who moves it on: free -(sender)→ posted -(receiver, by exchange)→
// claimed -(receiver)→ granted | taken | refused -(sender)→ free. A sender that gives up takes a
// posted envelope back, or marks a claimed or granted one as dropped, which the receiver frees.
//
// Used by the communicator's thread; owned by it.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <vector>

#include "collective/shm/operation.h"

namespace farandole::collective::shm {

class PointToPoint {
 public:
  explicit PointToPoint(ShmContext& context);
  ~PointToPoint();

  OperationPtr send(const void* in, std::size_t bytes, int to, int tag);
  OperationPtr receive(void* out, std::size_t capacity, int from, int tag, Received* received);

 private:
  class Send;
  class Receive;
  // The rest of a message whose receiver has gone: read and forgotten.
  struct Drain {
    int source;
    Envelope* envelope;
    std::uint64_t left;
  };

  // Advances every message of this member, whichever operation was asked: a message that holds a
  // stream must not wait until its owner looks at it.
  bool pump(Budget& budget);
  bool pumpSend(Send& send, Budget& budget);
  bool post(Send& send);
  bool streamOut(Send& send, Budget& budget);

  bool match();
  bool matchFrom(int source, std::uint64_t posted);
  void claim(Receive& receive, int source, Envelope& envelope);
  bool pumpReceive(Receive& receive, Budget& budget);
  bool copyShared(Receive& receive, Budget& budget);
  bool streamIn(Receive& receive, Budget& budget);
  bool pumpDrain(Drain& drain);
  // How many bytes of a source's stream can be read; fails the receive if they make no sense.
  std::uint64_t readable(int source, Status& status) const;

  void forget(Send& send);
  void forget(Receive& receive);

  ShmContext& context_;
  Board& board_;
  std::list<Send*> sends_;        // pending, in order of their start
  std::list<Receive*> receives_;  // pending, in order of their start
  std::list<Drain> drains_;
  std::vector<std::array<Send*, Channel::kEnvelopes>> posted_;  // [to]: whose envelope it is
  std::vector<std::uint64_t> order_;                            // [to]: envelopes posted so far
  std::vector<const void*> streamHolder_;                       // [from]: receive or drain
  struct Look {
    std::uint64_t posted = 0;
    std::uint64_t receives = 0;
  };
  std::vector<Look> looks_;  // [from]: when it was last searched in vain
  std::uint64_t receivesStarted_ = 0;
};

}  // namespace farandole::collective::shm
