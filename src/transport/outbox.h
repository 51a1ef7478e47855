// Outbox: what a connection has to send, and in which order. Pure bookkeeping: no socket, no lock;
// guarded by its connection.
//
// Notices (posted, credit, heartbeat) go first, then control messages, then data in fragments of at
// most kMaxFragment: what is urgent overtakes between two fragments.
//
// A message of at most kEagerBytes goes at once as long as the receiver's window has room. Any
// other one is offered, and goes when the receiver says that the receive of its slot is posted, so
// that it can be written straight into its place. A receive of more than kEagerBytes is announced
// by the receiver unasked; if that has come before the message, nothing waits. So the bytes that
// wait at a receiver are bounded by its window, and no message ever blocks one of another slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "transport/frame.h"

namespace farandole::transport {

inline constexpr std::size_t kEagerBytes = std::size_t{64} << 10;
// What a message costs beyond its bytes while it waits at the receiver.
inline constexpr std::size_t kMessageOverhead = 128;
inline constexpr std::uint64_t kDefaultWindow = std::uint64_t{2} << 20;
// Offers that a receiver keeps for receives that were not posted yet.
inline constexpr std::size_t kMaxOffers = 65536;
inline constexpr std::size_t kMaxControlQueue = std::size_t{16} << 20;

using LinkCallback = std::function<void(const Status&)>;

struct SendOperation {
  std::uint64_t slot = 0;
  std::span<const std::uint8_t> bytes;
  LinkCallback done;
  std::uint64_t id = 0;  // what cancel() names it by
};

// A frame to be written next. The payload stays where it is until the frame was written.
struct OutFrame {
  FrameHeader header;
  std::span<const std::uint8_t> payload;
  std::string control;  // owns the payload of a control message
  LinkCallback done;    // set on the last fragment of a message
};

class Outbox {
 public:
  explicit Outbox(std::uint32_t epoch) : epoch_(epoch) {}

  // The receiver's window is known; before that next() must not be called.
  void open(std::uint64_t window);

  // After an error the operation was not taken and is unchanged.
  Status send(SendOperation& operation);
  // The callback of a send of which the receiver knows nothing; none if it does, if the send is
  // unknown, or if another one of its slot follows, whose place would change.
  std::optional<LinkCallback> cancel(std::uint64_t slot, std::uint64_t id);
  // type: kControl or kRecord; they keep their order.
  Status control(std::string bytes, FrameType type = FrameType::kControl);
  void notice(FrameType type, std::uint64_t slot = 0, std::uint64_t total = 0);
  // The last frame, behind the control messages that wait. Data that waits is not sent: it is to be
  // failed by the caller.
  std::vector<LinkCallback> goodbye();

  Status posted(std::uint64_t slot, std::uint64_t total);
  Status credit(std::uint64_t bytes);

  bool empty() const { return notices_.empty() && control_.empty() && ready_.empty() && !leaving_; }
  std::optional<OutFrame> next();
  // Bytes that could be written now, counted up to a limit.
  std::size_t pendingBytes(std::size_t limit) const;
  // Every send that is not finished, for being failed; the rest is forgotten.
  std::vector<LinkCallback> abandon();

 private:
  enum class Kind { kOffer, kUnasked, kAsked };
  struct Item {
    Kind kind = Kind::kUnasked;
    SendOperation operation;
    std::uint64_t offset = 0;
  };
  struct Message {
    FrameType type = FrameType::kControl;
    std::string bytes;
  };
  struct Slot {
    std::deque<SendOperation> waiting;  // offered
    std::deque<std::uint64_t> posted;   // announced by the receiver, not used yet
  };

  FrameHeader header(FrameType type) const { return {type, epoch_, 0, 0, 0, 0}; }
  OutFrame nextPiece();
  std::vector<LinkCallback> dropData();

  std::uint32_t epoch_;
  std::uint64_t window_ = 0;
  std::uint64_t credit_ = 0;
  std::size_t offers_ = 0;
  std::size_t announced_ = 0;
  std::size_t controlBytes_ = 0;
  bool leaving_ = false;
  std::deque<FrameHeader> notices_;
  std::deque<Message> control_;
  // Offers stand in the same line as data: an offer must not overtake data of its own slot.
  std::deque<Item> ready_;
  std::unordered_map<std::uint64_t, Slot> slots_;
};

}  // namespace farandole::transport
