// LinkConnection: one authenticated connection to one rank, and the messages on it.
//
// It exists before there is a socket: sends and receives queue until attach(). Thread-safe. A
// callback is called exactly once, on the loop's thread, inside its poll(), or inside the very call
// that completes or fails it, and never with a lock held; it must not block. After the end of the
// connection (onEnd, or a call that returned its status) no memory of a send or receive is touched
// any more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/raw_bytes.h"
#include "base/status.h"
#include "transport/congestion.h"
#include "transport/frame_reader.h"
#include "transport/frame_writer.h"
#include "transport/inbox.h"
#include "transport/link_loop.h"
#include "transport/outbox.h"

namespace farandole::transport {

struct LinkLimits {
  Duration heartbeat = std::chrono::seconds(1);
  // Without a byte from the other side for so long it counts as lost.
  Duration silence = std::chrono::seconds(8);
  // The limit from the first byte of a connection to its acceptance.
  Duration handshake = std::chrono::seconds(5);
  // Bytes of messages that may wait here for their receives, per connection.
  std::uint64_t window = kDefaultWindow;
  // TCP's congestion control; see congestion.h.
  std::string congestion = kAutoCongestion;
};

// A socket whose other side has proved itself and whose hello was accepted.
struct Established {
  UniqueFd fd;
  SslPtr ssl;
  bool connector = false;  // this side connected
  int peer = -1;           // rank
  std::uint32_t lane = 0;
  std::uint64_t window = 0;  // the window of the other side
  std::string host;          // the host name of the other side
  std::string address;
};

class LinkConnection : public LinkHandler,
                       public std::enable_shared_from_this<LinkConnection>,
                       private FrameReceiver {
 public:
  // The first two are called in the order of what happened and with this connection locked: they
  // may only note it.
  struct Events {
    std::function<void(std::string message)> onControl;
    // A record is not noted but dealt with at once, so it takes few locks, and none that is held
    // while anything is sent. The message may be kept: what is left in its place is used for the
    // next one. An error ends the connection.
    std::function<Status(RawBytes& message)> onRecord;
    // Called once. kShutdown: the other side said goodbye; kPeerLost; kMismatch: it broke the
    // protocol, or what came was damaged.
    std::function<void(const Status&)> onEnd;
    // Something was noted. Without a lock, on any thread.
    std::function<void()> noted;
  };

  LinkConnection(std::shared_ptr<LinkLoop> loop, int peer, std::uint32_t epoch, WireSecurity mode,
                 const LinkLimits& limits, Events events);

  // Called once. An error ends the connection.
  void attach(Established established);

  // The bytes stay the caller's and must not change before the callback.
  // id: for cancel().
  void send(std::uint64_t slot, std::span<const std::uint8_t> bytes, LinkCallback done,
            std::uint64_t id = 0);
  // The message must have exactly the size of the memory.
  void recv(std::uint64_t slot, std::span<std::uint8_t> memory, LinkCallback done,
            std::uint64_t id = 0);
  // True: it had not begun, and its callback was called with kCancelled.
  bool cancelSend(std::uint64_t slot, std::uint64_t id);
  bool cancelRecv(std::uint64_t slot, std::uint64_t id);
  // Receives a message of this slot that is here, or on its way, and belongs to no receive yet. If
  // there is none: false, and `arrived` is called once there is one or the connection ends. Makes
  // no call itself: `after` makes those that are due.
  bool recvArrived(std::uint64_t slot, std::span<std::uint8_t> memory, LinkCallback done,
                   std::uint64_t id, LinkCallback arrived, std::function<void()>& after);
  void unwatch(std::uint64_t slot, std::uint64_t id);
  // Copied. An error if the connection has ended or too much waits for it.
  Status control(std::string message);
  // The same, in two parts, for onRecord; in line with the control messages.
  Status record(std::string_view front, std::span<const std::byte> body);

  // The other side's process is known to stand still, or to go on: its silence is no loss.
  void peerStopped(bool stopped);

  // Named beside it when nothing is heard of it any more: "ranks 2, 3 run on that host".
  void setCompanions(std::string text);

  // Fails everything in flight and says goodbye behind the control messages that wait.
  void leave();
  // Ends it at once; everything in flight fails with this status.
  void fail(Status status);
  bool ended() const;
  std::uint64_t heldBytes() const;

  // What HeldSends has held back.
  void flushHeld();

  void ready(std::uint32_t events) override;
  bool look() override;
  void timer() override;

 private:
  enum class State { kWaiting, kOpen, kLeaving, kEnded };
  using Finished = std::vector<std::pair<LinkCallback, Status>>;
  struct Calls {
    Finished finished;
    bool noted = false;
  };

  Result<std::span<std::uint8_t>> frameBegins(const FrameHeader& header) override REQUIRES(mutex_);
  Result<bool> frameEnds(const FrameHeader& header) override REQUIRES(mutex_);

  // Releases the lock.
  bool cancelled(MutexLock& lock, std::optional<LinkCallback> callback) RELEASE(mutex_);

  // What is to be called without the lock is appended to finished_.
  Status attachLocked(Established established) REQUIRES(mutex_);
  void recvLocked(ReceiveOperation operation) REQUIRES(mutex_);
  void flushLocked() REQUIRES(mutex_);
  void flushIfSmallLocked() REQUIRES(mutex_);
  // Whether what is sent now may go straight to the socket.
  bool nothingWaitsLocked() const REQUIRES(mutex_);
  void writeRecordLocked(std::string_view front, std::span<const std::byte> body) REQUIRES(mutex_);
  void brokenLocked(Status status) REQUIRES(mutex_);
  // True if something came, or its end.
  bool readLocked() REQUIRES(mutex_);
  void drainLocked() REQUIRES(mutex_);
  void endLocked(Status status) REQUIRES(mutex_);
  void finishLocked(LinkCallback callback, Status status) REQUIRES(mutex_);
  void watchLocked(bool writing) REQUIRES(mutex_);
  Status namedLocked(Status status) const REQUIRES(mutex_);
  Calls takeCallsLocked() REQUIRES(mutex_);
  void make(const Calls& calls) const EXCLUDES(mutex_);
  // Unlocks and calls what has finished.
  void release(MutexLock& lock) RELEASE(mutex_);

  const std::shared_ptr<LinkLoop> loop_;
  const int peer_;
  const std::uint32_t epoch_;
  const WireSecurity mode_;
  const LinkLimits limits_;
  const Events events_;

  mutable Mutex mutex_;
  State state_ GUARDED_BY(mutex_) = State::kWaiting;
  Status end_ GUARDED_BY(mutex_);
  std::string host_ GUARDED_BY(mutex_);
  std::string address_ GUARDED_BY(mutex_);
  std::string companions_ GUARDED_BY(mutex_);
  LinkLoop::Id id_ GUARDED_BY(mutex_) = 0;
  Stream stream_ GUARDED_BY(mutex_);
  FrameWriter writer_ GUARDED_BY(mutex_);
  FrameReader reader_ GUARDED_BY(mutex_);
  Outbox outbox_ GUARDED_BY(mutex_);
  Inbox inbox_ GUARDED_BY(mutex_);
  std::string controlMessage_ GUARDED_BY(mutex_);  // being received
  RawBytes recordMessage_ GUARDED_BY(mutex_);      // the same
  bool full_ GUARDED_BY(mutex_) = false;           // the socket had no room; waiting for it
  bool watchesRoom_ GUARDED_BY(mutex_) = false;    // the loop will tell when it has room
  bool held_ GUARDED_BY(mutex_) = false;           // a thread writes it at the end of its turn
  Status broken_ GUARDED_BY(mutex_);  // writing failed; what can still be read comes first
  bool peerStopped_ GUARDED_BY(mutex_) = false;  // its silence means nothing
  TimePoint lastHeard_ GUARDED_BY(mutex_);
  TimePoint lastSent_ GUARDED_BY(mutex_);
  TimePoint nextTimer_ GUARDED_BY(mutex_);
  Finished finished_ GUARDED_BY(mutex_);
  bool noted_ GUARDED_BY(mutex_) = false;
};

}  // namespace farandole::transport
